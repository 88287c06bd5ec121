"""What would start empty, and by which way: only what a word has opened in advance, and what waits now."""

from dataclasses import replace

import pytest

from federation.planning.diagnosis.dataways import Answer, DataWorkload, find_data_ways
from federation.planning.guard.ledger import Cause
from federation.planning.guard.record import HeldMove
from federation.planning.guard.volumepermit import Way

MEMBERS = frozenset({"east", "north"})
DB = DataWorkload("StatefulSet shop/db", "the claims", frozenset({"east"}), "policy shop/p")
HELD = HeldMove("shop-p-1", Cause("PropagationPolicy", "shop", "p"), frozenset({"east"}), "2026-01-01T00:00:00Z")


def found(workload: DataWorkload, members: frozenset[str] = MEMBERS) -> list[tuple[str, str, Answer]]:
    return [(each.cluster, each.way, each.answer) for each in find_data_ways([workload], members)]


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (DB, []),
        (replace(DB, fails_over=True), [("east", Way.LOSS, Answer.EMPTY)]),
        (replace(DB, has_application_failover=True), []),
        (
            replace(DB, fails_over=True, has_application_failover=True),
            [("east", Way.APPLICATION, Answer.EMPTY), ("east", Way.LOSS, Answer.EMPTY)],
        ),
        (replace(DB, held=HELD), [("east", str(HELD.cause), Answer.HELD)]),
        (replace(DB, held=HELD, is_approved=True), [("east", str(HELD.cause), Answer.APPROVED)]),
        (replace(DB, held=HELD, clusters=frozenset({"north"})), []),
        (replace(DB, clusters=frozenset({"east", "west"})), [("west", Way.MEMBERSHIP, Answer.HELD)]),
        (replace(DB, held=HELD, fails_over=True, is_placed=False), [("east", str(HELD.cause), Answer.HELD)]),
    ],
    ids=[
        "no word",
        "failover",
        "application alone",
        "application",
        "held",
        "approved",
        "elsewhere",
        "no member",
        "new",
    ],
)
def test_a_way_is_listed_if_a_word_has_opened_it_or_it_is_taken_now(
    workload: DataWorkload, expected: list[tuple[str, str, Answer]]
) -> None:
    assert sorted(found(workload)) == sorted(expected)


def test_the_word_and_the_command_are_named() -> None:
    (way,) = find_data_ways([replace(DB, fails_over=True)], MEMBERS)
    assert way.because == "its policy says failover.mode: Auto (policy shop/p)"
    (way,) = find_data_ways([replace(DB, held=HELD)], MEMBERS)
    assert way.because == "until: fedctl approve shop-p-1 --reason TEXT"
