"""Who waits for what: a change wakes those that it can help, and each of them is told of it once."""

from datetime import UTC, datetime

from federation.controllers.schedule.waiting import Told, Waiting
from federation.runtime.controller import Key
from federation.scheduling.framework.types import Change
from federation.scheduling.hope import Hope

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A, B, C = (Key("default", name) for name in "abc")


def told(**hope: Change) -> Told:
    awaited = {Change.MEMBERSHIP | change: frozenset((name,)) for name, change in hope.items()}
    return Told("why", b"", NOW, "basis", Hope(awaited))


def test_a_change_wakes_those_that_it_can_help() -> None:
    waiting = Waiting()
    waiting.add(A, told(east=Change.TAINTS, west=Change.LABELS))
    waiting.add(B, told(east=Change.READINESS))
    waiting.add(C, Told("why", b"", NOW))
    assert waiting.helped_by("east", Change.TAINTS) == [A]
    assert waiting.helped_by("west", Change.TAINTS) == []
    assert waiting.helped_by("east", Change.READINESS | Change.RESOURCES) == [B]
    assert waiting.helped_by("east", Change.MEMBERSHIP) == [A, B]
    assert [waiting.is_helped(key) for key in (A, B, C)] == [True, True, False]


def test_units_that_were_rejected_alike_are_looked_at_once() -> None:
    waiting = Waiting()
    for number in range(1000):
        waiting.add(Key("default", str(number)), told(east=Change.TAINTS))
    assert len(waiting._groups) == 1
    maps = {id(found.hope.awaited) for key in waiting.all() if (found := waiting.told(key)) is not None}
    assert len(maps) == 1
    assert len(waiting.helped_by("east", Change.TAINTS)) == 1000
    for number in range(1000):
        waiting.discard(Key("default", str(number)))
    assert (len(waiting), waiting._groups, waiting._helped) == (0, {}, set())


def test_a_new_reason_replaces_the_old_one_and_a_mark_is_made_use_of_once() -> None:
    waiting = Waiting()
    waiting.add(A, told(east=Change.TAINTS))
    waiting.add(A, told(east=Change.LABELS))
    assert waiting.helped_by("east", Change.TAINTS) == []
    assert waiting.helped_by("east", Change.LABELS) == [A]
    waiting.unmark(A)
    assert not waiting.is_helped(A)
    waiting.mark((A, B))
    assert (waiting.is_helped(A), waiting.is_helped(B)) == (True, False), "who does not wait is not marked"
    assert waiting.all() == [A]
