"""What was decided is decided again from the records, bit for bit; and a change of the world comes out as it would have.

Every other scenario also ends with a replay of its decisions (`tests/support/world.py`).
"""

from tests.support.manifests import a_deployment, a_policy
from tests.support.replays import replay
from tests.support.world import a_world_without_pods

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS


async def test_every_decision_of_a_scenario_is_repeated() -> None:
    async with a_world_without_pods(members=("east", "north", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        for name in ("blog", "web"):
            await world.create(DEPLOYMENTS, a_deployment(name, replicas=8))
            await world.until_replicas(name, {"east": 4, "north": 2, "west": 2})
        await world.scale("web", 4)
        await world.until_replicas("web", {"east": 2, "north": 1, "west": 1})
        policy = a_policy({"east": 1, "west": 1})
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": policy["spec"]})
        await world.until_replicas("web", {"east": 2, "west": 2})
        verdict = await replay(world.journal)
        assert (verdict.equal, verdict.different) == (verdict.decisions, [])
        assert verdict.by_outcome["Scheduled"] >= 5
