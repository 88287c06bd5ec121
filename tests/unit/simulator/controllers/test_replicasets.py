"""Which pods a simulated ReplicaSet deletes when it is scaled in."""

from typing import Any

import pytest
from tests.support.simulatedmember import a_member, a_workload

from federation.api.names import POD_DELETION_COST
from federation.apimachinery.resources import PODS, REPLICA_SETS


@pytest.mark.parametrize(
    ("costs", "kept"),
    [
        pytest.param(["1", "-100", "200", None], "200", id="the highest cost stays"),
        pytest.param(["-1", "-100", "1e9", "-5"], "1e9", id="an invalid cost counts as 0"),
        pytest.param(["-1", "+7", " 8", "3"], "3", id="signs and spaces make a cost invalid"),
        pytest.param(["1", "2147483648", "-3", "-4"], "1", id="a cost that is no 32-bit integer counts as 0"),
    ],
)
async def test_pods_of_lower_deletion_cost_are_deleted_first(costs: list[str | None], kept: str) -> None:
    async with a_member() as member:
        await member.create(REPLICA_SETS, a_workload(REPLICA_SETS, replicas=4))
        await member.until_equal(lambda: _count(member), 4)
        for name, cost in zip(await member.ready_pods(), costs, strict=True):
            if cost is not None:
                await member.merge(PODS, name, {"metadata": {"annotations": {POD_DELETION_COST: cost}}})
        await member.merge(REPLICA_SETS, "web", {"spec": {"replicas": 1}})
        await member.until_equal(lambda: _count(member), 1)
        (left,) = await member.ready_pods()
        assert (await member.get(PODS, left))["metadata"]["annotations"][POD_DELETION_COST] == kept


async def test_a_pod_that_is_not_ready_goes_before_one_of_lower_cost() -> None:
    async with a_member() as member:
        await member.create(REPLICA_SETS, a_workload(REPLICA_SETS, replicas=2))
        await member.until_equal(lambda: _count(member), 2)
        first, second = await member.ready_pods()
        await member.merge(PODS, first, {"metadata": {"annotations": {POD_DELETION_COST: "-100"}}})
        unready = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        await member.client.patch(
            PODS, second, {"status": {"conditions": [unready]}}, namespace="default", subresource="status"
        )
        await member.merge(REPLICA_SETS, "web", {"spec": {"replicas": 1}})
        await member.until_equal(lambda: member.names(PODS), [first])


async def _count(member: Any) -> int:
    return len(await member.ready_pods())
