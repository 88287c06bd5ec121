"""What a sweep does with an object that it finds: nothing is deleted without evidence."""

from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.resources import CONFIGMAPS, NAMESPACES, Resource
from federation.planning.leftovers.evidence import NO_MEMBERSHIP, Evidence, Word
from federation.planning.leftovers.record import Action, Reason, Record
from federation.planning.leftovers.strays import (
    Policy,
    StrayAction,
    decided_at,
    is_written_by_us,
    judge_excluded,
    judge_federated,
    judge_unknown,
    policy_of,
    settle,
)

POLICIES = (None, Policy.REPORT, Policy.REMOVE, Policy.RELEASE)
REPORTED = (StrayAction.REPORT, StrayAction.REPORT, StrayAction.REPORT, StrayAction.RELEASE)


def a_federated(*placed: str, status: str = "", departed: str = "", pending: str = "[]", going: bool = False) -> Any:
    annotations = {names.PENDING_CONTROLLERS: pending}
    if departed:
        annotations[names.DEPARTED_CLUSTERS] = f'["{departed}"]'
    metadata = {"annotations": annotations, **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {})}
    placements = [{"controller": "c", "placement": [{"cluster": name} for name in placed]}] if placed else []
    clusters = [{"cluster": status, "status": "OK"}] if status else []
    return {"metadata": metadata, "spec": {"placements": placements}, "status": {"clusters": clusters}}


@pytest.mark.parametrize(
    ("federated", "expected"),
    [
        (a_federated("east"), [StrayAction.DELIVERED] * 4),
        (a_federated("west", status="east"), [StrayAction.DELIVERED] * 4),
        (a_federated("west", departed="east"), [StrayAction.DELIVERED] * 4),
        (a_federated("east", going=True), [StrayAction.DELIVERED] * 4),
        (a_federated("west", going=True), [StrayAction.DEPART] * 4),
        (a_federated("west", pending='[["x"]]'), [StrayAction.UNDECIDED] * 4),
        (a_federated(), list(REPORTED)),
        (a_federated("west"), [StrayAction.DEPART, StrayAction.REPORT, StrayAction.DEPART, StrayAction.RELEASE]),
    ],
    ids=["placed", "in the status", "departed", "placed and going", "going", "pending", "not placed", "elsewhere"],
)
def test_a_placement_elsewhere_is_evidence_and_none_is_not(federated: Any, expected: list[StrayAction]) -> None:
    assert [judge_federated(federated, "east", policy) for policy in POLICIES] == expected


def test_an_excluded_object_is_reported_or_released() -> None:
    assert tuple(map(judge_excluded, POLICIES)) == REPORTED


def a_record(reason: Reason = Reason.CLUSTER_REMOVED, action: Action = Action.KEEP) -> Record:
    return Record("east", CONFIGMAPS, "default", "a", action, reason, uid="u")


@pytest.mark.parametrize(
    ("resource", "is_revoked", "expected"),
    [
        (CONFIGMAPS, False, [StrayAction.REPORT, StrayAction.REPORT, StrayAction.DELETE, StrayAction.RELEASE]),
        (NAMESPACES, False, list(REPORTED)),
        (NAMESPACES, True, [StrayAction.DELETE] * 4),
    ],
)
def test_the_absence_of_a_source_is_no_evidence_and_a_revoked_secret_is(
    resource: Resource, is_revoked: bool, expected: list[StrayAction]
) -> None:
    assert [judge_unknown(resource, policy, is_revoked=is_revoked) for policy in POLICIES] == expected


GOOD, BAD = Evidence(Word.ANSWER, NO_MEMBERSHIP), Evidence(Word.PLACEMENT, NO_MEMBERSHIP)


@pytest.mark.parametrize(
    ("chosen", "evidence", "record", "expected"),
    [
        (StrayAction.DEPART, GOOD, None, StrayAction.DEPART),
        (StrayAction.DELETE, GOOD, a_record(Reason.STRAY), StrayAction.DELETE),
        (StrayAction.DEPART, BAD, None, StrayAction.REPORT),
        (StrayAction.DELETE, BAD, None, StrayAction.REPORT),
        (StrayAction.DEPART, GOOD, a_record(), StrayAction.RELEASE),
        (StrayAction.REPORT, GOOD, a_record(Reason.KEPT), StrayAction.RELEASE),
        (StrayAction.DEPART, GOOD, a_record(Reason.HELD), StrayAction.REPORT),
        (StrayAction.RELEASE, BAD, None, StrayAction.RELEASE),
        (StrayAction.DELIVERED, BAD, a_record(), StrayAction.DELIVERED),
        (StrayAction.UNDECIDED, BAD, a_record(), StrayAction.UNDECIDED),
    ],
)
def test_what_a_user_kept_is_released_and_what_has_no_evidence_is_reported(
    chosen: StrayAction, evidence: Evidence, record: Record | None, expected: StrayAction
) -> None:
    assert settle(chosen, evidence, record, None)[0] is expected


def test_a_cluster_that_only_reports_releases_nothing_that_was_kept() -> None:
    assert settle(StrayAction.DEPART, GOOD, a_record(), Policy.REPORT)[0] is StrayAction.REPORT


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, ""),
        ({"annotations": {names.DECIDED_AT: "2026-01-01T00:00:00Z"}}, "2026-01-01T00:00:00Z"),
        (
            {
                "annotations": {names.DECIDED_AT: "2026-01-01T00:00:00Z"},
                "deletionTimestamp": "2026-01-02T00:00:00Z",
            },
            "2026-01-02T00:00:00Z",
        ),
    ],
)
def test_the_newest_word_about_a_placement_has_a_time(metadata: dict[str, Any], expected: str) -> None:
    assert decided_at({"metadata": metadata}) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("remove", Policy.REMOVE), ("release", Policy.RELEASE), ("Remove", None), (None, None)]
)
def test_only_a_known_policy_counts(text: str | None, expected: Policy | None) -> None:
    assert policy_of({"metadata": {"annotations": {names.STRAYS: text} if text else None}}) is expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, True),
        ({"labels": None}, False),
        ({"labels": {names.MANAGED_LABEL: "false"}}, False),
        ({"annotations": None}, False),
        ({"ownerReferences": [{"kind": "Service", "name": "a", "uid": "s", "controller": True}]}, False),
        ({"ownerReferences": [{"kind": "Service", "name": "a", "uid": "s"}]}, True),
    ],
)
def test_copies_of_our_labels_are_not_ours(metadata: dict[str, Any], expected: bool) -> None:
    ours = {"labels": {names.MANAGED_LABEL: "true"}, "annotations": {names.TEMPLATE_HASH: "h"}}
    assert is_written_by_us({"metadata": {**ours, **metadata}}) is expected
