"""PodDisruptionBudgets in a simulated member."""

from typing import Any

import pytest
from tests.support.simulatedmember import LABELS, Member, a_member, a_workload, an_object

from federation.apimachinery.resources import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, Object
from federation.simulator.controllers.disruptionbudgets import compute_expectation


def a_budget(**spec: Any) -> Object:
    return an_object(POD_DISRUPTION_BUDGETS, "web", spec={"selector": {"matchLabels": LABELS}, **spec})


async def counts(member: Member) -> tuple[int, ...]:
    status = await member.status(POD_DISRUPTION_BUDGETS, "web")
    return tuple(
        status.get(key, -1) for key in ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    )


async def test_a_budget_counts_the_healthy_pods_of_its_workload() -> None:
    async with a_member() as member:
        await member.create(POD_DISRUPTION_BUDGETS, a_budget(maxUnavailable="25%"))
        await member.until_equal(lambda: counts(member), (0, 0, 0, 0))
        await member.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=4))
        await member.until_equal(lambda: counts(member), (4, 3, 4, 1))
        status = await member.status(POD_DISRUPTION_BUDGETS, "web")
        (condition,) = status["conditions"]
        assert (condition["status"], condition["reason"], condition["message"]) == ("True", "SufficientPods", "")
        await member.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 8}})
        await member.until_equal(lambda: counts(member), (8, 6, 8, 2))
        await member.merge(POD_DISRUPTION_BUDGETS, "web", {"spec": {"maxUnavailable": None, "minAvailable": 8}})
        await member.until_equal(lambda: counts(member), (8, 8, 8, 0))
        assert (await member.status(POD_DISRUPTION_BUDGETS, "web"))["conditions"][0]["reason"] == "InsufficientPods"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 2}, (3, 2)),
        ({"minAvailable": "50%"}, (5, 3)),
        ({"maxUnavailable": 1}, (5, 4)),
        ({"maxUnavailable": "10%"}, (5, 4)),
        ({"maxUnavailable": 9}, (5, 0)),
    ],
)
def test_expectations(spec: Object, expected: tuple[int, int]) -> None:
    assert compute_expectation(spec, 3, 5) == expected
