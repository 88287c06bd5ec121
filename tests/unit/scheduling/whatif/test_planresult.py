"""When a plan changes where an object is, and not only what it contains."""

import pytest

from federation.apimachinery.resources import DEPLOYMENTS
from federation.scheduling.whatif.planresult import Action, MemberObject, MemberPlan, ObjectPlan

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
