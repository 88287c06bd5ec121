"""The bin packing planner against the reference's own answers."""

from typing import Any

from tests.support.vectors import each_case, filled, load

from federation.planning.placement.binpack import fill, plan_binpack
from federation.planning.placement.replicas import Demand, Plan, Preference


def to_demand(given: dict[str, Any], **changes: Any) -> Demand:
    given = filled(
        given,
        totalReplicas=0,
        clusters=[],
        rsp={},
        currentReplicaCount={},
        estimatedCapacity={},
        limitedCapacity={},
        scheduledReplicas={},
        avoidDisruption=False,
        keepUnschedulableReplicas=False,
    )
    fields: dict[str, Any] = {
        "total": given["totalReplicas"],
        "clusters": tuple(given["clusters"]),
        "preferences": {
            cluster: Preference(0, entry.get("minReplicas") or 0, entry.get("maxReplicas"))
            for cluster, entry in given["rsp"].items()
        },
        "current": given["currentReplicaCount"],
        "estimated": given["estimatedCapacity"],
        "limited": given["limitedCapacity"],
        "scheduled": given["scheduledReplicas"],
        "avoid_disruption": given["avoidDisruption"],
        "keep_unschedulable": given["keepUnschedulableReplicas"],
    }
    return Demand(**fields | changes)


def is_as_expected(plan: Plan, expected: dict[str, Any]) -> bool:
    return (plan.replicas, plan.overflow) == (expected.get("plan") or {}, expected.get("overflow") or {})


@each_case([*load("binpack_single_call"), *load("binpack_random")])
def test_one_call_answers_like_the_reference(case: dict[str, Any]) -> None:
    steps: list[dict[str, Any]] = []
    plan = plan_binpack(to_demand(case["input"]), steps)
    assert is_as_expected(plan, case["expected"]), (plan, case)
    assert len(steps) == 1


@each_case(load("binpack_desired_plan"))
def test_filling_answers_like_the_reference(case: dict[str, Any]) -> None:
    given = filled(case["input"], preferences=[], totalReplicas=0, estimatedCapacity={}, limitedCapacity={})
    order = [
        (entry["cluster"], entry.get("minReplicas") or 0, entry.get("maxReplicas")) for entry in given["preferences"]
    ]
    plan = fill(order, given["totalReplicas"], given["estimatedCapacity"], given["limitedCapacity"])
    assert is_as_expected(plan, case["expected"]), (plan, case)


@each_case(load("binpack_converge"))
def test_repeated_calls_converge_to_the_reference_fixed_point(case: dict[str, Any]) -> None:
    given = case["input"]
    existing, capacity, last = given.get("existing") or {}, given.get("actualCapacity") or {}, None
    for _ in range(3):
        estimated = {c: capacity[c] for c in existing if c in capacity and existing[c] > capacity[c]}
        plan = plan_binpack(to_demand(given, current=existing, estimated=estimated))
        if plan == last:
            break
        last, existing = plan, plan.totals()
    assert plan == last, "did not converge"
    assert is_as_expected(plan, case["expected"]), (plan, case)
