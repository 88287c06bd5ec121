"""A member answers a deletion or a release with 409 although nobody replaced the object, as a webhook or busy server may."""

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS


@pytest.mark.parametrize("orphan", ["", "all"], ids=["deleted", "released"])
async def test_an_operation_that_ended_in_a_conflict_is_repeated(orphan: str) -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
        deployment = a_deployment("web", replicas=2)
        if orphan:
            deployment["metadata"]["annotations"] = {names.ORPHAN: orphan}
        await world.create(DEPLOYMENTS, deployment)
        await world.until_available("web", 2)
        await world.settle()

        line = world.members["east"].line
        line.faults.begin(1.0, "409")
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.pass_time(5)
        assert line.faults.injected > 0
        line.heal()
        await world.until_gone(DEPLOYMENTS, "web")
        live = await world.members["east"].find(DEPLOYMENTS, "web")
        if orphan:
            assert live is not None
            assert names.MANAGED_LABEL not in live["metadata"]["labels"]
        else:
            assert live is None
