"""Which causes of its own a unit has to move."""

from typing import Any

import pytest

from federation.api import names
from federation.scheduling.framework.moving import CHOOSES_ANEW, HOMES
from federation.scheduling.framework.testing import a_divided_unit, changed_unit
from federation.scheduling.framework.types import SchedulingMode, SchedulingUnit
from federation.scheduling.movecauses import QuietCauses, quiet_causes, with_causes
from federation.scheduling.policyspec import compile_policy
from federation.scheduling.triggers import TriggerComparison

RANKED = {"priorities": {"east": 1}}
JOINS = {
    "rescheduleWhen": {"clusterJoined": True},
    "replicaRescheduling": {"avoidDisruption": False},
}


def caused(
    *changed: str,
    unit: dict[str, Any] | None = None,
    rules: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    only_adds: bool = False,
    homes: frozenset[str] | None = None,
    completes: bool = False,
) -> SchedulingUnit:
    policy = compile_policy({"metadata": {"name": "p"}, "spec": {"reschedulePolicy": rules or {}}})
    comparison = TriggerComparison(is_due=True, changed=changed)
    given = changed_unit(a_divided_unit(2), **(unit or {}))
    quiet = QuietCauses(only_adds=only_adds, homes=homes or frozenset(), completes=completes)
    return with_causes(given, policy, comparison, annotations or {}, quiet)


@pytest.mark.parametrize(
    ("changed", "unit", "rules", "expected"),
    [
        ((), RANKED, {}, False),
        (("policyContentHash",), {}, {}, False),
        (("policyContentHash",), RANKED, {}, True),
        (("schedulingAnnotationsHash",), RANKED, {}, True),
        (("replicaCount",), RANKED, {}, False),
        (("clusters",), {}, {}, False),
        (("clusters",), {}, {"rescheduleWhen": {"clusterJoined": True}}, False),
        (("clusters",), {}, JOINS, True),
        (("clusterTaints",), {}, JOINS, False),
    ],
    ids=[
        "nothing changed",
        "an edit of a policy without preferences",
        "an edit of a policy with preferences",
        "annotations",
        "scaling",
        "a join",
        "a join that the policy follows for new objects",
        "a join that the policy lets replicas move for",
        "a taint elsewhere",
    ],
)
def test_scores_may_move_a_unit_only_for_what_it_asks(
    changed: tuple[str, ...], unit: dict[str, Any], rules: dict[str, Any], expected: bool
) -> None:
    assert CHOOSES_ANEW.of(caused(*changed, unit=unit, rules=rules)) is expected


def test_a_rebalance_chooses_anew_and_may_disrupt() -> None:
    unit = caused(annotations={names.REBALANCE: "now"})
    assert (CHOOSES_ANEW.of(unit), unit.avoid_disruption) == (True, False)


def test_replicas_return_to_their_homes_and_nothing_else_moves() -> None:
    unit = caused(homes=frozenset({"east"}))
    assert (HOMES.of(unit), CHOOSES_ANEW.of(unit), unit.avoid_disruption) == ({"east"}, False, False)


@pytest.mark.parametrize("mode", SchedulingMode)
def test_a_completed_workload_is_divided_anew_and_copies_are_only_added(mode: SchedulingMode) -> None:
    unit = caused(completes=True, unit={"mode": mode, "avoid_disruption": False})
    assert CHOOSES_ANEW.of(unit) is (mode is SchedulingMode.DIVIDE)
    assert unit.avoid_disruption is (mode is SchedulingMode.DUPLICATE)


def test_adding_replicas_moves_none() -> None:
    unit = caused(only_adds=True, annotations={names.REBALANCE: "now"})
    assert unit.avoid_disruption


@pytest.mark.parametrize(
    ("can_place_more", "has_unplaced", "homes", "completes", "expected"),
    [
        (True, True, "a", True, QuietCauses(only_adds=True)),
        (True, False, "a", True, QuietCauses(goes_back=True)),
        (False, True, "a", True, QuietCauses(homes=frozenset("a"))),
        (False, True, "", True, QuietCauses(completes=True)),
        (False, True, "", False, QuietCauses()),
    ],
)
def test_the_first_quiet_cause_holds(
    can_place_more: bool, has_unplaced: bool, homes: str, completes: bool, expected: QuietCauses
) -> None:
    found = quiet_causes((), can_place_more, has_unplaced, homes=frozenset(homes), completes=completes)
    assert found == expected
