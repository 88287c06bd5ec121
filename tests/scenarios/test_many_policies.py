"""200 policies change at once: every object follows its own, with few reconciles and writes per object."""

from tests.support.manifests import a_deployment, a_policy
from tests.support.reconciles import reconciles
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS

COUNT = 200
BEFORE, AFTER = {"east": 2, "north": 1, "west": 1}, {"east": 1, "north": 1, "west": 2}


async def placements(world: World) -> list[dict[str, int]]:
    """Return the replicas of every Deployment by member."""
    return [await world.replicas(f"web-{number}") for number in range(COUNT)]


async def test_two_hundred_policies_change_at_once() -> None:
    async with a_world(has_workloads=False, guard_share=1) as world:
        for number in range(COUNT):
            policy = a_policy(BEFORE, name=f"policy-{number}")
            del policy["spec"]["resourceSelectors"]
            policy["spec"]["reschedulePolicy"] = {
                "rescheduleWhen": {"policyContentChanged": True},
                "replicaRescheduling": {"avoidDisruption": False},
            }
            await world.create(PROPAGATION_POLICIES, policy)
            own = {names.PROPAGATION_POLICY_LABEL: f"policy-{number}"}
            await world.create(DEPLOYMENTS, a_deployment(f"web-{number}", replicas=4, **own))
        await world.until_equal(lambda: placements(world), [BEFORE] * COUNT)
        await world.settle()

        asked, written = reconciles(controller="schedule"), (await world.revisions())[""]
        for number in range(COUNT):
            placement = [{"cluster": name, "preferences": {"weight": weight}} for name, weight in AFTER.items()]
            await world.merge(PROPAGATION_POLICIES, f"policy-{number}", {"spec": {"placement": placement}})
        await world.until_equal(lambda: placements(world), [AFTER] * COUNT)
        await world.settle()
        assert reconciles(controller="schedule") - asked <= 3 * COUNT
        # The policy, its object's placement, and the propagation and merged status.
        assert (await world.revisions())[""] - written <= 5 * COUNT
