"""The followers of a workload, and their clusters."""

from dataclasses import replace
from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, PathDefinition, default_type_configs, from_config
from federation.api.shippedcomponents import shipped_components
from federation.apimachinery.resources import Resource
from federation.planning.followers.leaderplan import (
    FindType,
    LeaderPlan,
    is_leader,
    is_leader_type,
    may_follow,
    plan_leader,
    secrets_of,
)
from federation.planning.followers.references import Identity, Reference

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


def _plan(leader: dict[str, Any], find_type: FindType = _find_type) -> LeaderPlan:
    return plan_leader(leader, DEPLOYMENT, find_type, lambda _: None)


def _followers(
    leader: dict[str, Any], type_: FederatedType = DEPLOYMENT, account: dict[str, Any] | None = None
) -> dict[Reference, set[str]]:
    """Return the followers and their clusters; `account` is the federated ServiceAccount `runner`."""

    def find(identity: Identity) -> dict[str, Any] | None:
        return account if identity == Identity("", "ServiceAccount", "default", "runner") else None

    return {ref: set(clusters) for ref, clusters in plan_leader(leader, type_, _find_type, find).followers.items()}


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
    lead = _plan(_leader(**{names.FOLLOWERS: listed}))
    assert set(lead.followers) == {SETTINGS, Reference("", "Service", "web")}
    assert lead.problem == f"annotation {names.FOLLOWERS}: objects of kind apps/Deployment cannot follow"


def test_a_malformed_list_leaves_the_dependencies_of_pods() -> None:
    lead = _plan(_leader(**{names.FOLLOWERS: "["}))
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
    assert may_follow("autoscaling", "HorizontalPodAutoscaler", None)
    listed = '[{"group":"apps","kind":"Deployment","name":"web"},{"group":"apps","kind":"Deployment","name":"api"}]'
    lead = _plan(_leader(**{names.FOLLOWERS: listed}), lambda *_: scaled)
    assert set(lead.followers) == {SETTINGS}
    assert lead.problem == f"annotation {names.FOLLOWERS}: objects of kind apps/Deployment cannot follow"


def test_only_workloads_lead() -> None:
    leader = _leader()
    leader["spec"]["template"] |= {"kind": "ControllerRevision", "spec": {"template": {"spec": {}}}}
    assert _followers(leader) == {}


def _secrets(*names_: str) -> set[Reference]:
    return {Reference("", "Secret", name) for name in names_}


def _account(*patches: dict[str, Any], disabled: bool = False, **fields: Any) -> dict[str, Any]:
    """Return a federated ServiceAccount with the pull secret `pull` and `mounted`; the patches are for west."""
    content = {"imagePullSecrets": [{"name": "pull"}], "secrets": [{"kind": "Secret", "name": "mounted"}]} | fields
    metadata = {"name": "runner", "namespace": "default"}
    overrides = [{"controller": "o", "clusters": [{"cluster": "west", "patches": list(patches)}]}]
    annotations = {names.DISABLE_FOLLOWING: "true"} if disabled else {}
    return {
        "metadata": {"name": "runner-serviceaccounts", "namespace": "default", "annotations": annotations},
        "spec": {
            "template": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, **content},
            "overrides": overrides,
        },
    }


RUNNER = {"path": "/spec/template/spec/serviceAccountName", "value": "runner"}
BOTH = frozenset(("east", "west"))


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (_account(), dict.fromkeys(_secrets("pull", "mounted"), BOTH)),
        (_account(secrets="odd", imagePullSecrets=[{"name": 3}, "x", {"name": "pull"}]), {*_secrets("pull")}),
        (_account(disabled=True), {}),
        (
            _account({"op": "add", "path": "/imagePullSecrets/-", "value": {"name": "west-only"}}),
            dict.fromkeys(_secrets("pull", "mounted"), BOTH)
            | dict.fromkeys(_secrets("west-only"), frozenset(("west",))),
        ),
        (_account({"op": "add", "path": "/metadata/labels/a", "value": "b"}), {*_secrets("pull", "mounted")}),
        (_account({"op": "add", "path": "imagePullSecrets", "value": []}), {*_secrets("pull", "mounted")}),
        (None, {}),
    ],
)
def test_the_secrets_of_a_service_account_go_where_it_goes(account: dict[str, Any] | None, expected: Any) -> None:
    leader = _leader()
    leader["spec"]["template"]["spec"]["template"]["spec"]["serviceAccountName"] = "runner"
    wanted = expected if isinstance(expected, dict) else dict.fromkeys(expected, BOTH)
    runner = {Reference("", "ServiceAccount", "runner"): BOTH}
    assert _followers(leader, account=account) == {SETTINGS: BOTH} | runner | wanted


def test_the_secrets_of_a_service_account_that_an_override_names_go_to_its_clusters() -> None:
    found = _followers(_leader({"op": "add", **RUNNER}), account=_account())
    assert {ref.name: clusters for ref, clusters in found.items()} == {
        "settings": BOTH,
        "runner": {"west"},
        "pull": {"west"},
        "mounted": {"west"},
    }


def test_secrets_of_service_accounts_follow_before_their_type_is_known() -> None:
    found = secrets_of(_account(), lambda *_: None, frozenset(("east",)))
    assert found == dict.fromkeys(_secrets("pull", "mounted"), frozenset(("east",)))


CONTAINERS = [{"name": "web", "envFrom": [{"configMapRef": {"name": "settings"}}]}]
ENGINE = Resource("ai.example", "v1", "Engine", "engines")
PLAIN = FederatedType("engines.ai.example", ENGINE, ())
NAMED = replace(PLAIN, paths=PathDefinition(pod_template=("spec", "worker", "template")))


@pytest.mark.parametrize(
    ("type_", "spec", "leads"),
    [
        (PLAIN, {"template": {"spec": {"containers": CONTAINERS}}}, True),
        (PLAIN, {"worker": {"template": {"spec": {"containers": CONTAINERS}}}}, False),
        (NAMED, {"worker": {"template": {"spec": {"containers": CONTAINERS}}}}, True),
        (NAMED, {"template": {"spec": {"containers": CONTAINERS}}}, False),
        (PLAIN, {"template": {"spec": {"containers": []}}}, False),
        (PLAIN, {"template": {"spec": {"containers": ["web"]}}}, False),
        (PLAIN, {"template": "settings"}, False),
        (PLAIN, None, False),
    ],
)
def test_an_object_of_another_kind_leads_when_it_has_a_pod_template(
    type_: FederatedType, spec: Any, leads: bool
) -> None:
    leader = _leader()
    leader["spec"]["template"] |= {"apiVersion": "ai.example/v1", "kind": "Engine", "spec": spec}
    assert _followers(leader, type_) == ({SETTINGS: BOTH} if leads else {})


def test_a_type_that_names_a_pod_template_never_follows() -> None:
    scaled = replace(NAMED, scale_target_ref_path=("spec", "scaleTargetRef"))
    assert is_leader_type(NAMED)
    assert not is_leader_type(PLAIN)
    assert not may_follow("ai.example", "Engine", scaled)


def test_an_override_of_the_named_pod_template_is_followed() -> None:
    path = "/spec/worker/template/spec/containers/0/envFrom"
    leader = _leader({"op": "replace", "path": path, "value": [{"configMapRef": {"name": "special"}}]})
    spec = {"worker": {"template": {"spec": {"containers": CONTAINERS}}}}
    leader["spec"]["template"] |= {"apiVersion": "ai.example/v1", "kind": "Engine", "spec": spec}
    assert _followers(leader, NAMED) == {SETTINGS: BOTH, SPECIAL: {"west"}}


def test_what_any_component_refers_to_follows() -> None:
    ray = FederatedType(
        "rayjobs.ray.io",
        Resource("ray.io", "v1", "RayJob", "rayjobs"),
        (),
        components=shipped_components("ray.io", "RayJob"),
    )
    path = "/spec/rayClusterSpec/workerGroupSpecs/0/template/spec/containers/0/envFrom"
    leader = _leader({"op": "add", "path": path, "value": [{"configMapRef": {"name": "special"}}]})
    head = {"containers": CONTAINERS}
    worker = {"containers": [{"name": "ray"}], "serviceAccountName": "runner"}
    submitter = {"containers": [], "volumes": [{"name": "code", "configMap": {"name": "code"}}]}
    cluster = {"headGroupSpec": {"template": {"spec": head}}, "workerGroupSpecs": [{"template": {"spec": worker}}]}
    spec = {"rayClusterSpec": cluster, "submitterPodTemplate": {"spec": submitter}}
    leader["spec"]["template"] |= {"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": spec}
    account, code = Reference("", "ServiceAccount", "runner"), Reference("", "ConfigMap", "code")
    assert _followers(leader, ray) == {SETTINGS: BOTH, account: BOTH, code: BOTH, SPECIAL: {"west"}}
    assert is_leader_type(ray)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"tls": [{"secretName": "cert"}, {"hosts": ["a"]}, {"secretName": 3}]}, {"cert"}),
        ({"tls": {"secretName": "cert"}}, set()),
        ("odd", set()),
    ],
)
def test_a_listed_ingress_takes_the_secrets_of_its_certificates_along(spec: Any, expected: set[str]) -> None:
    listed = '[{"group": "networking.k8s.io", "kind": "Ingress", "name": "web"}]'
    template = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"}, "spec": spec}
    ingress = {"metadata": {"name": "web-ingresses", "namespace": "default"}, "spec": {"template": template}}
    lead = plan_leader(_leader(**{names.FOLLOWERS: listed}), DEPLOYMENT, _find_type, lambda _: ingress)
    assert set(lead.followers) == {SETTINGS, Reference("networking.k8s.io", "Ingress", "web"), *_secrets(*expected)}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [([{"name": "a"}], True), ([], False), (None, False), ({"a": 1}, False), ("abc", False), (["a"], False)],
    ids=str,
)
def test_an_unknown_kind_has_pods_if_its_template_has_containers(containers: Any, expected: bool) -> None:
    template = {
        "apiVersion": "example.com/v1",
        "kind": "Odd",
        "spec": {"template": {"spec": {"containers": containers}}},
    }
    assert is_leader(template, None) is expected
