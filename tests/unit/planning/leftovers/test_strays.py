"""What a sweep does with an object that it finds: nothing is deleted without evidence."""

from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.resources import CONFIGMAPS, NAMESPACES, Resource
from federation.planning.leftovers.record import Action, Reason, Record
from federation.planning.leftovers.strays import (
    Policy,
    StrayAction,
    is_written_by_us,
    judge_excluded,
    judge_federated,
    judge_unknown,
    policy_of,
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


def a_record(reason: Reason = Reason.CLUSTER_REMOVED, uid: str = "u") -> Record:
    return Record("east", CONFIGMAPS, "default", "a", Action.DELETE, reason, uid=uid)


@pytest.mark.parametrize(
    ("resource", "record", "is_revoked", "expected"),
    [
        (CONFIGMAPS, None, False, [StrayAction.REPORT, StrayAction.REPORT, StrayAction.DELETE, StrayAction.RELEASE]),
        (NAMESPACES, None, False, list(REPORTED)),
        (CONFIGMAPS, a_record(), False, [StrayAction.DELETE] * 4),
        (CONFIGMAPS, a_record(uid=""), False, [StrayAction.DELETE] * 4),
        (
            CONFIGMAPS,
            a_record(uid="other"),
            False,
            [StrayAction.REPORT, StrayAction.REPORT, StrayAction.DELETE, StrayAction.RELEASE],
        ),
        (NAMESPACES, a_record(Reason.STRAY), False, list(REPORTED)),
        (NAMESPACES, None, True, [StrayAction.DELETE] * 4),
    ],
)
def test_an_unknown_object_is_deleted_by_a_record_or_by_the_clusters_policy(
    resource: Resource, record: Record | None, is_revoked: bool, expected: list[StrayAction]
) -> None:
    found = [judge_unknown(resource, "u", record, policy, is_revoked=is_revoked) for policy in POLICIES]
    assert found == expected


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
