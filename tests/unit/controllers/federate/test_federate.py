from typing import Any

import orjson
from tests.unit.controllers.hosting import Host

from federation.api import names
from federation.api.resources import (
    CLUSTER_FEDERATED_OBJECTS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
)
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES
from federation.client.client import PatchType
from federation.controllers.federate import controller
from federation.controllers.federate.names import EVENT_CREATE_FEDERATED_OBJECT
from federation.controllers.federate.policyselection import PolicySelection
from federation.runtime.controller import Key

FED = "web-deployments.apps"


def a_deployment(name: str = "web", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}, **metadata},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "creationTimestamp": None},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        },
    }


def a_selected_deployment(name: str = "web", **metadata: Any) -> dict[str, Any]:
    """Return a Deployment that names its policy."""
    labels = {"app": name, names.PROPAGATION_POLICY_LABEL: "p"}
    return a_deployment(name, labels=labels, **metadata)


class Undecided:
    """Places nothing: these tests have no scheduler."""

    async def create_placed(self, key: Key, draft: dict[str, Any]) -> bool:
        return False

    async def update_placed(self, key: Key, federated: dict[str, Any], patch: dict[str, Any], *, writer: str) -> bool:
        return False


def start_controller(host: Host) -> controller.FederateController:
    federate = controller.FederateController(host.wired, PolicySelection(host.informers), Undecided())
    host.start(federate.run)
    return federate


async def started(host: Host, *kinds: str) -> controller.FederateController:
    await host.federate(*(kinds or ("Deployment",)))
    return start_controller(host)


def pending(federated: dict[str, Any]) -> Any:
    return orjson.loads(federated["metadata"]["annotations"][names.PENDING_CONTROLLERS])


async def test_the_embedded_api_server_sets_our_finalizer_on_new_objects(host: Host) -> None:
    federate = await started(host)
    selection = PolicySelection(host.informers)
    host.registry.set_creation_finalizers(controller.first_finalizers(host.types, selection), manager="federation")
    await host.types.wait_synced()
    made = await host.user.create(DEPLOYMENTS, a_selected_deployment(finalizers=["example.com/theirs"]))
    ours = await host.user.create(
        DEPLOYMENTS, a_selected_deployment("not", annotations={names.NO_FEDERATED_RESOURCE: "1"})
    )
    other = await host.user.create(CONFIGMAPS, {"metadata": {"name": "no-type", "namespace": "default"}})
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.settle(federate)

    assert made["metadata"]["finalizers"] == ["example.com/theirs", names.FEDERATE_FINALIZER]
    unselected = await host.user.create(DEPLOYMENTS, a_deployment("unselected"))
    assert not [obj for obj in (ours, other, unselected) if "finalizers" in obj["metadata"]]
    assert host.client.writes == {"create FederatedObject": 1}


async def test_an_object_federated_later_gets_our_finalizer_then(host: Host) -> None:
    federate = await started(host)
    selection = PolicySelection(host.informers)
    host.registry.set_creation_finalizers(controller.first_finalizers(host.types, selection), manager="federation")
    await host.user.create(DEPLOYMENTS, a_selected_deployment(annotations={names.NO_FEDERATED_RESOURCE: "1"}))
    await host.settle(federate)
    body = {"metadata": {"annotations": {names.NO_FEDERATED_RESOURCE: None}}}
    await host.user.patch(DEPLOYMENTS, "web", body, patch_type=PatchType.MERGE, namespace="default")
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.settle(federate)

    assert host.client.writes == {"patch Deployment": 1, "create FederatedObject": 1}
    source = await host.user.get(DEPLOYMENTS, "web", "default")
    assert source["metadata"]["finalizers"] == [names.FEDERATE_FINALIZER]


async def test_a_new_source_costs_two_writes(host: Host) -> None:
    federate = await started(host)
    await host.user.create(DEPLOYMENTS, a_selected_deployment())
    federated = await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.settle(federate)

    assert host.client.writes == {"patch Deployment": 1, "create FederatedObject": 1}
    source = await host.user.get(DEPLOYMENTS, "web", "default")
    assert names.FEDERATE_FINALIZER in source["metadata"]["finalizers"]
    assert federated["metadata"]["finalizers"] == [names.SYNC_FINALIZER]
    assert federated["metadata"]["ownerReferences"][0]["uid"] == source["metadata"]["uid"]
    assert pending(federated) == [[names.GLOBAL_SCHEDULER]]
    assert federated["metadata"]["annotations"][names.IDLE_CONTROLLERS] == names.OVERRIDE_CONTROLLER
    assert federated["spec"]["template"]["spec"]["replicas"] == 2


async def test_a_source_without_a_policy_costs_one_write_and_is_not_held(host: Host) -> None:
    federate = await started(host)
    await host.user.create(DEPLOYMENTS, a_deployment())
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.merge(DEPLOYMENTS, "web", {"status": {"replicas": 2}}, "default", subresource="status")
    await host.settle(federate)

    assert host.client.writes == {"create FederatedObject": 1}
    assert "finalizers" not in (await host.user.get(DEPLOYMENTS, "web", "default"))["metadata"]


async def test_a_placement_that_nothing_announced_lets_our_finalizer_hold_the_source(host: Host) -> None:
    federate = await started(host)
    await host.user.create(DEPLOYMENTS, a_deployment())
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.settle(federate)
    placements = [{"controller": "example.com/mine", "placement": [{"cluster": "east"}]}]
    await host.merge(FEDERATED_OBJECTS, FED, {"spec": {"placements": placements}}, "default")
    await host.find(DEPLOYMENTS, "web", "default", where=lambda obj: obj["metadata"].get("finalizers"))
    await host.settle(federate)
    assert host.client.writes == {"create FederatedObject": 1, "patch Deployment": 1}


async def test_a_source_that_is_not_held_disappears_before_its_federated_object(host: Host) -> None:
    federate = await started(host)
    await host.user.create(DEPLOYMENTS, a_deployment())
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.settle(federate)
    await host.user.delete(DEPLOYMENTS, "web", "default", propagation_policy="Background")
    await host.gone(DEPLOYMENTS, "web", "default")
    await host.find(FEDERATED_OBJECTS, FED, "default", where=lambda obj: obj["metadata"].get("deletionTimestamp"))


async def test_orphaning_a_source_that_is_not_held_keeps_its_member_objects(host: Host) -> None:
    federate = await started(host)
    await host.user.create(DEPLOYMENTS, a_deployment())
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.settle(federate)
    await host.user.delete(DEPLOYMENTS, "web", "default", propagation_policy="Orphan")
    await host.gone(DEPLOYMENTS, "web", "default")
    found = await host.find(
        FEDERATED_OBJECTS, FED, "default", where=lambda obj: obj["metadata"].get("deletionTimestamp")
    )
    assert found["metadata"]["annotations"][names.INTERNAL_ORPHAN] == "all"


async def test_a_hand_written_federated_object_survives_a_deletion_of_its_namesake(host: Host) -> None:
    federate = await started(host)
    await host.user.create(DEPLOYMENTS, a_deployment())
    await host.find(FEDERATED_OBJECTS, FED, "default")
    metadata = {"annotations": {names.HAND_WRITTEN: "true"}, "ownerReferences": None}
    await host.merge(FEDERATED_OBJECTS, FED, {"metadata": metadata}, "default")
    await host.settle(federate)
    await host.merge(FEDERATED_OBJECTS, FED, {"metadata": {"ownerReferences": None}}, "default")
    await host.user.delete(DEPLOYMENTS, "web", "default", propagation_policy="Orphan")
    await host.gone(DEPLOYMENTS, "web", "default")
    await host.settle(federate)
    assert "deletionTimestamp" not in (await host.user.get(FEDERATED_OBJECTS, FED, "default"))["metadata"]


async def test_an_override_policy_that_applies_keeps_its_stage(host: Host) -> None:
    await host.user.create(
        OVERRIDE_POLICIES,
        {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "OverridePolicy",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]},
        },
    )
    await started(host)
    await host.user.create(DEPLOYMENTS, a_deployment())
    federated = await host.find(FEDERATED_OBJECTS, FED, "default")
    assert pending(federated) == [[names.GLOBAL_SCHEDULER], [names.OVERRIDE_CONTROLLER]]


async def test_a_changed_spec_is_one_write_and_starts_the_pipeline_again(host: Host) -> None:
    federate = await started(host)
    await host.user.create(DEPLOYMENTS, a_deployment())
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.merge(
        FEDERATED_OBJECTS, FED, {"metadata": {"annotations": {names.PENDING_CONTROLLERS: "[]"}}}, "default"
    )
    await host.settle(federate)
    host.client.writes.clear()

    await host.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, "default")
    federated = await host.find(
        FEDERATED_OBJECTS, FED, "default", where=lambda obj: obj["spec"]["template"]["spec"]["replicas"] == 5
    )
    await host.settle(federate)
    assert pending(federated) == [[names.GLOBAL_SCHEDULER]]
    assert host.client.writes == {"patch FederatedObject": 1}


async def test_status_costs_nothing_and_feedback_only_the_new_generation(host: Host) -> None:
    federate = await started(host)
    await host.user.create(DEPLOYMENTS, a_deployment())
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.settle(federate)
    host.client.writes.clear()

    await host.merge(DEPLOYMENTS, "web", {"status": {"replicas": 2}}, "default", subresource="status")
    await host.settle(federate)
    assert host.client.writes == {}
    # An annotation is a new generation of a Deployment, and the template has the generation.
    await host.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": {names.SCHEDULING: "{}"}}}, "default")
    await host.settle(federate)
    assert host.client.writes == {"patch FederatedObject": 1}


async def test_a_restart_writes_nothing(host: Host) -> None:
    federate = await started(host)
    await host.user.create(DEPLOYMENTS, a_deployment())
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.merge(DEPLOYMENTS, "web", {"status": {"replicas": 2}}, "default", subresource="status")
    await host.settle(federate)
    host.client.writes.clear()

    again = start_controller(host)
    await host.settle(federate, again)
    assert host.client.writes == {}


async def test_a_deleted_source_waits_for_its_federated_object(host: Host) -> None:
    federate = await started(host)
    await host.user.create(DEPLOYMENTS, a_selected_deployment())
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.user.delete(DEPLOYMENTS, "web", "default", propagation_policy="Background")
    await host.find(FEDERATED_OBJECTS, FED, "default", where=lambda obj: obj["metadata"].get("deletionTimestamp"))
    await host.settle(federate)
    assert (await host.user.get(DEPLOYMENTS, "web", "default"))["metadata"]["deletionTimestamp"]

    await host.merge(FEDERATED_OBJECTS, FED, {"metadata": {"finalizers": None}}, "default")
    await host.gone(FEDERATED_OBJECTS, FED, "default")
    await host.gone(DEPLOYMENTS, "web", "default")


async def test_orphan_deletion_of_a_source_keeps_its_member_objects(host: Host) -> None:
    federate = await started(host)
    await host.user.create(DEPLOYMENTS, a_selected_deployment())
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.settle(federate)
    await host.user.delete(DEPLOYMENTS, "web", "default", propagation_policy="Orphan")
    await host.settle(federate)
    federated = await host.user.get(FEDERATED_OBJECTS, FED, "default")
    assert federated["metadata"]["deletionTimestamp"]
    assert federated["metadata"]["annotations"][names.INTERNAL_ORPHAN] == "all"


async def test_a_deleted_federated_object_is_created_again(host: Host) -> None:
    await started(host)
    await host.user.create(DEPLOYMENTS, a_deployment())
    before = await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.user.delete(FEDERATED_OBJECTS, FED, "default")
    await host.merge(FEDERATED_OBJECTS, FED, {"metadata": {"finalizers": None}}, "default")
    await host.find(
        FEDERATED_OBJECTS, FED, "default", where=lambda obj: obj["metadata"]["uid"] != before["metadata"]["uid"]
    )


async def test_a_foreign_edit_of_the_template_is_reverted(host: Host) -> None:
    await started(host)
    await host.user.create(DEPLOYMENTS, a_deployment())
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.merge(FEDERATED_OBJECTS, FED, {"spec": {"template": {"spec": {"replicas": 99}}}}, "default")
    await host.find(
        FEDERATED_OBJECTS, FED, "default", where=lambda obj: obj["spec"]["template"]["spec"]["replicas"] == 2
    )


async def test_system_objects_are_not_federated(host: Host) -> None:
    federate = await started(host, "ConfigMap", "Namespace")
    for name, namespace in (("kube-root-ca.crt", "default"), ("settings", "kube-system"), ("settings", "default")):
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
        await host.user.create(CONFIGMAPS, config)
    await host.find(FEDERATED_OBJECTS, "settings-configmaps", "default")
    await host.find(CLUSTER_FEDERATED_OBJECTS, "default-namespaces")
    await host.settle(federate)
    federated = (await host.user.list(FEDERATED_OBJECTS)).items + (
        await host.user.list(CLUSTER_FEDERATED_OBJECTS)
    ).items
    assert sorted(obj["metadata"]["name"] for obj in federated) == ["default-namespaces", "settings-configmaps"]
    system = await host.user.get(NAMESPACES, "kube-system")
    assert not system["metadata"].get("finalizers")


async def test_a_type_that_is_no_longer_federated_is_not_watched(host: Host) -> None:
    federate = await started(host)
    await host.user.create(DEPLOYMENTS, a_deployment())
    await host.find(FEDERATED_OBJECTS, FED, "default")
    await host.user.delete(FEDERATED_TYPE_CONFIGS, "deployments.apps")
    await host.until(lambda: host.types.for_group_kind("apps", "Deployment") is None)
    await host.user.create(DEPLOYMENTS, a_deployment("other"))
    await host.settle(federate)
    assert [obj["metadata"]["name"] for obj in (await host.user.list(FEDERATED_OBJECTS)).items] == [FED]


async def test_a_federated_name_collision_warns_the_second_source(host: Host) -> None:
    await started(host)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "x", "controller": True}
    await host.user.create(
        CONFIGMAPS, {"metadata": {"name": "other", "namespace": "default"}} | {"apiVersion": "v1", "kind": "ConfigMap"}
    )
    other = await host.user.get(CONFIGMAPS, "other", "default")
    await host.user.create(
        FEDERATED_OBJECTS,
        {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "FederatedObject",
            "metadata": {
                "name": FED,
                "namespace": "default",
                "ownerReferences": [owner | {"uid": other["metadata"]["uid"]}],
            },
            "spec": {"template": {}},
        },
    )
    await host.until(lambda: host.informers.for_resource(FEDERATED_OBJECTS).get("default", FED))
    await host.user.create(DEPLOYMENTS, a_deployment())
    events = await host.events()
    assert events[0][:2] == ("Deployment", EVENT_CREATE_FEDERATED_OBJECT)
    assert 'belongs to ConfigMap "other"' in events[0][2]
