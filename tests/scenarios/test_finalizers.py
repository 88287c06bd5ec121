"""Whatever is deleted ends, in any order, and says meanwhile what it waits for (docs/reference/finalizers.md)."""

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import (
    CLUSTER_FEDERATED_OBJECTS,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery import conditions, finalizers
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import (
    CRDS,
    DEPLOYMENTS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    Object,
    Resource,
)
from federation.controllers.cluster.names import EVENT_TERMINATING_CLUSTER_FAILED
from federation.planning.status.finalizers import OF_HOST, OURS

MEMBERS = ("east", "west")
WIDGETS = Resource("example.com", "v1", "Widget", "widgets")


def _manifest(resource: Resource, name: str, namespace: str, **fields: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if resource.namespaced else {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}


def _policy(*resources: Resource) -> Object:
    selectors = [{"apiVersion": each.api_version, "kind": each.kind} for each in resources]
    policy = a_policy({}, name="everywhere", resourceSelectors=selectors, schedulingMode="Duplicate")
    del policy["metadata"]["namespace"]
    return {**policy, "kind": "ClusterPropagationPolicy"}


VOLUME_SPEC = {
    "storageClassName": "manual",
    "capacity": {"storage": "10Gi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/data"},
}
CLAIM_SPEC = {
    "storageClassName": "manual",
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "3Gi"}},
}
POD_SPEC = {
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    "containers": [{"name": "main", "image": "web:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
}


DEFINITION = _manifest(
    CRDS,
    "widgets.example.com",
    "",
    spec={
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
)


class Tutorial:
    """A volume, its claim and a pod in a namespace of their own, as a tutorial's file has them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.parts = {
            "volume": (PERSISTENT_VOLUMES, "disk", ""),
            "claim": (PERSISTENT_VOLUME_CLAIMS, "data", "shop"),
            "pod": (PODS, "web", "shop"),
            "namespace": (NAMESPACES, "shop", ""),
        }

    async def create(self, **pod: Any) -> None:
        """Create all of it, and wait until it runs in the members."""
        world = self.world
        await world.create(CLUSTER_PROPAGATION_POLICIES, _policy(PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, PODS))
        await world.create(NAMESPACES, _manifest(NAMESPACES, "shop", ""))
        await world.create(PERSISTENT_VOLUMES, _manifest(PERSISTENT_VOLUMES, "disk", "", spec=VOLUME_SPEC))
        await world.create(
            PERSISTENT_VOLUME_CLAIMS, _manifest(PERSISTENT_VOLUME_CLAIMS, "data", "shop", spec=CLAIM_SPEC)
        )
        await world.create(PODS, _manifest(PODS, "web", "shop", spec={**POD_SPEC, **pod}))
        await world.until_equal(self.phases, ("Bound", "Bound", "Running"))
        await world.settle()

    async def phases(self) -> tuple[Any, ...]:
        found = [await self.find(part) for part in ("volume", "claim", "pod")]
        return tuple(((each or {}).get("status") or {}).get("phase") for each in found)

    async def find(self, part: str) -> Object | None:
        return await self.world.find(*self.parts[part])

    async def delete(self, *parts: str) -> None:
        for part in parts:
            resource, name, namespace = self.parts[part]
            with contextlib.suppress(NotFound):  # its namespace has taken it along
                await self.world.user.delete(resource, name, namespace)

    async def until_gone(self, parts: Sequence[str] = ("volume", "claim", "pod")) -> None:
        """Wait until neither the host nor a member has one of the parts."""
        for part in parts:
            resource, name, namespace = self.parts[part]
            await self.world.until_gone(resource, name, namespace)
            for member in self.world.members.values():
                assert await member.find(resource, name, namespace) is None


async def test_a_volume_that_is_deleted_first_goes_after_its_claim() -> None:
    async with a_world(members=MEMBERS) as world:
        tutorial = Tutorial(world)
        await tutorial.create()
        await tutorial.delete("volume")
        await world.pass_time(30)
        assert await tutorial.phases() == ("Bound", "Bound", "Running")
        waits = {text for reason, text in await world.events() if reason == "DeletionWaits"}
        held = "WaitingForRemoval (its finalizers [kubernetes.io/pv-protection] hold it there)"
        assert waits == {f"deletion waits for clusters [east,west]: east: {held}; west: {held}"}
        await tutorial.delete("claim", "pod")
        await tutorial.until_gone()


# -- any order, whatever happens in between


async def _nothing(_: World) -> None:
    return


async def _lost(world: World) -> None:
    await world.lose("west")


async def _restarted(world: World) -> None:
    await world.restart()


async def _killed(world: World) -> None:
    world.kill()
    await world.restart()


async def _without_policy(world: World) -> None:
    await world.user.delete(CLUSTER_PROPAGATION_POLICIES, "everywhere")


async def _without_types(world: World) -> None:
    for name in ("persistentvolumes", "persistentvolumeclaims", "pods"):
        await world.user.delete(FEDERATED_TYPE_CONFIGS, name)


async def _left(world: World) -> None:
    await world.user.delete(FEDERATED_CLUSTERS, "west")
    await world.until_gone(FEDERATED_CLUSTERS, "west", "")
    del world.members["west"]  # it keeps its objects


async def _left_by_force(world: World) -> None:
    await world.lose("west")
    await world.unjoin_by_force("west")
    await world.until_gone(FEDERATED_CLUSTERS, "west", "")
    del world.members["west"]


BETWEEN = {
    "nothing happens": _nothing,
    "a cluster is lost": _lost,
    "the control plane restarts": _restarted,
    "the control plane is killed": _killed,
    "the policy is removed": _without_policy,
    "the type configs are removed": _without_types,
    "a cluster leaves": _left,
    "a cluster leaves by force": _left_by_force,
}
FIRST = ("volume", "claim", "pod", "namespace")
EACH = [
    pytest.param(first, between, marks=() if (number + 3) % len(FIRST) == FIRST.index(first) else pytest.mark.nightly)
    for number, between in enumerate(BETWEEN)
    for first in FIRST
]
"""Each event once in every run, with the first deletion going round; all pairs at night."""


@pytest.mark.parametrize(("first", "between"), EACH)
async def test_a_volume_its_claim_its_pod_and_their_namespace_go_in_any_order(first: str, between: str) -> None:
    async with a_world(members=MEMBERS) as world:
        tutorial = Tutorial(world)
        await tutorial.create()
        await tutorial.delete(first)
        await world.pass_time(15)
        if first in ("volume", "claim"):
            held = f"kubernetes.io/{'pv' if first == 'volume' else 'pvc'}-protection"
            waits = [text for reason, text in await world.events() if reason == "DeletionWaits"]
            assert any("east" in text and held in text for text in waits), waits
        await BETWEEN[between](world)
        await world.pass_time(15)
        await tutorial.delete(*(part for part in tutorial.parts if part != first))
        for part, where in tutorial.parts.items():
            await world.until_gone(*where)
            assert await world.members["east"].find(*where) is None, f"{part} stayed in a member that answers"
        assert not [item["metadata"]["name"] for item in (await world.user.list(FEDERATED_OBJECTS)).items]
        assert not [
            item["metadata"]["name"]
            for item in (await world.user.list(CLUSTER_FEDERATED_OBJECTS)).items
            if item["metadata"]["name"].startswith(("disk", "shop"))
        ]
        if "a cluster is lost" in between:
            await world.bring_back("west")
            for where in tutorial.parts.values():
                await world.until_equal(partial(world.members["west"].find, *where), None)
        if "type configs" in between:
            await world.until_gone(FEDERATED_TYPE_CONFIGS, "persistentvolumes", "")


# -- each finalizer


async def _deployed(world: World, **metadata: Any) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
    web = a_deployment("web", replicas=2)
    web["metadata"].update(metadata)
    await world.create(DEPLOYMENTS, web)
    await world.until_available("web", 2)
    await world.settle()


async def _said(world: World, reason: str) -> str:
    """Wait for an event with the reason, and return its message."""

    async def look() -> list[str]:
        return [text for found, text in await world.events() if found == reason]

    return (await world.until(look, reason))[-1]


async def _walk_lost_member(world: World) -> None:
    await _deployed(world)
    await world.lose("west")
    await world.user.delete(DEPLOYMENTS, "web", "default")
    assert "clusters [west] do not answer" in await _said(world, "LeftBehind")
    await world.until_gone(DEPLOYMENTS, "web")
    await world.bring_back("west")
    await world.until_replicas("web", {})


async def _walk_held_in_member(world: World) -> None:
    await _deployed(world)
    held = {"metadata": {"finalizers": ["operator.example.com/cleanup"]}}
    await world.members["east"].merge(DEPLOYMENTS, "web", held)
    await world.user.delete(DEPLOYMENTS, "web", "default")
    assert "its finalizers [operator.example.com/cleanup] hold it there" in await _said(world, "DeletionWaits")
    assert await world.find(DEPLOYMENTS, "web") is not None
    await world.members["east"].merge(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}})
    await world.until_gone(DEPLOYMENTS, "web")


async def _walk_cascading_delete(world: World) -> None:
    await _deployed(world)
    await world.lose("west")
    await world.merge(FEDERATED_CLUSTERS, "west", {"metadata": {"annotations": {names.CASCADING_DELETE: ""}}}, "")
    await world.user.delete(FEDERATED_CLUSTERS, "west")
    assert "if it is lost: fedctl unjoin west --force" in await _said(world, "WaitForCascadingDelete")
    forced = {"metadata": {"annotations": {names.FORCED_REMOVAL: "it is lost"}}}
    await world.merge(FEDERATED_CLUSTERS, "west", forced, "")
    await world.until_gone(FEDERATED_CLUSTERS, "west", "")
    del world.members["west"]


async def _walk_leaving_cluster(world: World) -> None:
    world.members["west"].line.mode = "down"
    await world.user.delete(FEDERATED_CLUSTERS, "west")
    assert "if it is lost: fedctl unjoin west --force" in await _said(world, "WaitForRelease")
    west = await world.user.get(FEDERATED_CLUSTERS, "west")
    kept = {"metadata": {"finalizers": [names.CLUSTER_FINALIZER]}}
    assert set(west["metadata"]["finalizers"]) == {names.CLUSTER_FINALIZER, names.CASCADING_DELETE_FINALIZER}
    await world.merge(FEDERATED_CLUSTERS, "west", kept, "")  # by hand: now the last step is what cannot be done
    assert "cannot be cleaned up" in await _said(world, EVENT_TERMINATING_CLUSTER_FAILED)
    world.members["west"].line.mode = "up"
    await world.until_gone(FEDERATED_CLUSTERS, "west", "")


async def _walk_type_config(world: World) -> None:
    await _deployed(world)
    await world.user.delete(FEDERATED_TYPE_CONFIGS, "deployments.apps")
    assert names.CASCADING_DELETE in await _said(world, "TypeConfigInUse")
    await world.user.delete(DEPLOYMENTS, "web", "default")
    await world.until_gone(DEPLOYMENTS, "web")
    await world.until_gone(FEDERATED_TYPE_CONFIGS, "deployments.apps", "")


async def _walk_volume(world: World) -> None:
    tutorial = Tutorial(world)
    await tutorial.create()
    await tutorial.delete("volume")
    assert finalizers.VOLUME_PROTECTION in await _said(world, "DeletionWaits")
    await tutorial.delete("pod", "claim")
    await world.until_gone(*tutorial.parts["volume"])


async def _walk_claim(world: World) -> None:
    tutorial = Tutorial(world)
    await tutorial.create(nodeName="node-1", terminationGracePeriodSeconds=1)
    await tutorial.delete("claim")
    assert finalizers.CLAIM_PROTECTION in await _said(world, "DeletionWaits")
    await tutorial.delete("pod")
    await world.until_gone(*tutorial.parts["pod"])
    await world.until_gone(*tutorial.parts["claim"])


async def _walk_foreground(world: World) -> None:
    await _deployed(world)
    await world.user.delete(DEPLOYMENTS, "web", "default", propagation_policy="Foreground")
    await world.until_gone(DEPLOYMENTS, "web")
    assert await world.replicas("web") == {}


async def _walk_orphan(world: World) -> None:
    await _deployed(world)
    await world.user.delete(DEPLOYMENTS, "web", "default", propagation_policy="Orphan")
    await world.until_gone(DEPLOYMENTS, "web")
    assert await world.replicas("web") == {"east": 1, "west": 1}


async def _walk_namespace(world: World) -> None:
    tutorial = Tutorial(world)
    await tutorial.create()
    held = {"metadata": {"finalizers": ["operator.example.com/cleanup"]}}
    await world.members["east"].merge(PERSISTENT_VOLUME_CLAIMS, "data", held, "shop")
    await tutorial.delete("namespace")
    await world.pass_time(15)
    namespace = await world.user.get(NAMESPACES, "shop")
    remaining = conditions.find(namespace["status"]["conditions"], "NamespaceFinalizersRemaining") or {}
    assert names.FEDERATE_FINALIZER in str(remaining.get("message"))
    await world.members["east"].merge(PERSISTENT_VOLUME_CLAIMS, "data", {"metadata": {"finalizers": None}}, "shop")
    await world.until_gone(NAMESPACES, "shop", "")


async def _walk_definition(world: World) -> None:
    await world.create(CLUSTER_PROPAGATION_POLICIES, _policy(CRDS, WIDGETS))
    await world.create(CRDS, DEFINITION)
    widget = _manifest(WIDGETS, "one", "default", spec={"size": 1})

    async def is_created() -> bool:
        with contextlib.suppress(NotFound):
            await world.create(WIDGETS, widget)
            return True
        return False

    await world.until(is_created)

    async def is_there() -> bool:
        with contextlib.suppress(NotFound):
            return await world.members["east"].find(WIDGETS, "one") is not None
        return False

    await world.until(is_there)
    await world.settle()
    held = {"metadata": {"finalizers": ["operator.example.com/cleanup"]}}
    await world.members["east"].merge(WIDGETS, "one", held)
    await world.user.delete(CRDS, "widgets.example.com")
    assert "operator.example.com/cleanup" in await _said(world, "DeletionWaits")
    await world.members["east"].merge(WIDGETS, "one", {"metadata": {"finalizers": None}})
    await world.until_gone(CRDS, "widgets.example.com", "")


async def _walk_foreign(world: World) -> None:
    await _deployed(world, finalizers=["operator.example.com/cleanup"])
    await world.user.delete(DEPLOYMENTS, "web", "default")
    text = await _said(world, "DeletionWaits")
    assert text.startswith("no cluster has it any more")
    assert "[operator.example.com/cleanup]" in text
    assert await world.replicas("web") == {}
    await world.merge(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}})
    await world.until_gone(DEPLOYMENTS, "web")


OF_USERS = "operator.example.com/cleanup"
WALKS = {
    names.FEDERATE_FINALIZER: _walk_held_in_member,
    names.SYNC_FINALIZER: _walk_lost_member,
    names.CASCADING_DELETE_FINALIZER: _walk_cascading_delete,
    names.CLUSTER_FINALIZER: _walk_leaving_cluster,
    names.TYPE_CONFIG_FINALIZER: _walk_type_config,
    finalizers.VOLUME_PROTECTION: _walk_volume,
    finalizers.CLAIM_PROTECTION: _walk_claim,
    finalizers.FOREGROUND: _walk_foreground,
    finalizers.ORPHAN: _walk_orphan,
    finalizers.NAMESPACE_CONTENT: _walk_namespace,
    finalizers.DEFINITION_CLEANUP: _walk_definition,
    OF_USERS: _walk_foreign,
}


@pytest.mark.parametrize("finalizer", WALKS)
async def test_each_finalizer_ends_and_its_wait_is_reported(finalizer: str) -> None:
    async with a_world(members=MEMBERS) as world:
        await WALKS[finalizer](world)


def test_every_finalizer_of_the_table_is_walked() -> None:
    assert WALKS.keys() - {OF_USERS} == {each.name for each in (*OURS, *OF_HOST)}
