"""The followers of a workload, and their clusters."""

from dataclasses import replace
from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.planning.followers.leaderplan import may_follow, plan_leader
from federation.planning.followers.references import Reference

TYPES = {(t.resource.group, t.resource.kind): t for t in map(from_config, default_type_configs())}
DEPLOYMENT = TYPES["apps", "Deployment"]
SETTINGS, SPECIAL = Reference("", "ConfigMap", "settings"), Reference("", "ConfigMap", "special")
VOLUME = "/spec/template/spec/volumes/0/configMap/name"


def _leader(*patches: dict[str, Any], **annotations: str) -> dict[str, Any]:
    """Return a workload in east and west that mounts `settings`; the patches are for west."""
    pod = {
        "containers": [{"name": "web", "image": "web:1"}],
        "volumes": [{"name": "config", "configMap": {"name": "settings"}}],
    }
    template = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"template": {"spec": pod}},
    }
    following = {names.ENABLE_FOLLOWER_SCHEDULING: "true"}
    placement = [{"cluster": "east"}, {"cluster": "west"}]
    overrides = [{"controller": names.OVERRIDE_CONTROLLER, "clusters": [{"cluster": "west", "patches": list(patches)}]}]
    return {
        "metadata": {"name": "web-deployments.apps", "namespace": "default", "annotations": following | annotations},
        "spec": {
            "template": template,
            "placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": placement}],
            "overrides": overrides,
        },
    }


def _find_type(group: str, kind: str) -> FederatedType | None:
    return TYPES.get((group, kind))


def _followers(leader: dict[str, Any]) -> dict[Reference, set[str]]:
    return {ref: set(clusters) for ref, clusters in plan_leader(leader, DEPLOYMENT, _find_type).followers.items()}


def test_dependencies_of_the_template_go_to_all_clusters_of_the_workload() -> None:
    assert _followers(_leader()) == {SETTINGS: {"east", "west"}}


@pytest.mark.parametrize(
    "patch",
    [
        {"path": VOLUME, "value": "special"},
        {"path": "/spec/template/spec/volumes/0", "value": {"name": "config", "configMap": {"name": "special"}}},
        {"op": "add", "path": "/spec/template/spec/volumes/-", "value": {"configMap": {"name": "special"}}},
        {"path": "/spec/template/spec/containers/0/envFrom", "value": [{"configMapRef": {"name": "special"}}]},
        {"path": "/spec/template/spec/containers/0", "value": {"envFrom": [{"configMapRef": {"name": "special"}}]}},
        {"path": "/spec/template", "value": {"spec": {"volumes": [{"configMap": {"name": "special"}}]}}},
    ],
    ids=lambda patch: str(patch["path"]),
)
def test_dependencies_of_an_override_go_to_its_clusters(patch: dict[str, Any]) -> None:
    assert _followers(_leader(patch)) == {SETTINGS: {"east", "west"}, SPECIAL: {"west"}}


@pytest.mark.parametrize(
    "patch",
    [
        {"path": "/spec/template/spec/containers/0/image", "value": "web:2"},
        {"path": "/spec/replicas", "value": 3},
        {"path": "no pointer", "value": 3},
        {"op": "remove", "path": "/spec/template/spec/volumes/7"},
    ],
    ids=lambda patch: str(patch["path"]),
)
def test_overrides_that_introduce_nothing_change_nothing(patch: dict[str, Any]) -> None:
    assert _followers(_leader(patch)) == {SETTINGS: {"east", "west"}}


@pytest.mark.parametrize(
    "annotations",
    [
        {names.ENABLE_FOLLOWER_SCHEDULING: "false"},
        {names.NO_SCHEDULING: "true"},
        {names.DRY_RUN: "true"},
    ],
    ids=lambda annotations: next(iter(annotations)),
)
def test_a_workload_without_follower_scheduling_has_no_followers(annotations: dict[str, str]) -> None:
    assert _followers(_leader(**annotations)) == {}


def test_listed_objects_follow_when_their_kind_may() -> None:
    listed = '[{"kind":"Service","name":"web"},{"group":"apps","kind":"Deployment","name":"other"}]'
    lead = plan_leader(_leader(**{names.FOLLOWERS: listed}), DEPLOYMENT, _find_type)
    assert set(lead.followers) == {SETTINGS, Reference("", "Service", "web")}
    assert lead.problem == f"annotation {names.FOLLOWERS}: objects of kind apps/Deployment cannot follow"


def test_a_malformed_list_leaves_the_dependencies_of_pods() -> None:
    lead = plan_leader(_leader(**{names.FOLLOWERS: "["}), DEPLOYMENT, _find_type)
    assert set(lead.followers) == {SETTINGS}
    assert names.FOLLOWERS in lead.problem


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("apps/v1", "Deployment", ("template", "spec")),
        ("apps/v1", "StatefulSet", ("template", "spec")),
        ("apps/v1", "DaemonSet", ("template", "spec")),
        ("batch/v1", "Job", ("template", "spec")),
        ("batch/v1", "CronJob", ("jobTemplate", "spec", "template", "spec")),
        ("batch/v1beta1", "CronJob", ("jobTemplate", "spec", "template", "spec")),
        ("v1", "Pod", ()),
    ],
)
def test_every_kind_with_pods_leads_also_by_overrides(api_version: str, kind: str, path: tuple[str, ...]) -> None:
    pointer = "/".join(("", "spec", *path, "serviceAccountName"))
    leader = _leader({"path": pointer, "value": "special"})
    spec: dict[str, Any] = leader["spec"]["template"]["spec"]["template"]["spec"]
    for key in reversed(path):
        spec = {key: spec}
    leader["spec"]["template"] |= {"apiVersion": api_version, "kind": kind, "spec": spec}
    assert _followers(leader) == {SETTINGS: {"east", "west"}, Reference("", "ServiceAccount", "special"): {"west"}}


def test_leaders_never_follow() -> None:
    scaled = replace(DEPLOYMENT, scale_target_ref_path=("spec", "scaleTargetRef"))
    assert not may_follow("apps", "Deployment", scaled)
    hpa = TYPES["autoscaling", "HorizontalPodAutoscaler"]
    assert may_follow("autoscaling", "HorizontalPodAutoscaler", hpa)
    assert not may_follow("autoscaling", "HorizontalPodAutoscaler", replace(hpa, scale_target_ref_path=()))
    assert not may_follow("autoscaling", "HorizontalPodAutoscaler", None)
    listed = '[{"group":"apps","kind":"Deployment","name":"web"},{"group":"apps","kind":"Deployment","name":"api"}]'
    lead = plan_leader(_leader(**{names.FOLLOWERS: listed}), DEPLOYMENT, lambda *_: scaled)
    assert set(lead.followers) == {SETTINGS}
    assert lead.problem == f"annotation {names.FOLLOWERS}: objects of kind apps/Deployment cannot follow"


def test_only_workloads_lead() -> None:
    leader = _leader()
    leader["spec"]["template"]["kind"] = "ControllerRevision"
    assert _followers(leader) == {}
