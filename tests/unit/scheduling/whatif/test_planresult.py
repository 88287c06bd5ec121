"""When a plan changes where an object is, and not only what it contains."""

from dataclasses import replace

import orjson
import pytest

from federation.apimachinery.resources import DEPLOYMENTS
from federation.scheduling.whatif.planresult import (
    Action,
    MemberObject,
    MemberPlan,
    ObjectPlan,
    Plan,
    from_json,
    to_json,
)

TWO, TWO_CHANGED, THREE = MemberObject({}, "a", "a", 2), MemberObject({}, "b", "b", 2), MemberObject({}, "c", "c", 3)
COPY = MemberObject({}, "a", "a")


@pytest.mark.parametrize(
    ("before", "after", "is_changed", "is_placed_otherwise"),
    [
        (TWO, TWO, False, False),
        (TWO, TWO_CHANGED, True, False),
        (TWO, THREE, True, True),
        (COPY, COPY, False, False),
        (None, COPY, True, True),
        (COPY, None, True, True),
        (None, None, False, False),
    ],
)
def test_a_placement_changes_with_clusters_and_replicas(
    before: MemberObject | None, after: MemberObject | None, is_changed: bool, is_placed_otherwise: bool
) -> None:
    row = MemberPlan("east", before, after)
    assert row.is_changed is is_changed
    plan = ObjectPlan(DEPLOYMENTS, "default", "web", next(iter(Action)), (MemberPlan("west", TWO, TWO), row))
    assert plan.is_placed_otherwise is is_placed_otherwise


@pytest.mark.parametrize(
    ("before", "after"), [(TWO, TWO), (TWO, TWO_CHANGED), (TWO, THREE), (None, COPY), (COPY, None)]
)
def test_a_plan_survives_its_json(before: MemberObject | None, after: MemberObject | None) -> None:
    rows = (MemberPlan("east", before, after, "not ready"), MemberPlan("west", COPY, replace(COPY, error="no path")))
    made = ObjectPlan(
        DEPLOYMENTS,
        "default",
        "web",
        Action.CHANGE,
        rows,
        unplaced=2,
        unplaced_before=1,
        waiting=3,
        is_stuck=True,
        reason="2/3 clusters are available",
        problems=("a problem",),
        waves=(("canary", ("east",)),),
        explanation={"outcome": "Scheduled"},
    )
    sent = to_json(Plan([made], examined=7, problems=["computed as one step"]))
    read = from_json(orjson.loads(orjson.dumps(sent)))
    assert to_json(read) == sent
    assert [row.is_changed for row in read.objects[0].rows] == [row.is_changed for row in rows]
    assert read.objects[0].target == made.target
