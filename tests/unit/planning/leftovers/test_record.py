"""The next step for the record of a left object, given the live one."""

from dataclasses import replace
from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.resources import DEPLOYMENTS
from federation.planning.leftovers.evidence import Evidence, Membership, Word
from federation.planning.leftovers.record import (
    Action,
    Reason,
    Record,
    Step,
    evidence_of_record,
    from_manifest,
    next_step,
    to_manifest,
    without_deletion,
)

RECORD = Record("m1", DEPLOYMENTS, "default", "web", Action.DELETE, Reason.SOURCE_DELETED, "c1", "u1", "why")


CREATED, LATER = "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"


def live(uid: str = "u1", label: str | None = "true", *, adopted: bool = False) -> dict[str, Any]:
    annotations = {names.ADOPTED: "true"} if adopted else None
    labels = {names.MANAGED_LABEL: label} if label else None
    return {"metadata": {"uid": uid, "labels": labels, "annotations": annotations}}


@pytest.mark.parametrize(
    ("action", "uid", "found", "expected"),
    [
        (Action.DELETE, "u1", live(), Step.DELETE),
        (Action.DELETE, "", live("other"), Step.DELETE),
        (Action.DELETE, "u1", live("other"), Step.REPORT),
        (Action.DELETE, "u1", None, Step.FORGET),
        (Action.DELETE, "u1", live(label=None), Step.FORGET),
        (Action.DELETE, "u1", live("other", label="false"), Step.FORGET),
        (Action.RELEASE, "u1", live(), Step.RELEASE),
        (Action.RELEASE, "u1", live("other"), Step.REPORT),
        (Action.RELEASE_ADOPTED, "u1", live(adopted=True), Step.RELEASE),
        (Action.RELEASE_ADOPTED, "u1", live(), Step.DELETE),
        (Action.KEEP, "u1", live(), Step.NOTHING),
        (Action.KEEP, "u1", live("other"), Step.NOTHING),
        (Action.KEEP, "u1", None, Step.FORGET),
    ],
)
def test_only_the_recorded_object_is_touched(
    action: Action, uid: str, found: dict[str, Any] | None, expected: Step
) -> None:
    record = Record("m1", DEPLOYMENTS, "default", "web", action, Reason.SOURCE_DELETED, uid=uid)
    assert next_step(record, found) is expected


@pytest.mark.parametrize(
    ("reason", "action", "uid", "found", "expected"),
    [
        # What a user kept has no label of ours. Only an answer about exactly this object deletes it.
        (Reason.KEPT, Action.KEEP, "u1", live(label=None), Step.NOTHING),
        (Reason.KEPT, Action.DELETE, "u1", live(label=None), Step.DELETE),
        (Reason.KEPT, Action.DELETE, "u1", live("other", label=None), Step.FORGET),
        (Reason.KEPT, Action.DELETE, "", live(label=None), Step.FORGET),
        (Reason.KEPT, Action.DELETE, "u1", live("other"), Step.REPORT),
        (Reason.KEPT, Action.RELEASE, "u1", live(), Step.RELEASE),
        (Reason.KEPT, Action.RELEASE, "u1", live(label=None), Step.KEEP),
        (Reason.KEPT, Action.KEEP, "u1", None, Step.FORGET),
        (Reason.CLUSTER_REMOVED, Action.RELEASE, "u1", live(), Step.RELEASE),
        (Reason.CLUSTER_REMOVED, Action.RELEASE, "u1", live(label=None), Step.KEEP),
        (Reason.CLUSTER_REMOVED, Action.RELEASE, "u1", live("other", label=None), Step.FORGET),
        (Reason.CLUSTER_REMOVED, Action.DELETE, "u1", live(label=None), Step.FORGET),
        (Reason.HELD, Action.DELETE, "u1", live(), Step.DELETE),
        (Reason.HELD, Action.KEEP, "u1", live(), Step.NOTHING),
    ],
)
def test_what_a_user_kept_stays_recorded_and_goes_only_by_an_answer(
    reason: Reason, action: Action, uid: str, found: dict[str, Any] | None, expected: Step
) -> None:
    assert next_step(Record("m1", DEPLOYMENTS, "default", "web", action, reason, uid=uid), found) is expected


@pytest.mark.parametrize(
    ("reason", "action", "expected"),
    [
        (Reason.KEPT, Action.KEEP, True),
        (Reason.KEPT, Action.RELEASE, True),
        (Reason.KEPT, Action.DELETE, False),
        (Reason.CLUSTER_REMOVED, Action.KEEP, True),
        (Reason.STRAY, Action.KEEP, False),
        (Reason.HELD, Action.KEEP, False),
        (Reason.SOURCE_DELETED, Action.DELETE, False),
    ],
)
def test_an_answer_is_newer_than_what_was_kept(reason: Reason, action: Action, expected: bool) -> None:
    assert Record("m1", DEPLOYMENTS, "default", "web", action, reason).is_kept is expected


@pytest.mark.parametrize(
    ("reason", "stored", "expected"),
    [
        (Reason.SOURCE_DELETED, "", CREATED),  # of an earlier version
        (Reason.SOURCE_DELETED, LATER, LATER),
        (Reason.REVOKED, "", CREATED),
        (Reason.HELD, "", ""),  # an answer that was not seen yet; the record is older than it
        (Reason.KEPT, LATER, LATER),
    ],
)
def test_a_record_is_evidence_of_the_time_of_its_deletion(reason: Reason, stored: str, expected: str) -> None:
    manifest = to_manifest(replace(RECORD, reason=reason, at=stored))
    read = from_manifest({**manifest, "metadata": {**manifest["metadata"], "creationTimestamp": CREATED}})
    membership = Membership("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "c1")
    assert evidence_of_record(read, membership) == Evidence(Word.RECORD, membership, at=expected, cluster_uid="c1")


@pytest.mark.parametrize(
    ("created", "at", "expected"),
    [
        (LATER, CREATED, Step.REPORT),
        (CREATED, LATER, Step.DELETE),
        ("", CREATED, Step.DELETE),
        (LATER, "", Step.DELETE),
    ],
)
def test_an_object_that_was_created_after_its_deletion_is_another_one(created: str, at: str, expected: Step) -> None:
    found = live()
    found["metadata"]["creationTimestamp"] = created
    assert next_step(replace(RECORD, uid="", at=at), found) is expected
    assert next_step(replace(RECORD, at=at), found) is Step.DELETE, "the uid decides where it is known"


@pytest.mark.parametrize(("reason", "kept"), [(Reason.KEPT, Reason.KEPT), (Reason.HELD, Reason.CLUSTER_REMOVED)])
def test_a_deletion_of_an_earlier_membership_keeps_the_object(reason: Reason, kept: Reason) -> None:
    for at, text in ((CREATED, CREATED), ("", "an unknown time")):
        found = without_deletion(replace(RECORD, reason=reason, at=at), "u2")
        assert (found.action, found.reason, found.uid, found.at) == (Action.KEEP, kept, "u2", "")
        assert found.is_kept
        assert text in found.message


def test_a_record_survives_its_manifest_and_has_the_name_of_its_object() -> None:
    manifest = to_manifest(RECORD)
    assert from_manifest(manifest) == RECORD
    stored = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "7"}}
    assert from_manifest(stored).revision == "7"
    assert from_manifest(stored) == RECORD, "a record that was read is the one that was written"
    with pytest.raises(ValueError, match="is named"):
        from_manifest({**manifest, "metadata": {"name": "other"}})


@pytest.mark.parametrize(
    ("known", "asked", "expected"), [("c1", "c1", True), ("c1", "", True), ("", "c1", True), ("c1", "c2", False)]
)
def test_an_unknown_cluster_uid_rules_nothing_out(known: str, asked: str, expected: bool) -> None:
    record = Record("m1", DEPLOYMENTS, "default", "web", Action.DELETE, Reason.STRAY, cluster_uid=known)
    assert record.is_in(asked) is expected
