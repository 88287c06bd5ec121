"""WorkloadSpreads across members: ordered subsets of clusters, and what members get of them."""

from collections.abc import Iterable
from typing import Any

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.resources import PROPAGATION_POLICIES, WORKLOAD_SPREADS
from federation.apimachinery.conditions import find
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.features.workloadspread.incluster.configurations import definitions
from federation.features.workloadspread.names import (
    CLUSTER_NAME_TERM,
    EVENT_INVALID_SPREAD,
    REASON_KIND_NOT_SERVED,
    SUBSET_ENFORCED,
)

REGION_TERM = "cluster.kubeadmiral.io/region"


def a_subset(name: str, limit: int | str | None = None, key: str = CLUSTER_NAME_TERM, **fields: Any) -> Object:
    """Return a subset of the cluster, or of the clusters with the label, of its name; with a pool inside."""
    expressions = [
        {"key": key, "operator": "In", "values": [name]},
        {"key": "pool", "operator": "In", "values": ["spot"]},
    ]
    subset = {"name": name, "requiredNodeSelector": {"matchExpressions": expressions}, **fields}
    return subset if limit is None else {**subset, "maxReplicas": limit}


def a_spread(*subsets: Object) -> Object:
    return {
        "apiVersion": WORKLOAD_SPREADS.api_version,
        "kind": WORKLOAD_SPREADS.kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "subsets": list(subsets),
        },
    }


async def begin(world: World, spread: Object, replicas: int, serving: Iterable[str] = ()) -> None:
    for name in serving:
        await world.members[name].registry.install_crds(definitions())
    await world.create(WORKLOAD_SPREADS, spread)
    await world.create(PROPAGATION_POLICIES, a_policy({}))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=replicas))


async def statuses(world: World) -> list[tuple[str, int, int]]:
    """Return name, replicas and missing replicas of each subset on the host."""
    spread = await world.find(WORKLOAD_SPREADS, "web") or {}
    entries = (spread.get("status") or {}).get("subsetStatuses") or ()
    return [(entry["name"], entry["replicas"], entry["missingReplicas"]) for entry in entries]


async def member_subsets(world: World, name: str) -> list[Object] | None:
    found = await world.members[name].find(WORKLOAD_SPREADS, "web")
    return None if found is None else found["spec"]["subsets"]


async def test_a_base_cluster_fills_before_an_elastic_one_and_empties_after_it() -> None:
    async with a_world() as world:
        await begin(world, a_spread(a_subset("north", 100), a_subset("east")), 60)
        await world.until_replicas("web", {"north": 60})
        await world.scale("web", 130)
        await world.until_replicas("web", {"north": 100, "east": 30})
        await world.until_equal(lambda: statuses(world), [("north", 100, 0), ("east", 30, -1)])
        await world.scale("web", 40)
        await world.until_replicas("web", {"north": 40})
        await world.until_equal(lambda: statuses(world), [("north", 40, 60), ("east", 0, -1)])


async def test_shares_of_three_regions_are_kept_on_scale_out_and_in() -> None:
    labels = {"east": {"region": "e"}, "north": {"region": "n"}, "west": {"region": "w"}}
    shares = [a_subset("e", "20%", REGION_TERM), a_subset("n", "20%", REGION_TERM), a_subset("w", "60%", REGION_TERM)]
    async with a_world(labels=labels) as world:
        await begin(world, a_spread(*shares), 5)
        for total, each in ((5, 1), (15, 3), (10, 2)):
            await world.scale("web", total)
            await world.until_replicas("web", {"east": each, "north": each, "west": 3 * each})


async def test_a_change_of_the_spread_is_a_reason_to_schedule() -> None:
    async with a_world() as world:
        await begin(world, a_spread(a_subset("north", 4), a_subset("east")), 6)
        await world.until_replicas("web", {"north": 4, "east": 2})
        subsets = [a_subset("west", 4), a_subset("east", 2)]
        await world.merge(WORKLOAD_SPREADS, "web", {"spec": {"subsets": subsets}})
        await world.scale("web", 8)
        # What runs outside of the new subsets stays there.
        await world.until_replicas("web", {"north": 4, "east": 2, "west": 2})


async def test_a_dead_cluster_keeps_its_quota() -> None:
    async with a_world() as world:
        await begin(world, a_spread(a_subset("north", 4), a_subset("east")), 6)
        await world.until_replicas("web", {"north": 4, "east": 2})
        world.members["north"].line.mode = "down"
        await world.until_ready("north", status="Unknown")
        await world.scale("web", 9)
        await world.until_replicas("web", {"north": 4, "east": 5})
        # With a smaller limit the east would keep pods for those that the north has lost.
        limits = {"rollingUpdate": {"maxUnavailable": "100%"}}
        await world.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 5, "strategy": limits}})
        await world.until_replicas("web", {"north": 4, "east": 1})
        await world.until_equal(lambda: statuses(world), [("north", 4, 0), ("east", 1, -1)])
        world.members["north"].line.mend()
        await world.until_ready("north")


async def test_members_get_their_subsets_with_absolute_limits_if_they_serve_the_kind() -> None:
    patch = {"metadata": {"labels": {"tier": "base"}}}
    spread = a_spread(a_subset("north", "50%", patch=patch), a_subset("east", "50%"))
    async with a_world() as world:
        await begin(world, spread, 8, serving=("north",))
        await world.until_replicas("web", {"north": 4, "east": 4})
        inside = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["spot"]}]}
        expected = [{"name": "north", "maxReplicas": 4, "patch": patch, "requiredNodeSelector": inside}]
        await world.until_equal(lambda: member_subsets(world, "north"), expected)

        async def unserved() -> list[str]:
            source = await world.find(WORKLOAD_SPREADS, "web") or {}
            entries = (source.get("status") or {}).get("subsetStatuses") or ()
            found = {entry["name"]: find(entry.get("conditions"), SUBSET_ENFORCED) or {} for entry in entries}
            return [name for name, condition in found.items() if condition.get("reason") == REASON_KIND_NOT_SERVED]

        await world.until_equal(unserved, ["east"])
        await world.scale("web", 12)
        await world.until_replicas("web", {"north": 6, "east": 6})
        await world.until_equal(lambda: member_subsets(world, "north"), [{**expected[0], "maxReplicas": 6}])
        await world.until_equal(lambda: statuses(world), [("north", 6, 0), ("east", 6, 0)])


async def test_a_malformed_spread_is_reported_and_leaves_the_division_to_the_policy() -> None:
    async with a_world() as world:
        await begin(world, a_spread(a_subset("north", 4, f"not a key.{REGION_TERM}")), 3)
        await world.until_replicas("web", {"east": 1, "north": 1, "west": 1})
        assert EVENT_INVALID_SPREAD in [reason for reason, _ in await world.events()]


async def test_a_workload_that_a_patch_of_an_older_spread_makes_invalid_is_reported_on_the_host() -> None:
    patch = {"spec": {"containers": [{"name": "side"}]}}
    async with a_world() as world:
        await begin(world, a_spread(a_subset("north", 4, patch=patch), a_subset("east")), 3)
        await world.until_replicas("web", {"north": 3})

        async def reported() -> bool:
            return any(
                reason == EVENT_INVALID_SPREAD and "spec.subsets[0].patch.spec.containers[0].image" in message
                for reason, message in await world.events()
            )

        await world.until(reported)
