from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.planning.leftovers.restoration import Restoration

BACKUP_AT = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
RESTORED_AT = datetime(2026, 1, 2, tzinfo=UTC)
RESTORATION = Restoration(BACKUP_AT, RESTORED_AT)


def at(field: str, moment: datetime | None) -> dict[str, Any]:
    return {"metadata": {"name": "web"} | ({field: to_rfc3339(moment)} if moment else {})}


def namespace(text: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {names.RESTORED: text}}}


def test_the_annotation_holds_both_times() -> None:
    found = Restoration.of(namespace(str(RESTORATION)))
    assert found == Restoration(BACKUP_AT.replace(microsecond=0), RESTORED_AT)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-01T12:00:00Z", "/2026-01-01T12:00:00Z", "2026-01-01/x"])
def test_a_missing_or_malformed_annotation_protects_nothing(text: str) -> None:
    assert Restoration.of(namespace(text)) is None
    assert Restoration.of(None) is None


@pytest.mark.parametrize(
    ("created_at", "expected"),
    [
        (BACKUP_AT - timedelta(seconds=1), False),
        (BACKUP_AT, True),  # times in members are whole seconds, so it counts from the start of the second
        (BACKUP_AT + timedelta(hours=1), True),
        (RESTORED_AT, True),
        (RESTORED_AT + timedelta(seconds=1), False),
        (None, False),
    ],
)
def test_objects_created_between_backup_and_restore_are_forgotten(created_at: datetime | None, expected: bool) -> None:
    assert RESTORATION.is_forgotten(at("creationTimestamp", created_at)) is expected


@pytest.mark.parametrize(
    ("deleted_at", "expected"), [(BACKUP_AT, True), (RESTORED_AT + timedelta(seconds=1), False), (None, False)]
)
def test_deletions_that_began_before_the_restore_are_outdated(deleted_at: datetime | None, expected: bool) -> None:
    assert RESTORATION.is_outdated(at("deletionTimestamp", deleted_at)) is expected
