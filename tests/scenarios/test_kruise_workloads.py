"""CloneSets and the StatefulSets of apps.kruise.io: delivered definitions, division, updates in place."""

import copy
from collections.abc import Sequence
from typing import Any

from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import (
    ADVANCED_STATEFUL_SETS,
    CLONE_SETS,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery import conditions
from federation.apimachinery.resources import CRDS, PODS, Object, Resource

_KINDS = (CLONE_SETS, ADVANCED_STATEFUL_SETS)
LOST = {"taints": [{"key": "lost", "effect": "NoExecute"}]}


def _workload(resource: Resource, name: str, replicas: int, **spec: Any) -> Object:
    labels = {"app": name}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}},
            **spec,
        },
    }


async def _prepare(world: World, clusters: Sequence[str]) -> None:
    """Send the definitions to the members, and divide the kinds evenly over the clusters."""
    selectors = [{"apiVersion": CRDS.api_version, "kind": CRDS.kind, "name": kind.group_resource} for kind in _KINDS]
    everywhere = {"schedulingMode": "Duplicate", "tolerations": [{"operator": "Exists"}]}
    definitions = a_policy({}, name="kinds", resourceSelectors=selectors, **everywhere)
    del definitions["metadata"]["namespace"]
    definitions["kind"] = CLUSTER_PROPAGATION_POLICIES.kind
    await world.create(CLUSTER_PROPAGATION_POLICIES, definitions)
    kinds = [{"apiVersion": kind.api_version, "kind": kind.kind} for kind in _KINDS]
    await world.create(PROPAGATION_POLICIES, a_policy(dict.fromkeys(clusters, 1), resourceSelectors=kinds))


async def _pods(world: World) -> dict[str, dict[str, tuple[str, str]]]:
    """Return uid and running image of the pods in each member, by name."""
    found = {}
    for name, member in world.members.items():
        pods = [pod for pod in (await member.admin.list(PODS)).items if not pod["metadata"].get("deletionTimestamp")]
        found[name] = {
            pod["metadata"]["name"]: (
                pod["metadata"]["uid"],
                next((each["image"] for each in (pod.get("status") or {}).get("containerStatuses") or ()), ""),
            )
            for pod in pods
        }
    return found


async def _sizes(world: World) -> dict[str, int]:
    return {cluster: len(pods) for cluster, pods in (await _pods(world)).items()}


async def _status(world: World, resource: Resource, name: str) -> Object:
    found = await world.user.get(resource, name, "default")
    status = found.get("status") or {}
    return status if status.get("observedGeneration") == found["metadata"]["generation"] else {}


async def test_a_clone_set_is_divided_updated_in_place_and_moved_from_a_lost_cluster() -> None:
    async with a_world() as world:
        await _prepare(world, ("east", "north", "west"))
        strategy = {"type": "InPlaceIfPossible", "maxUnavailable": "100%"}
        await world.create(CLONE_SETS, _workload(CLONE_SETS, "web", 3, updateStrategy=strategy))
        await world.until_equal(lambda: _sizes(world), {"east": 1, "north": 1, "west": 1})
        await world.user.patch(CLONE_SETS, "web", {"spec": {"replicas": 6}}, namespace="default", subresource="scale")
        await world.until_equal(lambda: _sizes(world), {"east": 2, "north": 2, "west": 2})

        async def counts() -> tuple[Any, ...]:
            status = await _status(world, CLONE_SETS, "web")
            fields = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas")
            return tuple(status.get(field) for field in fields)

        await world.until_equal(counts, (6, 6, 6, 6, 6))
        status = await _status(world, CLONE_SETS, "web")
        assert status["currentRevision"] == status["updateRevision"]
        assert status["labelSelector"] == "app=web"
        assert conditions.is_true(status["conditions"], names.SCHEDULED)
        assert conditions.is_true(status["conditions"], names.PROPAGATED)

        # A canary: a third of the pods is updated, in place, those of the last cluster first.
        before = await _pods(world)
        template = copy.deepcopy(_workload(CLONE_SETS, "web", 6)["spec"]["template"])
        template["spec"]["containers"][0]["image"] = "web:2"
        change = {"spec": {"template": template, "updateStrategy": {"partition": 4}}}
        await world.merge(CLONE_SETS, "web", change)

        async def images() -> dict[str, list[str]]:
            return {
                cluster: sorted(each[1] for each in pods.values()) for cluster, pods in (await _pods(world)).items()
            }

        await world.until_equal(images, {"east": ["web:1"] * 2, "north": ["web:1"] * 2, "west": ["web:2"] * 2})
        await world.until_equal(counts, (6, 6, 6, 2, 2))
        await world.merge(CLONE_SETS, "web", {"spec": {"updateStrategy": {"partition": 0}}})
        await world.until_equal(images, {cluster: ["web:2"] * 2 for cluster in ("east", "north", "west")})
        after = await _pods(world)
        assert {c: {n: each[0] for n, each in pods.items()} for c, pods in after.items()} == {
            c: {n: each[0] for n, each in pods.items()} for c, pods in before.items()
        }

        world.members["east"].line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": LOST})
        await world.until_equal(lambda: _sizes(world), {"east": 2, "north": 3, "west": 3})
        world.members["east"].line.mode = "up"
        await world.until_equal(lambda: _sizes(world), {"east": 0, "north": 3, "west": 3})
        await world.until_equal(counts, (6, 6, 6, 6, 6))


async def test_an_advanced_stateful_set_numbers_its_pods_apart() -> None:
    async with a_world(members=("east", "north")) as world:
        await _prepare(world, ("east", "north"))
        rolling = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2}
        spec = {
            "podManagementPolicy": "Parallel",
            "reserveOrdinals": [1, "1000-1001"],
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        }
        await world.create(ADVANCED_STATEFUL_SETS, _workload(ADVANCED_STATEFUL_SETS, "db", 4, **spec))

        async def pods() -> dict[str, list[str]]:
            return {cluster: sorted(found) for cluster, found in (await _pods(world)).items()}

        apart = {"east": ["db-0", "db-2"], "north": ["db-1002", "db-1003"]}
        await world.until_equal(pods, apart)
        before = await _pods(world)
        template = _workload(ADVANCED_STATEFUL_SETS, "db", 4)["spec"]["template"]
        template["spec"]["containers"][0]["image"] = "web:2"
        await world.merge(ADVANCED_STATEFUL_SETS, "db", {"spec": {"template": template}})

        async def counts() -> tuple[Any, ...]:
            status = await _status(world, ADVANCED_STATEFUL_SETS, "db")
            fields = ("replicas", "readyReplicas", "updatedReplicas", "updatedReadyReplicas")
            return tuple(status.get(field) for field in fields)

        await world.until_equal(counts, (4, 4, 4, 4))
        after = await _pods(world)
        assert {name: each[0] for name, each in after["north"].items()} == {
            name: each[0] for name, each in before["north"].items()
        }
        assert {image for found in after.values() for _, image in found.values()} == {"web:2"}


async def test_a_member_whose_kind_has_no_ordinals_refuses_a_second_range() -> None:
    (theirs,) = (crd for crd in crd_manifests() if crd["metadata"]["name"] == ADVANCED_STATEFUL_SETS.group_resource)
    theirs = copy.deepcopy(theirs)
    del theirs["metadata"]["labels"]
    for version in theirs["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        del spec["properties"]["ordinals"], spec["x-kubernetes-preserve-unknown-fields"]
    async with a_world(members=("east", "north")) as world:
        north = world.members["north"]
        await north.admin.create(CRDS, theirs)
        await _prepare(world, ("east", "north"))
        await world.create(ADVANCED_STATEFUL_SETS, _workload(ADVANCED_STATEFUL_SETS, "db", 2))

        async def delivered() -> tuple[Any, bool, bool]:
            found = await world.user.get(ADVANCED_STATEFUL_SETS, "db", "default")
            each = conditions.find((found.get("status") or {}).get("conditions"), names.PROPAGATED) or {}
            return each.get("status"), "north" in each.get("message", ""), "ordinals" in each.get("message", "")

        await world.until_equal(delivered, ("False", True, True))
        assert await _sizes(world) == {"east": 1, "north": 0}
        kept = await north.find(CRDS, ADVANCED_STATEFUL_SETS.group_resource, "")
        assert kept is not None
        assert kept["spec"]["versions"] == theirs["spec"]["versions"], "the member keeps its own definition"
        assert any("field not declared" in text for _, text in await world.events())

        # With a definition that has the field, the rest is delivered.
        await north.admin.delete(CRDS, ADVANCED_STATEFUL_SETS.group_resource)
        await world.until_equal(lambda: _sizes(world), {"east": 1, "north": 1})
