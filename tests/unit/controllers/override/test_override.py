from typing import Any

import orjson
import pytest
from tests.unit.controllers.hosting import Host

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, OVERRIDE_POLICIES
from federation.apimachinery import conditions
from federation.controllers.override import controller
from federation.controllers.override.names import (
    EVENT_MATCH_OVERRIDE_POLICY_FAILED,
    EVENT_PARSE_OVERRIDE_POLICY_FAILED,
    REASON_OVERRIDE_POLICY_INVALID,
    REASON_OVERRIDE_POLICY_NOT_FOUND,
)

GROUP = "core.kubeadmiral.io/v1alpha1"
FED = "web-deployments.apps"
TURN = orjson.dumps([[names.OVERRIDE_CONTROLLER]]).decode()


def a_federated(pending: str = TURN, name: str = FED, **labels: str) -> dict[str, Any]:
    template = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}, "annotations": {}},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}},
    }
    placement = [{"cluster": "m1"}, {"cluster": "m2"}]
    return {
        "apiVersion": GROUP,
        "kind": "FederatedObject",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels,
            "annotations": {names.PENDING_CONTROLLERS: pending},
        },
        "spec": {
            "template": template,
            "placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": placement}],
        },
    }


def a_policy(tag: str = "2", name: str = "p", selectors: Any = None, **target: Any) -> dict[str, Any]:
    operations = [{"imageComponent": "Tag", "value": tag}]
    spec: dict[str, Any] = {
        "overrideRules": [{"targetClusters": target, "overriders": {"image": [{"operations": operations}]}}]
    }
    if selectors:
        spec["resourceSelectors"] = selectors
    return {
        "apiVersion": GROUP,
        "kind": "OverridePolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def a_cluster(name: str, **labels: str) -> dict[str, Any]:
    spec = {"apiEndpoint": f"https://{name}", "secretRef": {"name": name}}
    return {
        "apiVersion": GROUP,
        "kind": "FederatedCluster",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


LABEL = {names.OVERRIDE_POLICY_LABEL: "p"}
SELECT = [{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "web"}}}]


@pytest.fixture
async def running(host: Host) -> controller.OverrideController:
    await host.federate("Deployment")
    await host.user.create(FEDERATED_CLUSTERS, a_cluster("m1", region="eu"))
    await host.user.create(FEDERATED_CLUSTERS, a_cluster("m2", region="us"))
    override = controller.OverrideController(host.wired)
    host.start(override.run)
    return override


def images(federated: dict[str, Any]) -> dict[str, str]:
    return {
        entry["cluster"]: entry["patches"][-1]["value"]
        for owner in federated["spec"].get("overrides") or ()
        if owner["controller"] == names.OVERRIDE_CONTROLLER
        for entry in owner["clusters"]
    }


def is_done(federated: dict[str, Any]) -> bool:
    return bool(federated["metadata"]["annotations"][names.PENDING_CONTROLLERS] == "[]")


def condition(federated: dict[str, Any]) -> Any:
    return conditions.find((federated.get("status") or {}).get("conditions"), names.OVERRIDES_APPLIED)


async def test_a_policy_by_label_is_one_write(host: Host, running: controller.OverrideController) -> None:
    await host.user.create(OVERRIDE_POLICIES, a_policy(clusterSelector={"region": "eu"}))
    await host.user.create(FEDERATED_OBJECTS, a_federated(**LABEL))
    federated = await host.find(FEDERATED_OBJECTS, FED, "default", where=is_done)
    await host.settle(running)
    assert images(federated) == {"m1": "nginx:2"}
    assert host.client.writes == {"patch FederatedObject": 1}
    assert condition(federated) is None


async def test_a_policy_by_selector_is_applied_and_removed(host: Host, running: controller.OverrideController) -> None:
    await host.user.create(FEDERATED_OBJECTS, a_federated("[]"))
    await host.settle(running)
    assert host.client.writes == {}
    await host.user.create(OVERRIDE_POLICIES, a_policy(selectors=SELECT))
    federated = await host.find(FEDERATED_OBJECTS, FED, "default", where=images)
    assert images(federated) == {"m1": "nginx:2", "m2": "nginx:2"}
    await host.user.delete(OVERRIDE_POLICIES, "p", "default")
    await host.find(FEDERATED_OBJECTS, FED, "default", where=lambda obj: not images(obj))


async def test_changes_of_policies_and_cluster_labels_change_the_overrides(
    host: Host, running: controller.OverrideController
) -> None:
    await host.user.create(OVERRIDE_POLICIES, a_policy(clusterSelector={"region": "eu"}))
    await host.user.create(FEDERATED_OBJECTS, a_federated(**LABEL))
    await host.find(FEDERATED_OBJECTS, FED, "default", where=is_done)
    await host.merge(
        OVERRIDE_POLICIES, "p", {"spec": a_policy("3", clusterSelector={"region": "eu"})["spec"]}, "default"
    )
    await host.find(FEDERATED_OBJECTS, FED, "default", where=lambda obj: images(obj) == {"m1": "nginx:3"})
    await host.merge(FEDERATED_CLUSTERS, "m2", {"metadata": {"labels": {"region": "eu"}}})
    both = {"m1": "nginx:3", "m2": "nginx:3"}
    await host.find(FEDERATED_OBJECTS, FED, "default", where=lambda obj: images(obj) == both)


async def test_overrides_wait_for_earlier_controllers(host: Host, running: controller.OverrideController) -> None:
    before = orjson.dumps([[names.GLOBAL_SCHEDULER], [names.OVERRIDE_CONTROLLER]]).decode()
    await host.user.create(OVERRIDE_POLICIES, a_policy())
    await host.user.create(FEDERATED_OBJECTS, a_federated(before, **LABEL))
    await host.until(lambda: host.informers.for_resource(FEDERATED_OBJECTS).get("default", FED))
    await host.settle(running)
    assert host.client.writes == {}
    await host.merge(
        FEDERATED_OBJECTS, FED, {"metadata": {"annotations": {names.PENDING_CONTROLLERS: TURN}}}, "default"
    )
    assert images(await host.find(FEDERATED_OBJECTS, FED, "default", where=is_done))


async def test_an_object_without_policies_only_leaves_pending_controllers(
    host: Host, running: controller.OverrideController
) -> None:
    await host.user.create(FEDERATED_OBJECTS, a_federated())
    federated = await host.find(FEDERATED_OBJECTS, FED, "default", where=is_done)
    await host.settle(running)
    assert "overrides" not in federated["spec"]
    assert host.client.writes == {"patch FederatedObject": 1}


async def test_a_missing_policy_blocks_the_object_and_is_reported(
    host: Host, running: controller.OverrideController
) -> None:
    await host.user.create(FEDERATED_OBJECTS, a_federated(**LABEL))
    federated = await host.find(FEDERATED_OBJECTS, FED, "default", where=condition)
    assert condition(federated)["reason"] == REASON_OVERRIDE_POLICY_NOT_FOUND
    assert condition(federated)["message"] == 'OverridePolicy "default/p" does not exist'
    assert not is_done(federated)
    events = await host.events()
    assert ("FederatedObject", EVENT_MATCH_OVERRIDE_POLICY_FAILED) in {event[:2] for event in events}

    await host.user.create(OVERRIDE_POLICIES, a_policy())
    federated = await host.find(
        FEDERATED_OBJECTS, FED, "default", where=lambda obj: (condition(obj) or {}).get("status") == "True"
    )
    assert is_done(federated)
    assert images(federated) == {"m1": "nginx:2", "m2": "nginx:2"}


async def test_an_inapplicable_policy_keeps_the_previous_overrides_and_holds_its_clusters(
    host: Host, running: controller.OverrideController
) -> None:
    await host.user.create(OVERRIDE_POLICIES, a_policy())
    await host.user.create(FEDERATED_OBJECTS, a_federated(**LABEL))
    await host.find(FEDERATED_OBJECTS, FED, "default", where=is_done)
    await host.merge(OVERRIDE_POLICIES, "p", {"spec": a_policy("not a tag")["spec"]}, "default")
    federated = await host.find(FEDERATED_OBJECTS, FED, "default", where=condition)
    await host.settle(running)
    assert images(federated) == {"m1": "nginx:2", "m2": "nginx:2"}
    assert condition(federated)["message"] == (
        'OverridePolicy "default/p": spec.overrideRules[0].overriders.image[0].operations[0]: '
        "the value is not a valid tag in clusters [m1,m2]"
    )
    assert is_done(federated)
    failed = orjson.loads(federated["metadata"]["annotations"][names.FAILED_OVERRIDES])
    assert failed.keys() == {"m1", "m2"}
    status_writes = host.client.writes["patch FederatedObject/status"]
    assert status_writes == 1


async def test_overrides_beyond_the_limit_are_reported_and_the_last_ones_kept(
    host: Host, running: controller.OverrideController
) -> None:
    await host.user.create(OVERRIDE_POLICIES, a_policy())
    await host.user.create(FEDERATED_OBJECTS, a_federated(**LABEL))
    await host.find(FEDERATED_OBJECTS, FED, "default", where=is_done)
    large = [{"overriders": {"jsonpatch": [{"path": "/metadata/annotations/x", "value": "x" * 70_000}]}}]
    await host.merge(OVERRIDE_POLICIES, "p", {"spec": {"overrideRules": large}}, "default")
    federated = await host.find(FEDERATED_OBJECTS, FED, "default", where=condition)
    await host.settle(running)
    assert images(federated) == {"m1": "nginx:2", "m2": "nginx:2"}
    message = condition(federated)["message"]
    assert condition(federated)["reason"] == REASON_OVERRIDE_POLICY_INVALID
    assert message.startswith('OverridePolicy "default/p": spec.overrideRules: all overrides of this object have 140,')
    assert "and the limit is 73,728; shorten the patches" in message
    (event,) = [each for each in await host.events() if each[1] == EVENT_PARSE_OVERRIDE_POLICY_FAILED]
    assert message in event[2]

    await host.merge(OVERRIDE_POLICIES, "p", {"spec": a_policy("3")["spec"]}, "default")
    federated = await host.find(FEDERATED_OBJECTS, FED, "default", where=lambda obj: condition(obj)["status"] == "True")
    assert images(federated) == {"m1": "nginx:3", "m2": "nginx:3"}


async def test_a_policy_that_fails_in_one_cluster_overrides_the_other(
    host: Host, running: controller.OverrideController
) -> None:
    policy = a_policy(clusters=["m1"])
    bad = {"targetClusters": {"clusters": ["m2"]}, "overriders": {"jsonpatch": [{"path": "/x/y/z", "value": 1}]}}
    policy["spec"]["overrideRules"].append(bad)
    await host.user.create(OVERRIDE_POLICIES, policy)
    await host.user.create(FEDERATED_OBJECTS, a_federated(**LABEL))
    federated = await host.find(FEDERATED_OBJECTS, FED, "default", where=condition)
    assert images(federated) == {"m1": "nginx:2"}
    assert is_done(federated)
    assert condition(federated)["message"].endswith("in clusters [m2]")

    await host.merge(OVERRIDE_POLICIES, "p", {"spec": a_policy()["spec"]}, "default")
    federated = await host.find(FEDERATED_OBJECTS, FED, "default", where=lambda obj: condition(obj)["status"] == "True")
    assert images(federated) == {"m1": "nginx:2", "m2": "nginx:2"}
    assert names.FAILED_OVERRIDES not in federated["metadata"]["annotations"]


async def test_objects_of_unknown_types_and_deleted_objects_are_ignored(
    host: Host, running: controller.OverrideController
) -> None:
    unknown = a_federated(name="x")
    unknown["spec"]["template"]["kind"] = "Unknown"
    broken = a_federated("not json", name="y")
    await host.user.create(FEDERATED_OBJECTS, unknown)
    await host.user.create(FEDERATED_OBJECTS, broken)
    await host.until(lambda: host.informers.for_resource(FEDERATED_OBJECTS).get("default", "y"))
    await host.settle(running)
    assert host.client.writes == {}
