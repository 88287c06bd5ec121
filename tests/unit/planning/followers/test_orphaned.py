"""The record of orphaning leaders, and when it ends."""

from typing import Any

import pytest

from federation.api import names
from federation.planning.followers.orphaned import is_orphaning, kept_for, merge_kept, still_kept, to_annotation
from federation.planning.followers.references import Identity

WEB = Identity("apps", "Deployment", "default", "web")
POD = Identity("", "Pod", "default", "once")
EAST, WEST = frozenset(("east",)), frozenset(("west",))


def _follower(note: str | None) -> dict[str, Any]:
    annotations = {} if note is None else {names.KEPT_FOR: note}
    return {"metadata": {"name": "settings", "namespace": "default", "annotations": annotations}}


def test_a_record_round_trips() -> None:
    kept = {WEB: EAST | WEST, POD: WEST}
    assert kept_for(_follower(to_annotation(kept))) == kept
    assert to_annotation({WEB: frozenset()}) is None
    assert kept_for(_follower(None)) == {}


@pytest.mark.parametrize(
    "note", ["{", "[1]", "null", "7", '[{"kind":"Pod"}]', '[{"kind":"Pod","name":"a","clusters":"b"}]']
)
def test_a_malformed_record_keeps_nothing(note: str) -> None:
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
def test_a_deletion_that_leaves_member_objects_is_orphaning(annotations: dict[str, str] | None, expected: bool) -> None:
    leader = {"metadata": {"name": "web", "annotations": annotations, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert is_orphaning(leader) is expected
    assert not is_orphaning({"metadata": {"name": "web", "annotations": annotations}})


def test_records_are_merged() -> None:
    assert merge_kept({WEB: EAST}, {}, {WEB: WEST, POD: WEST}) == {WEB: EAST | WEST, POD: WEST}


def test_a_leader_in_the_cluster_again_ends_the_record() -> None:
    clusters = [{"cluster": "east", "status": "OK"}, {"cluster": "west", "status": "AlreadyExists"}]
    leader: dict[str, Any] = {"metadata": {"name": "web"}, "status": {"clusters": clusters}}
    assert still_kept({WEB: EAST | WEST, POD: EAST}, {WEB: leader}.get) == {WEB: WEST, POD: EAST}
    leader["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert still_kept({WEB: EAST}, {WEB: leader}.get) == {WEB: EAST}
    assert still_kept({WEB: EAST}, {WEB: {"metadata": {}}}.get) == {WEB: EAST}
