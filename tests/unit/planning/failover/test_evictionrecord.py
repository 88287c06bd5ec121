"""The annotation that records what left which cluster."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.api import names
from federation.planning.failover.evictionrecord import (
    NO_EVICTION,
    EvictionRecord,
    Stay,
    StayReason,
    eviction_record,
    eviction_text,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _federated(text: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {names.EVICTION: text}}}


def test_a_record_survives_its_text() -> None:
    record = EvictionRecord(
        ((NOW - timedelta(seconds=30), 4),),
        {"east": 4},
        {"north": Stay(StayReason.STATE, "it has state")},
        NOW - timedelta(seconds=300),
    )
    assert eviction_record(_federated(eviction_text(record, NOW))) == record


def test_old_moves_and_empty_entries_are_dropped() -> None:
    old = (NOW - timedelta(seconds=60), 4)
    assert eviction_text(EvictionRecord((old,), {"east": 0}, {}, NOW), NOW) is None
    text = eviction_text(EvictionRecord((old, (NOW, 1)), {"east": 1}), NOW)
    assert eviction_record(_federated(text)).moves == ((NOW, 1),)
    ahead = (NOW + timedelta(days=365), 4)  # of a process with a wrong clock
    assert eviction_text(EvictionRecord((ahead,)), NOW) is None


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        '{"moves": 3}',
        '{"moves": [["yesterday", 1]]}',
        '{"moves": [["2026-01-01T00:00:00Z", -1]]}',
        '{"left": {"east": "all"}}',
        '{"left": ["east"]}',
        '{"stays": {"east": {"reason": "Whim"}}}',
        '{"stays": {"east": "State"}}',
        '{"returnedAt": "later"}',
    ],
)
def test_a_malformed_record_counts_as_none(text: str | None) -> None:
    assert eviction_record(_federated(text)) == NO_EVICTION
