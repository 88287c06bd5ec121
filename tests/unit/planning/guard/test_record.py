"""The guard's annotations: they survive their text, and malformed ones count as none."""

from typing import Any

import pytest

from federation.api import names
from federation.planning.guard.ledger import Cause
from federation.planning.guard.record import HeldMove, PastMove, held_move, held_text, past_move, past_text

CAUSE = Cause("PropagationPolicy", "default", "web")


def _with(annotation: str, text: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {annotation: text}}}


def test_a_held_move_survives_its_text() -> None:
    move = HeldMove("web-1", CAUSE, frozenset({"east", "west"}), "2026-01-01T00:00:00Z")
    assert held_move(_with(names.HELD_PLACEMENT, held_text(move))) == move


@pytest.mark.parametrize("hold", ["", "web-1"])
def test_a_past_move_survives_its_text(hold: str) -> None:
    move = PastMove("2026-01-01T00:00:00Z", (CAUSE,), {"east": 3, "west": None}, hold)
    assert past_move(_with(names.PREVIOUS_PLACEMENT, past_text(move))) == move


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "1", "{}", '{"hold":"x","cause":1,"from":1,"since":""}', '{"at":"","causes":[],"placement":[]}'],
)
def test_malformed_records_count_as_none(text: str) -> None:
    assert held_move(_with(names.HELD_PLACEMENT, text)) is None
    assert past_move(_with(names.PREVIOUS_PLACEMENT, text)) is None
