"""What a follower notes of leaders whose copies stay, and when the note ends."""

from typing import Any

import pytest

from federation.api import names
from federation.planning.followers.references import Identity
from federation.planning.followers.released import combine, is_released, kept_for, still_kept, to_note

WEB = Identity("apps", "Deployment", "default", "web")
POD = Identity("", "Pod", "default", "once")
EAST, WEST = frozenset(("east",)), frozenset(("west",))


def _follower(note: str | None) -> dict[str, Any]:
    annotations = {} if note is None else {names.KEPT_FOR: note}
    return {"metadata": {"name": "settings", "namespace": "default", "annotations": annotations}}


def test_a_note_says_again_what_was_noted() -> None:
    kept = {WEB: EAST | WEST, POD: WEST}
    assert kept_for(_follower(to_note(kept))) == kept
    assert to_note({WEB: frozenset()}) is None
    assert kept_for(_follower(None)) == {}


@pytest.mark.parametrize(
    "note", ["{", "[1]", "null", "7", '[{"kind":"Pod"}]', '[{"kind":"Pod","name":"a","clusters":"b"}]']
)
def test_a_note_that_cannot_be_read_keeps_nothing(note: str) -> None:
    assert kept_for(_follower(note)) == {}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({names.INTERNAL_ORPHAN: "all"}, True),
        ({names.ORPHAN: "all"}, True),
        ({names.ORPHAN: "adopted"}, True),
        ({names.ORPHAN: "true"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_who_is_deleted_and_leaves_copies_behind_is_released(
    annotations: dict[str, str] | None, expected: bool
) -> None:
    leader = {"metadata": {"name": "web", "annotations": annotations, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert is_released(leader) is expected
    assert not is_released({"metadata": {"name": "web", "annotations": annotations}})


def test_notes_add_up() -> None:
    assert combine({WEB: EAST}, {}, {WEB: WEST, POD: WEST}) == {WEB: EAST | WEST, POD: WEST}


def test_a_leader_that_holds_a_cluster_again_ends_the_note_there() -> None:
    clusters = [{"cluster": "east", "status": "OK"}, {"cluster": "west", "status": "AlreadyExists"}]
    leader: dict[str, Any] = {"metadata": {"name": "web"}, "status": {"clusters": clusters}}
    assert still_kept({WEB: EAST | WEST, POD: EAST}, {WEB: leader}.get) == {WEB: WEST, POD: EAST}
    leader["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert still_kept({WEB: EAST}, {WEB: leader}.get) == {WEB: EAST}
    assert still_kept({WEB: EAST}, {WEB: {"metadata": {}}}.get) == {WEB: EAST}
