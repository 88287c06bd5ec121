"""Whatever is deleted ends, in any order, and says meanwhile what it waits for (docs/reference/finalizers.md)."""

from collections.abc import Sequence
from typing import Any

from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api.resources import CLUSTER_PROPAGATION_POLICIES
from federation.apimachinery.resources import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    Object,
    Resource,
)

MEMBERS = ("east", "west")


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
