"""Deletions of data: what they count for, and which records the guard believes."""

from typing import Any

import pytest

from federation.api import names
from federation.planning.guard.deletions import (
    allowed_deletion,
    cause_of,
    holds_among,
    is_deletion,
    is_released,
    remaining_of,
)
from federation.planning.guard.ledger import Cause, GuardOptions, Ledger, parse_cause
from federation.planning.guard.record import HeldMove, PastMove, held_text, past_text

CLAIM = Cause("Deletion", "shop", "PersistentVolumeClaim")
POLICY = Cause("PropagationPolicy", "shop", "web")


def _federated(api_version: str, kind: str, namespace: str = "", **annotations: str) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": namespace, "annotations": annotations}
    return {"metadata": metadata, "spec": {"template": {"apiVersion": api_version, "kind": kind}}}


@pytest.mark.parametrize(
    ("federated", "expected"),
    [
        (_federated("v1", "PersistentVolumeClaim", "shop"), ("Deletion shop/PersistentVolumeClaim",)),
        (_federated("v1", "Namespace"), ("Deletion Namespace",)),
        (
            _federated("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            ("Deletion CustomResourceDefinition",),
        ),
        (_federated("apps/v1", "Deployment", "shop"), ()),
        (_federated("example.com/v1", "Namespace"), ()),
    ],
)
def test_data_counts_by_kind_and_namespace(federated: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert remaining_of(federated) == expected
    for text in expected:
        assert parse_cause(text) == cause_of(federated)
        assert is_deletion(parse_cause(text))


def test_only_the_record_of_a_deletion_allows_one() -> None:
    moved = PastMove("2026-01-01T00:00:00Z", (POLICY,), {"east": None})
    deleted = PastMove("2026-01-01T00:00:00Z", (CLAIM,), {"east": None})
    claim = _federated("v1", "PersistentVolumeClaim", "shop")
    assert allowed_deletion(claim) is None
    claim["metadata"]["annotations"][names.PREVIOUS_PLACEMENT] = past_text(moved)
    assert allowed_deletion(claim) is None
    assert remaining_of(claim)
    claim["metadata"]["annotations"][names.PREVIOUS_PLACEMENT] = past_text(deleted)
    assert allowed_deletion(claim) == deleted
    assert not remaining_of(claim)


def test_a_move_that_is_held_is_no_deletion_that_is_held() -> None:
    claims = []
    for cause, hold in ((POLICY, "moves"), (CLAIM, "deletions")):
        claim = _federated("v1", "PersistentVolumeClaim", "shop")
        held = HeldMove(hold, cause, frozenset({"east"}), "2026-01-01T00:00:00Z")
        claim["metadata"]["annotations"][names.HELD_PLACEMENT] = held_text(held)
        claims.append(claim)
    assert holds_among(claims) == ["deletions"]


@pytest.mark.parametrize(("value", "expected"), [("all", True), ("adopted", False), ("", False)])
def test_only_the_release_of_everything_deletes_nothing(value: str, *, expected: bool) -> None:
    for annotation in (names.ORPHAN, names.INTERNAL_ORPHAN):
        claim = _federated("v1", "PersistentVolumeClaim", "shop", **{annotation: value})
        assert is_released(claim) is expected


def test_the_moves_of_a_cause_are_forgotten_with_the_window() -> None:
    ledger: Ledger[int] = Ledger(GuardOptions())
    assert ledger.moved(CLAIM, 0.0) == 0
    for key in range(3):
        ledger.propose(key, {CLAIM: 3}, 0.0)
    assert ledger.moved(CLAIM, 1.0) == 3
    assert ledger.moved(CLAIM, 601.0) == 0
