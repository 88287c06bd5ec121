from typing import Any

import orjson
import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.planning.federatedobject import builder, changes, eligibility
from federation.planning.federatedobject.names import BOOTSTRAPPING_LABEL

TYPES = {config["spec"]["sourceType"]["kind"]: from_config(config) for config in default_type_configs()}
DEPLOYMENT = TYPES["Deployment"]
IDLE = (names.OVERRIDE_CONTROLLER,)


def a_source(kind: str = "Deployment", **metadata: Any) -> dict[str, Any]:
    type_ = TYPES[kind]
    obj: dict[str, Any] = {
        "apiVersion": type_.resource.api_version,
        "kind": kind,
        "metadata": {"name": "web", "uid": "u1", "resourceVersion": "7", "generation": 1, **metadata},
        "spec": {"replicas": 2},
    }
    if type_.resource.namespaced:
        obj["metadata"].setdefault("namespace", "default")
    return obj


def stored(source: dict[str, Any], type_: FederatedType = DEPLOYMENT, idle: tuple[str, ...] = ()) -> dict[str, Any]:
    federated = builder.build(source, type_, idle=idle)
    federated["metadata"]["resourceVersion"] = "9"
    return orjson.loads(orjson.dumps(federated))


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386, as the API server does it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def test_a_users_mark_of_derived_services_does_not_reach_members() -> None:
    source = a_source("Service", annotations={names.DERIVED_SERVICE: "true", "team": "web"})
    federated = builder.build(source, TYPES["Service"])
    # In a member it would say that the object belongs to service discovery, and deletion would leave it there.
    assert federated["spec"]["template"]["metadata"]["annotations"] == {"team": "web"}


def test_a_new_federated_object_is_complete_in_one_write() -> None:
    federated = builder.build(a_source(), DEPLOYMENT)
    metadata = federated["metadata"]
    assert (metadata["namespace"], metadata["name"]) == ("default", "web-deployments.apps")
    assert metadata["finalizers"] == [names.SYNC_FINALIZER]
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "web",
            "uid": "u1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert orjson.loads(metadata["annotations"][names.PENDING_CONTROLLERS]) == [
        [names.GLOBAL_SCHEDULER],
        [names.OVERRIDE_CONTROLLER],
    ]
    assert builder.source_key(federated) == ("apps/v1", "Deployment", "default", "web")


def test_an_idle_controller_is_left_out_and_named() -> None:
    annotations = builder.build(a_source(), DEPLOYMENT, idle=IDLE)["metadata"]["annotations"]
    assert orjson.loads(annotations[names.PENDING_CONTROLLERS]) == [[names.GLOBAL_SCHEDULER]]
    assert annotations[names.IDLE_CONTROLLERS] == names.OVERRIDE_CONTROLLER


def test_a_type_without_the_idle_controller_does_not_mention_it() -> None:
    type_ = FederatedType("x", DEPLOYMENT.resource, ())
    assert names.IDLE_CONTROLLERS not in builder.build(a_source(), type_, idle=IDLE)["metadata"]["annotations"]


def test_nothing_is_written_when_nothing_changed() -> None:
    source = a_source(labels={"app": "web", names.PROPAGATION_POLICY_LABEL: "p"}, annotations={"team": "x"})
    assert builder.plan_update(source, stored(source), DEPLOYMENT) is None


def test_status_feedback_and_bookkeeping_change_nothing() -> None:
    source = a_source(annotations={"team": "x"})
    federated = stored(source)
    later = a_source(
        annotations={"team": "x", names.SCHEDULING: "{}"},
        resourceVersion="8",
        finalizers=[names.FEDERATE_FINALIZER],
        managedFields=[{}],
    )
    later["status"] = {"replicas": 2}
    assert builder.plan_update(later, federated, DEPLOYMENT) is None


def test_nulls_in_a_manifest_do_not_make_an_endless_update() -> None:
    source = a_source()
    source["spec"]["template"] = {"metadata": {"creationTimestamp": None}}
    assert builder.plan_update(source, stored(source), DEPLOYMENT) is None


def test_a_changed_template_is_patched_and_starts_the_pipeline_again() -> None:
    source = a_source(annotations={"team": "x", names.NO_SCHEDULING: "true"}, labels={"app": "web", "old": "1"})
    federated = stored(source)
    federated["metadata"]["annotations"] |= {names.PENDING_CONTROLLERS: "[]", names.SCHEDULING_TRIGGERS: "kept"}
    later = a_source(generation=2, annotations={"team": "y"}, labels={"app": "web", names.OVERRIDE_POLICY_LABEL: "o"})
    later["spec"] = {"replicas": 5}

    patch = builder.plan_update(later, federated, DEPLOYMENT)

    assert patch is not None
    assert patch["metadata"]["resourceVersion"] == "9"
    assert patch["spec"] == {
        "template": {
            "metadata": {"generation": 2, "annotations": {"team": "y"}, "labels": {"old": None}},
            "spec": {"replicas": 5},
        }
    }
    result = merge(federated, patch)
    annotations = result["metadata"]["annotations"]
    assert orjson.loads(annotations[names.PENDING_CONTROLLERS]) == [
        [names.GLOBAL_SCHEDULER],
        [names.OVERRIDE_CONTROLLER],
    ]
    assert annotations[names.SCHEDULING_TRIGGERS] == "kept"
    assert names.NO_SCHEDULING not in annotations
    assert result["metadata"]["labels"] == {"apps/v1": "Deployment", names.OVERRIDE_POLICY_LABEL: "o"}
    assert builder.plan_update(later, result, DEPLOYMENT) is None


def test_an_update_forgets_that_a_controller_was_idle_when_it_no_longer_is() -> None:
    federated = stored(a_source(), idle=IDLE)
    later = a_source(labels={names.OVERRIDE_POLICY_LABEL: "o"})
    patch = builder.plan_update(later, federated, DEPLOYMENT)
    assert patch is not None
    assert patch["metadata"]["annotations"][names.IDLE_CONTROLLERS] is None
    again = builder.plan_update(later, federated, DEPLOYMENT, idle=IDLE)
    assert again is not None
    assert again["metadata"]["annotations"][names.IDLE_CONTROLLERS] == names.OVERRIDE_CONTROLLER


def test_an_orphaned_federated_object_gets_its_owner_back() -> None:
    federated = stored(a_source())
    federated["metadata"]["ownerReferences"] = [{"kind": "Other", "uid": "z"}]
    patch = builder.plan_update(a_source(), federated, DEPLOYMENT)
    assert patch is not None
    assert [owner["kind"] for owner in patch["metadata"]["ownerReferences"]] == ["Other", "Deployment"]
    assert "spec" not in patch


@pytest.mark.parametrize(
    ("source", "is_excluded"),
    [
        (a_source(), False),
        (a_source(namespace="kube-system"), True),
        (a_source(namespace=names.SYSTEM_NAMESPACE), True),
        (a_source(annotations={names.NO_FEDERATED_RESOURCE: "1"}), True),
        (a_source(annotations={names.NO_FEDERATED_RESOURCE: ""}), False),
        (a_source("Namespace", name="kube-public"), True),
        (a_source("Namespace", name=names.SYSTEM_NAMESPACE), True),
        (a_source("Namespace", name="shop"), False),
        (a_source("ClusterRole", name="system:node", labels={BOOTSTRAPPING_LABEL: "rbac-defaults"}), True),
        (a_source("ClusterRole", name="mine"), False),
        (a_source("PriorityClass", name="system-node-critical"), True),
        (a_source("PriorityClass", name="batch"), False),
        (a_source("ConfigMap", name="kube-root-ca.crt"), True),
        (a_source("ConfigMap", name="settings"), False),
        (a_source("ServiceAccount", name="default"), True),
        (a_source("ServiceAccount", name="robot"), False),
        (a_source("Secret") | {"type": "kubernetes.io/service-account-token"}, True),
        (a_source("Secret") | {"type": "Opaque"}, False),
        (a_source("Service", name="kubernetes"), True),
        (a_source("Service", name="kubernetes", namespace="shop"), False),
        (a_source("CustomResourceDefinition") | {"spec": {"group": "core.kubeadmiral.io"}}, True),
        (a_source("CustomResourceDefinition") | {"spec": {"group": "example.com"}}, False),
        (a_source("Job", ownerReferences=[{"kind": "CronJob", "controller": True}]), True),
        (a_source("Job", ownerReferences=[{"kind": "CronJob"}]), False),
        (
            a_source(
                ownerReferences=[{"kind": "App", "controller": True}], labels={names.PROPAGATION_POLICY_LABEL: "p"}
            ),
            False,
        ),
    ],
)
def test_what_the_system_makes_by_itself_is_left_alone(source: dict[str, Any], is_excluded: bool) -> None:
    assert bool(eligibility.exclusion(source)) is is_excluded


FINALIZED = {"finalizers": [names.FEDERATE_FINALIZER]}


@pytest.mark.parametrize(
    ("before", "after", "is_relevant"),
    [
        ({}, {"resourceVersion": "8", "managedFields": [{}]}, False),
        ({}, {"annotations": {names.SCHEDULING: "{}"}}, False),
        ({"annotations": {"a": "1"}}, {"annotations": {"a": "1", names.SCHEDULING: "{}"}}, False),
        ({}, {"annotations": {"a": "1"}}, True),
        ({}, {"labels": {"a": "1"}}, True),
        ({}, {"generation": 2}, True),
        ({}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, True),
        ({}, {"uid": "u2"}, True),
        ({}, {"finalizers": []}, True),
    ],
)
def test_only_changes_that_may_change_the_federated_object_are_relevant(
    before: dict[str, Any], after: dict[str, Any], is_relevant: bool
) -> None:
    old, new = a_source(**{**FINALIZED, **before}), a_source(**{**FINALIZED, **after})
    new["status"] = {"replicas": 9}
    assert changes.is_relevant_change(old, new) is is_relevant


def test_kinds_without_generation_are_compared_by_content() -> None:
    old = a_source("ConfigMap", **FINALIZED) | {"data": {"a": "1"}}
    same = a_source("ConfigMap", **FINALIZED, resourceVersion="8") | {"data": {"a": "1"}}
    other = a_source("ConfigMap", **FINALIZED) | {"data": {"a": "2"}}
    for obj in (old, same, other):
        del obj["metadata"]["generation"]
    assert not changes.is_relevant_change(old, same)
    assert changes.is_relevant_change(old, other)


def _deleted() -> dict[str, Any]:
    source = a_source(annotations={names.STICKY_CLUSTER: "true"})
    deleted = stored(source)
    deleted["metadata"]["annotations"] |= {
        names.SCHEDULING_TRIGGERS: "{}",
        names.HAND_WRITTEN: "true",
        names.WRITTEN_AGAIN: "true",
        names.DEPARTED_CLUSTERS: '["north"]',
    }
    placement = [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "east"}]}]
    deleted["spec"] |= {"placements": placement, "overrides": []}
    deleted["status"] = {"clusters": [{"cluster": "east", "status": "OK"}, {"cluster": "west", "status": "OK"}]}
    return deleted


def test_the_replacement_of_a_deleted_federated_object_keeps_its_placement_and_triggers() -> None:
    deleted = _deleted()
    built = builder.rebuild(a_source(annotations={names.STICKY_CLUSTER: "true"}), deleted, DEPLOYMENT)
    assert built["spec"]["placements"] == deleted["spec"]["placements"]
    annotations = built["metadata"]["annotations"]
    assert annotations[names.SCHEDULING_TRIGGERS] == "{}"
    assert annotations[names.STICKY_CLUSTER] == "true"
    assert orjson.loads(annotations[names.DEPARTED_CLUSTERS]) == ["north", "west"]
    assert not annotations.keys() & {names.HAND_WRITTEN, names.WRITTEN_AGAIN}
    assert built["metadata"]["finalizers"] == [names.SYNC_FINALIZER]
    assert "resourceVersion" not in built["metadata"]


def test_the_replacement_lacks_annotations_that_the_source_has_lost() -> None:
    built = builder.rebuild(a_source(), _deleted(), DEPLOYMENT)
    assert names.STICKY_CLUSTER not in built["metadata"]["annotations"]
