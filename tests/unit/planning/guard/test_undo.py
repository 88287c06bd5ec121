"""Undo: which request is valid, and the placement afterwards."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.planning.guard.ledger import Cause
from federation.planning.guard.record import PastMove, past_text
from federation.planning.guard.undo import requested_undo, undo_problem, undone_placement

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
AT = to_rfc3339(NOW - timedelta(minutes=10))
MOVE = PastMove(AT, (Cause("PropagationPolicy", "default", "web"),), {"east": 3, "west": 3})


def _federated(asked: str, move: PastMove | None = MOVE) -> dict[str, Any]:
    annotations = {names.UNDO: asked, **({names.PREVIOUS_PLACEMENT: past_text(move)} if move else {})}
    return {"metadata": {"annotations": annotations}}


def test_a_request_names_the_last_move_by_its_time() -> None:
    assert requested_undo(_federated(AT)) == MOVE


@pytest.mark.parametrize("asked", ["", "2999-01-01T00:00:00Z", to_rfc3339(NOW), "now"])
def test_a_request_for_another_move_is_none(asked: str) -> None:
    assert requested_undo(_federated(asked)) is None
    assert requested_undo(_federated(AT, None)) is None


def test_a_recent_move_between_existing_clusters_can_be_undone() -> None:
    assert undo_problem(MOVE, ("east", "north", "west"), NOW) == ""


@pytest.mark.parametrize(
    ("move", "existing", "problem"),
    [
        (MOVE, ("east",), "clusters [west] of the earlier placement are gone or leaving"),
        (PastMove("2026-01-01T10:59:59Z", (), {"east": 1}), ("east",), "more than 1 h ago"),
        (PastMove("yesterday", (), {"east": 1}), ("east",), "malformed"),
    ],
    ids=["cluster gone", "too late", "malformed"],
)
def test_what_cannot_be_undone_says_why(move: PastMove, existing: tuple[str, ...], problem: str) -> None:
    assert problem in undo_problem(move, existing, NOW)


@pytest.mark.parametrize(
    ("current", "wanted", "expected"),
    [
        ({"west": 6}, 6, {"east": 3, "west": 3}),
        ({"west": 8}, 8, {"east": 3, "west": 5}),
        ({"north": 6}, 6, {"east": 3, "west": 3}),
    ],
    ids=["as it was", "scaled up since", "other clusters"],
)
def test_the_earlier_placement_is_restored(current: dict[str, int], wanted: int, expected: dict[str, int]) -> None:
    assert undone_placement(MOVE, current, wanted) == expected


def test_copies_are_restored_exactly() -> None:
    move = PastMove(AT, (), {"east": None, "north": None})
    assert undone_placement(move, {"west": None}, 4) == {"east": None, "north": None}
