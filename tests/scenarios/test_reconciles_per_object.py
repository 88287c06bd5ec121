"""How many reconciles one new Deployment costs until it is propagated and its status has arrived.

Every reconcile that changes nothing is an event that a controller did not have to hear: see the `Triggers` that the
controllers declare (`federation/runtime/federatedobjects.py`).
"""

from collections import Counter

import pytest
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.reconciles import reconciles
from tests.support.world import World, a_world

from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS

PIPELINE = ("schedule", "override", "sync")
CONTROLLERS = ("federate", *PIPELINE, "follower", "statuscollect", "statusaggregate", "automigration", "nsautoprop")


async def reconciles_of_a_new_deployment(world: World) -> dict[str, float]:
    """Create a Deployment, wait until nothing happens any more, and return the reconciles by controller."""
    await world.settle()
    before = {controller: reconciles(controller=controller) for controller in CONTROLLERS}
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=8))
    await world.until_replicas("web", {"east": 4, "north": 2, "west": 2})
    await world.until_available("web", 8)
    await world.settle()
    await world.pass_time(20)
    return {controller: reconciles(controller=controller) - before[controller] for controller in CONTROLLERS}


async def writes_of(name: str, world: World, since: int) -> dict[str, int]:
    """Return the number of the host's writes since the revision that concern objects of the name, by kind."""
    changes = world.store.watch("/", since)
    batch = await anext(changes)
    await changes.aclose()
    keys = (event.key.split("/") for event in batch)
    return dict(Counter(key[2] for key in keys if key[-1].split(".")[0].removesuffix("-deployments") == name))


@pytest.mark.parametrize("has_override", [False, True])
async def test_each_controller_reconciles_a_new_deployment_once(has_override: bool) -> None:
    """At most four in the pipeline is the promise; the bounds are what it takes today, without any to spare."""
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        if has_override:
            await world.create(OVERRIDE_POLICIES, an_override("north", "/spec/minReadySeconds", 5))
        since = await world.store.revision()
        counts = await reconciles_of_a_new_deployment(world)
        assert sum(counts[controller] for controller in PIPELINE) <= 2, counts
        assert await writes_of("web", world, since) == {
            "deployments": 2,  # by the user, and the merged status
            "federatedobjects": 2,  # with placement and overrides, and the status of its delivery
            "events": 1,
            "collectedstatuses": 1,
        }
        assert counts["federate"] == 1, counts
        assert counts["follower"] == counts["automigration"] == counts["nsautoprop"] == 0, counts
        assert counts["statuscollect"] + counts["statusaggregate"] <= 5, counts
