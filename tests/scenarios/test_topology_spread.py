"""Three regions of two zones: replicas are even at every size, and a lost region does not block the others."""

from collections.abc import Mapping
from typing import Any

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.controllers.schedule.names import EVENT_SCHEDULED

LABELS = {
    f"{region}-{zone}": {"region": region, "zone": f"{region}-{zone}"} for region in ("ap", "eu", "us") for zone in "ab"
}
SPREAD: dict[str, Any] = {
    "topologySpread": [
        {"topologyKey": "region", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
        {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
    ],
    "reschedulePolicy": {"rescheduleWhen": {"clusterJoined": True, "clusterAPIResourcesChanged": True}},
}


def regions(replicas: Mapping[str, int]) -> dict[str, int]:
    """Return the replicas per region."""
    found: dict[str, int] = {}
    for name, count in replicas.items():
        found[name[:2]] = found.get(name[:2], 0) + count
    return found


async def until_regions(world: World, **expected: int) -> None:
    """Wait until the regions' members have this many replicas."""

    async def look() -> dict[str, int]:
        return {region: count for region, count in regions(await world.replicas("web")).items() if count}

    await world.until_equal(look, expected)
    await world.settle()
    assert await look() == expected


async def taint(world: World, region: str, effect: str | None) -> None:
    taints = [] if effect is None else [{"key": "lost", "effect": effect}]
    for zone in "ab":
        await world.merge(FEDERATED_CLUSTERS, f"{region}-{zone}", {"spec": {"taints": taints}}, namespace="")


async def test_replicas_are_even_over_regions_and_zones_at_every_size() -> None:
    async with a_world(members=tuple(LABELS), labels=LABELS, has_workloads=False) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({}, **SPREAD))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=0))
        for size in (1, 5, 7, 12, 31, 8, 3, 0):
            await world.scale("web", size)

            async def look() -> int:
                return sum((await world.replicas("web")).values())

            await world.until_equal(look, size)
            held = dict.fromkeys(LABELS, 0) | await world.replicas("web")
            assert max(regions(held).values()) - min(regions(held).values()) <= 1
            assert all(abs(held[f"{region}-a"] - held[f"{region}-b"]) <= 1 for region in regions(held))


async def test_a_lost_region_does_not_block_the_others_and_catches_up_afterwards() -> None:
    async with a_world(members=tuple(LABELS), labels=LABELS) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({}, **SPREAD))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=12))
        await until_regions(world, ap=4, eu=4, us=4)

        for zone in "ab":
            world.members[f"us-{zone}"].line.mode = "down"
        await world.until_ready("us-a", "us-b", status="Unknown")
        await world.scale("web", 16)
        await until_regions(world, ap=6, eu=6, us=4)

        for zone in "ab":
            world.members[f"us-{zone}"].line.mend()
        await world.until_ready("us-a", "us-b")
        await taint(world, "us", "NoExecute")
        await until_regions(world, ap=8, eu=8)

        await taint(world, "us", None)
        await world.settle()
        assert regions(await world.replicas("web")) == {"ap": 8, "eu": 8}  # replicas are not moved for balance
        await world.scale("web", 21)
        await until_regions(world, ap=8, eu=8, us=5)
        await world.scale("web", 15)
        await until_regions(world, ap=5, eu=5, us=5)


async def test_replicas_that_would_violate_the_skew_stay_unplaced_until_a_new_zone_joins() -> None:
    limits = [{"cluster": name, "preferences": {"maxReplicas": 3 if name < "us" else 1}} for name in (*LABELS, "us-c")]
    async with a_world(members=tuple(LABELS), labels=LABELS) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({}, **SPREAD, placement=limits))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=12))
        await until_regions(world, ap=3, eu=3, us=2)
        events = [message for reason, message in await world.events() if reason == EVENT_SCHEDULED]
        suffix = "4 of 12 replicas have no place within maxSkew 1 of topology key region"
        assert any(message.endswith(suffix) for message in events)

        await taint(world, "ap", "NoSchedule")  # it keeps its replicas and does not count
        await world.add_member("us-c", {"region": "us", "zone": "us-c"})
        await world.join("us-c")
        await until_regions(world, ap=3, eu=4, us=3)
        assert await world.members["us-c"].replicas("web") == 1

        await world.scale("web", 9)
        await until_regions(world, ap=3, eu=3, us=3)


async def test_unplaced_replicas_are_placed_when_a_region_recovers() -> None:
    region = {"topologyKey": "region", "maxSkew": 1, "minDomains": 3, "whenUnsatisfiable": "DoNotSchedule"}
    async with a_world(members=tuple(LABELS), labels=LABELS, has_workloads=False) as world:
        lost = [world.members[f"us-{zone}"].line for zone in "ab"]
        for is_restarted in (False, True):
            for line in lost:
                line.mode = "down"
            await world.until_ready("us-a", "us-b", status="Unknown")
            name = f"web-{is_restarted}".lower()
            if not is_restarted:
                await world.create(PROPAGATION_POLICIES, a_policy({}, topologySpread=[region]))
            await world.create(DEPLOYMENTS, a_deployment(name, replicas=6))

            async def look(name: str = name) -> dict[str, int]:
                return regions(await world.replicas(name))

            await world.until_equal(look, {"ap": 1, "eu": 1})
            await world.settle()
            if is_restarted:
                await world.restart()
                await world.settle()
            for line in lost:
                line.mode = "up"
            await world.until_ready("us-a", "us-b")
            await world.until_equal(look, {"ap": 2, "eu": 2, "us": 2})
