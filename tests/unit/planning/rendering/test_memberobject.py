"""The rendered member object."""

from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.apimachinery import wellknown
from federation.apimachinery.resources import (
    API_SERVICES,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    SERVICES,
    Resource,
)
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.rendering.memberobject import Renderer, RenderError, content_hash


def federated(template: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": {"template": template, **spec}}


def renderer(template: dict[str, Any], resource: Resource = DEPLOYMENTS, **spec: Any) -> Renderer:
    controllers = ((names.GLOBAL_SCHEDULER,), (names.OVERRIDE_CONTROLLER,))
    return Renderer(federated(template, **spec), FederatedType("x", resource, controllers))


def deployment(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", **metadata},
        "spec": {"replicas": 1},
    }


def override(controller: str, path: str, value: Any, op: str = "replace") -> dict[str, Any]:
    patches = [{"op": op, "path": path, "value": value}]
    return {"controller": controller, "clusters": [{"cluster": "m1", "patches": patches}]}


def test_identity_status_and_bookkeeping_are_not_sent() -> None:
    template = deployment(
        generation=4,
        uid="u",
        resourceVersion="7",
        managedFields=[],
        annotations={wellknown.LAST_APPLIED_CONFIGURATION: "{}", "team": "blue"},
    )
    rendered = renderer({**template, "status": {"replicas": 1}}).render("m1")
    assert rendered.object["metadata"] == {
        "name": "web",
        "namespace": "default",
        "labels": {names.MANAGED_LABEL: "true"},
        "annotations": {"team": "blue", names.SOURCE_GENERATION: "4", names.TEMPLATE_HASH: rendered.hash},
    }
    assert "status" not in rendered.object


def test_a_member_does_not_get_the_label_of_apis_that_the_host_serves() -> None:
    labels = {wellknown.AUTOMANAGED_API: "true", "k8s-app": "metrics-server"}
    template = {
        "apiVersion": API_SERVICES.api_version,
        "kind": API_SERVICES.kind,
        "metadata": {"name": "v1beta1.metrics.k8s.io", "labels": labels},
        "spec": {"service": {"name": "metrics-server", "namespace": "kube-system"}},
    }
    sent = renderer(template, API_SERVICES).render("m1").object["metadata"]["labels"]
    assert sent == {"k8s-app": "metrics-server", names.MANAGED_LABEL: "true"}


def test_an_override_of_all_annotations_sends_no_bookkeeping_and_keeps_ours() -> None:
    annotations = {wellknown.LAST_APPLIED_CONFIGURATION: "{}", wellknown.DEPLOYMENT_REVISION: "3", "team": "blue"}
    replaced = override(names.OVERRIDE_CONTROLLER, "/metadata/annotations", {**annotations, "cost": "low"})
    rendered = renderer(deployment(generation=4, annotations=annotations), overrides=[replaced]).render("m1")
    assert rendered.object["metadata"]["annotations"] == {
        "team": "blue",
        "cost": "low",
        names.SOURCE_GENERATION: "4",
        names.TEMPLATE_HASH: rendered.hash,
    }


def test_the_hash_depends_on_content_only() -> None:
    first = renderer(deployment(labels={"a": "1", "b": "2"})).render("m1")
    same = renderer(deployment(labels={"b": "2", "a": "1"})).render("m2")
    other = renderer(deployment(labels={"a": "1", "b": "3"})).render("m1")
    assert first.hash == same.hash != other.hash


def test_overrides_apply_in_the_order_of_the_pipeline_whatever_the_order_of_the_entries() -> None:
    overrides = [
        override("somebody-else", "/spec/replicas", 9),
        override(names.OVERRIDE_CONTROLLER, "/spec/replicas", 5),
        override(names.GLOBAL_SCHEDULER, "/spec/replicas", 3),
    ]
    assert renderer(deployment(), overrides=overrides[1:]).render("m1").object["spec"]["replicas"] == 5
    assert renderer(deployment(), overrides=overrides).render("m1").object["spec"]["replicas"] == 9


def test_one_clusters_override_leaves_template_and_other_clusters_alone() -> None:
    template = deployment()
    both = renderer(template, overrides=[override(names.OVERRIDE_CONTROLLER, "/spec/replicas", 5)])
    assert both.render("m1").object["spec"]["replicas"] == 5
    assert both.render("m2").object["spec"]["replicas"] == 1
    assert template["spec"]["replicas"] == 1
    assert both.render("m3") is both.render("m2")


def test_finalizers_may_be_appended() -> None:
    overrides = [override(names.OVERRIDE_CONTROLLER, "/metadata/finalizers/-", "a/b", op="add")]
    assert renderer(deployment(), overrides=overrides).render("m1").object["metadata"]["finalizers"] == ["a/b"]


@pytest.mark.parametrize("path", ["/metadata/name", "/metadata/namespace", "/metadata/generateName", "/kind"])
def test_an_override_must_not_change_the_identity(path: str) -> None:
    with pytest.raises(RenderError, match="invalid override path"):
        renderer(deployment(), overrides=[override(names.OVERRIDE_CONTROLLER, path, "x")]).render("m1")


def test_replacing_the_metadata_may_not_rename() -> None:
    overrides = [override(names.OVERRIDE_CONTROLLER, "/metadata", {"name": "other", "namespace": "default"})]
    with pytest.raises(RenderError, match="must not change"):
        renderer(deployment(), overrides=overrides).render("m1")


def test_an_override_that_does_not_apply_is_an_error() -> None:
    with pytest.raises(RenderError, match="nothing"):
        renderer(deployment(), overrides=[override("x", "/spec/nothing", None, op="remove")]).render("m1")


def test_a_services_address_is_the_members_own_except_headless() -> None:
    def spec_of(spec: dict[str, Any]) -> Any:
        template = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}
        return renderer(template, SERVICES).render("m1").object["spec"]

    assert spec_of({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "type": "ClusterIP"}) == {"type": "ClusterIP"}
    assert spec_of({"clusterIP": "None"}) == {"clusterIP": "None"}


def test_a_jobs_generated_selector_is_the_members_own() -> None:
    labels = {"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u", "job-name": "j", "app": "a"}
    template = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
            "template": {"metadata": {"labels": labels}, "spec": {}},
        },
    }
    spec = renderer(template, JOBS).render("m1").object["spec"]
    assert "selector" not in spec
    assert spec["template"]["metadata"]["labels"] == {"app": "a"}
    assert renderer({**template, "spec": None}, JOBS).render("m1").object["spec"] is None
    manual = {**template, "spec": {**template["spec"], "manualSelector": True}}  # type: ignore[dict-item]
    assert renderer(manual, JOBS).render("m1").object["spec"]["selector"]


BOUND = {wellknown.BOUND_BY_CONTROLLER: "yes", "pv.kubernetes.io/bind-completed": "yes"}
CLAIM = {"namespace": "default", "name": "data", "uid": "u1", "resourceVersion": "7"}


@pytest.mark.parametrize(
    ("resource", "annotations", "spec", "expected"),
    [
        (PERSISTENT_VOLUME_CLAIMS, BOUND, {"volumeName": "pvc-1", "volumeMode": "Block"}, {"volumeMode": "Block"}),
        (PERSISTENT_VOLUME_CLAIMS, {}, {"volumeName": "mine"}, {"volumeName": "mine"}),
        (PERSISTENT_VOLUMES, BOUND, {"claimRef": CLAIM, "x": 1}, {"x": 1}),
        (PERSISTENT_VOLUMES, {}, {"claimRef": CLAIM}, {"claimRef": {"namespace": "default", "name": "data"}}),
        (PERSISTENT_VOLUMES, {}, {"x": 1}, {"x": 1}),
        (PODS, {}, {"priority": 7, "preemptionPolicy": "Never", "priorityClassName": "p"}, {"priorityClassName": "p"}),
        (DAEMON_SETS, {"deprecated.daemonset.template.generation": "3"}, {"x": 1}, {"x": 1}),
        (JOBS, {}, {"suspend": False, "x": 1}, {"x": 1}),
        (JOBS, {}, {"suspend": True}, {"suspend": True}),
    ],
)
def test_what_the_hosts_controllers_wrote_stays_on_the_host(
    resource: Resource, annotations: dict[str, str], spec: dict[str, Any], expected: dict[str, Any]
) -> None:
    metadata = {"name": "x", "annotations": {**annotations, "team": "blue"}}
    template = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
    rendered = renderer(template, resource).render("m1")
    assert rendered.object["spec"] == expected
    assert rendered.object["metadata"]["annotations"] == {"team": "blue", names.TEMPLATE_HASH: rendered.hash}
    assert template["spec"] == spec


def test_the_hash_of_a_job_tells_whether_it_is_suspended() -> None:
    def hash_of(**spec: Any) -> str:
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": spec}
        return renderer(job, JOBS).render("m1").hash

    assert len({hash_of(suspend=True), hash_of(suspend=False)}) == 2


def test_a_secrets_texts_become_data_as_a_server_does_it() -> None:
    template = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}
    rendered = renderer(template, SECRETS).render("m1").object
    assert rendered["data"] == {"a": "Yg=="}
    assert "stringData" not in rendered


def test_the_placement_is_the_union_of_all_controllers() -> None:
    placements = [
        {"controller": "a", "placement": [{"cluster": "m1"}]},
        {"controller": "b", "placement": [{"cluster": "m1"}, {"cluster": "m2"}]},
    ]
    assert effective_placement(federated({}, placements=placements)) == {"m1", "m2"}


@pytest.mark.parametrize("is_divided", [True, False])
def test_a_divided_workload_has_the_revision_of_its_pod_template(is_divided: bool) -> None:
    placement = {"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "m1"}]}
    parts = [override(names.GLOBAL_SCHEDULER, "/spec/replicas", 2)] if is_divided else []
    (type_,) = (found for found in map(from_config, default_type_configs()) if found.resource == DEPLOYMENTS)
    rendered = Renderer(federated(deployment(), placements=[placement], overrides=parts), type_).render("m1")
    annotations = rendered.object["metadata"]["annotations"]
    assert (names.TEMPLATE_REVISION in annotations) is is_divided


def test_a_content_has_the_same_hash_in_all_versions() -> None:
    """Another hash writes every object of every member once more."""
    expected = "4af4ebedf92941d077dc7493d270ee42"
    assert content_hash({"b": [1], "a": {"d": 2, "c": None}}) == expected
    assert content_hash({"a": {"c": None, "d": 2}, "b": [1]}) == expected


def test_an_override_of_what_a_server_writes_is_not_judged() -> None:
    entry = override(names.OVERRIDE_CONTROLLER, "/metadata/uid", "u1", op="add")
    entry["clusters"][0]["patches"].append({"op": "add", "path": "/metadata/labels", "value": {"a": "b"}})
    subject = renderer(deployment(), overrides=[entry]).subject("m1")
    assert subject is not None
    assert subject.object["metadata"] == {"name": "web", "namespace": "default", "labels": {"a": "b"}}
