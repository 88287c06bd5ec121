"""Statuses, and whose an object is, that the behaviour vectors do not cover."""

from datetime import UTC, datetime
from typing import Any

import pytest

from federation.api import names
from federation.delivery.rules.plan import (
    Removal,
    cluster_state_of,
    decide_removal,
    has_lost_label,
    is_name_collision,
)
from federation.delivery.rules.status import plan_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)


def test_orphaning_follows_the_annotation() -> None:
    adopted = {names.ADOPTED: "true"}
    assert decide_removal({}, adopted) is Removal.DELETE
    assert decide_removal({names.ORPHAN: "all"}, {}) is Removal.ORPHAN
    assert decide_removal({names.ORPHAN: "adopted"}, {}) is Removal.DELETE
    assert decide_removal({names.ORPHAN: "adopted"}, adopted) is Removal.ORPHAN
    assert decide_removal({names.ORPHAN: "all", names.INTERNAL_ORPHAN: "adopted"}, {}) is Removal.DELETE


@pytest.mark.parametrize(
    ("taint", "ruled", "is_drained"),
    [
        ({"key": names.TAINT_DRAIN, "effect": "NoExecute"}, "", True),
        ({"key": "sick", "effect": "NoExecute"}, "", False),
        ({"key": "sick", "effect": "NoExecute"}, "sick:NoExecute", True),
        ({"key": "sick", "effect": "NoSchedule"}, "sick:NoSchedule", False),
    ],
)
def test_a_cluster_is_drained_by_a_drain_and_by_a_rule(taint: Any, ruled: str, is_drained: bool) -> None:
    metadata = {"name": "m1", "annotations": {names.RULED_TAINTS: ruled}}
    assert cluster_state_of({"metadata": metadata, "spec": {"taints": [taint]}}).is_drained is is_drained


def test_a_derived_service_and_another_service_collide_by_name() -> None:
    derived = {names.DERIVED_SERVICE: "web"}
    assert is_name_collision(derived, {"metadata": {}})
    assert is_name_collision({}, {"metadata": {"annotations": derived}})
    assert not is_name_collision(derived, {"metadata": {"annotations": derived}})


def _status(**more: Any) -> Any:
    return plan_status(
        more.pop("status", {}),
        generation=more.pop("generation", 1),
        statuses=more.pop("statuses", {"m1": "OK"}),
        generations=more.pop("generations", {"m1": 1}),
        now=more.pop("now", NOW),
        **more,
    )


def test_an_unchanged_status_is_not_written_and_keeps_its_times() -> None:
    first = _status()
    assert first["conditions"][0]["status"] == "True"
    assert _status(status=first, now=LATER) is None
    broken = _status(status=first, statuses={"m1": "CreationFailed"}, message="m1: CreationFailed", now=LATER)
    assert broken["conditions"][0]["status"] == "False"
    assert broken["conditions"][0]["lastTransitionTime"] == "2026-01-02T00:00:00Z"
    again = _status(status=broken, statuses={"m1": "CreationFailed"}, message="m1: still", now=LATER)
    assert again["conditions"][0]["message"] == "m1: still"


def test_other_conditions_stay() -> None:
    scheduled = {"type": "Scheduled", "status": "False"}
    planned = _status(status={"conditions": [scheduled]})
    assert scheduled in planned["conditions"]


OURS = {
    "manager": names.FIELD_MANAGER,
    "operation": "Apply",
    "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{names.TEMPLATE_HASH}": {}}}},
}


@pytest.mark.parametrize(
    ("metadata", "known_uid", "expected"),
    [
        ({}, "", True),
        ({}, "u1", True),
        ({"labels": {names.MANAGED_LABEL: ""}}, "u1", True),
        ({}, "of another object", False),
        ({"labels": {names.MANAGED_LABEL: "false"}}, "u1", False),
        ({"labels": {names.MANAGED_LABEL: "true"}}, "u1", False),
        ({"annotations": {}}, "u1", False),
        ({"managedFields": [{**OURS, "manager": "kubectl"}]}, "u1", False),
        ({"managedFields": [{**OURS, "operation": "Update"}]}, "u1", False),
        ({"managedFields": [{**OURS, "fieldsV1": {"f:metadata": {"f:annotations": {"f:other": {}}}}}]}, "u1", False),
        ({"managedFields": "odd"}, "u1", False),
        ({"managedFields": None}, "", False),
    ],
)
def test_an_object_without_label_is_ours_only_by_hash_owner_and_uid(
    metadata: dict[str, Any], known_uid: str, expected: bool
) -> None:
    live = {
        "metadata": {
            "uid": "u1",
            "annotations": {names.TEMPLATE_HASH: "abc"},
            "managedFields": [OURS],
            **metadata,
        }
    }
    assert has_lost_label(live, known_uid) is expected
