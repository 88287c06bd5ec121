"""At least two zones in one region: the example of the documentation, a lost zone, and a changed policy."""

import re

import yaml
from tests.support.manifests import a_deployment, a_policy
from tests.support.sources import ROOT
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, Object

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
PLACES = {"a": ("eu", "eu-1"), "b": ("eu", "eu-2"), "c": ("eu", "eu-2"), "far": ("us", "us-1")}
LABELS = {name: {REGION: region, ZONE: zone} for name, (region, zone) in PLACES.items()}


def example() -> Object:
    """Return the policy of the documentation."""
    page = (ROOT / "docs" / "scheduling.md").read_text(encoding="utf-8")
    found = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    return next(each for each in found if "spreadConstraints" in each.get("spec", {}))


async def zones(world: World) -> set[str]:
    return {PLACES[name][1] for name in await world.replicas("web")}


async def test_the_example_spreads_over_two_zones_of_one_region() -> None:
    async with a_world(members=tuple(PLACES), labels=LABELS, toleration_s=30, guard_share=1.0) as world:
        await world.create(PROPAGATION_POLICIES, example())
        await world.create(DEPLOYMENTS, a_deployment("web", 4))
        await world.until_available("web", 4)
        assert await zones(world) == {"eu-1", "eu-2"}
        before = await world.replicas("web")
        await world.lose("a")
        await world.until_ready("a", status="Unknown")
        await world.pass_time(120)
        assert await world.replicas("web") == before, "one zone is too few"
        scheduled = await world.condition("web", names.SCHEDULED)
        assert f"at least 2 values of {ZONE} (there are 2): no choice of clusters" in scheduled["message"]
        await world.bring_back("a")
        await world.until_ready("a")
        await world.until_available("web", 4)
        assert await world.replicas("web") == before


async def test_a_new_minimum_moves_a_replica_into_a_further_zone() -> None:
    async with a_world(members=("a", "b"), labels={name: LABELS[name] for name in "ab"}) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"a": 1, "b": 0}))
        await world.create(DEPLOYMENTS, a_deployment("web", 4))
        await world.until_available("web", 4)
        assert await world.replicas("web") == {"a": 4}
        spec = {"placement": [{"cluster": "*"}], "spreadConstraints": [{"topologyKey": ZONE, "minGroups": 2}]}
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": spec})
        await world.until_equal(lambda: zones(world), {"eu-1", "eu-2"})
        await world.until_available("web", 4)
