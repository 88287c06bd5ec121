"""How many reconciles and host writes a Deployment costs: a new one, and each change until its status has arrived.

Every reconcile that changes nothing is an event that a controller did not have to hear: see the `Triggers` that the
controllers declare (`federation/runtime/subscription.py`).
"""

from collections import Counter
from collections.abc import Awaitable
from functools import partial
from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.reconciles import reconciles
from tests.support.world import World, a_world

from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, Object

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


def changes_of(tag: str, label: str) -> Object:
    """Return the spec of an override that sets the tag of images, which replaces pods, and a label, which does not."""
    image = [{"operations": [{"imageComponent": "Tag", "operator": "overwrite", "value": tag}]}]
    labels = [{"operator": "addIfAbsent", "value": {"changed": label}}]
    return {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
        "overrideRules": [{"overriders": {"image": image, "labels": labels}}],
    }


class Costs:
    """Counts what each change costs until nothing happens any more."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def of(self, change: Awaitable[Any]) -> tuple[dict[str, int], dict[str, int]]:
        """Return the reconciles by controller, and the host's writes of "web" by kind."""
        world, before = self._world, {each: reconciles(controller=each) for each in CONTROLLERS}
        since = await world.store.revision()
        await change
        await world.settle()
        await world.pass_time(10)
        counts = {each: int(reconciles(controller=each) - before[each]) for each in CONTROLLERS}
        return {each: count for each, count in counts.items() if count}, await writes_of("web", world, since)


async def test_each_change_of_a_deployment_costs_one_reconcile_for_each_thing_that_is_decided() -> None:
    """These are exact: one reconcile more is an event that a controller did not have to hear."""
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        override = an_override("north", "/", "", name="changes")
        await world.create(OVERRIDE_POLICIES, {**override, "spec": changes_of("1.0", "1")})
        await world.create(DEPLOYMENTS, a_deployment("first"))  # The members' caches of the kind begin with it.
        await world.until_available("first", 3)
        await world.user.delete(DEPLOYMENTS, "first", "default")
        await world.until_gone(DEPLOYMENTS, "first")
        await world.pass_time(10)
        costs = Costs(world)
        merge = partial(world.merge, OVERRIDE_POLICIES, "changes")

        created, writes = await costs.of(world.create(DEPLOYMENTS, a_deployment("web")))
        assert created == {"federate": 1, "sync": 1, "statusaggregate": 1, "statuscollect": 1}
        assert writes == {"deployments": 2, "federatedobjects": 2, "events": 1, "collectedstatuses": 1}

        scaled, writes = await costs.of(world.scale("web", 6))
        assert scaled == {"federate": 1, "sync": 1, "statusaggregate": 1, "statuscollect": 1}
        assert writes == {"deployments": 2, "federatedobjects": 2, "events": 1, "collectedstatuses": 1}

        labelled, writes = await costs.of(merge({"spec": changes_of("1.0", "2")}))
        assert labelled == {"override": 1, "sync": 1, "statusaggregate": 1, "statuscollect": 1}
        assert writes == {"federatedobjects": 2, "collectedstatuses": 1}

        # Two clusters are updated at once, within maxSurge and maxUnavailable, and the third one after them.
        updated, writes = await costs.of(merge({"spec": changes_of("2.0", "2")}))
        assert updated == {"override": 1, "sync": 3, "statusaggregate": 1, "statuscollect": 1}
        assert writes == {"federatedobjects": 3, "collectedstatuses": 1}

        deleted, _ = await costs.of(world.user.delete(DEPLOYMENTS, "web", "default"))
        assert deleted == {"federate": 3, "schedule": 1, "sync": 2, "statusaggregate": 2, "statuscollect": 1}
