"""How long a flapping cluster is held out."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.planning.failover.holdout import (
    HoldoutOptions,
    Losses,
    after_loss,
    held_out_until,
    holdout_s,
    is_of_restart,
    losses_of,
    losses_text,
    next_losses,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPTIONS = HoldoutOptions(base_s=60.0, max_s=900.0, calm_s=3600.0)


def _cluster(text: str | None) -> dict[str, Any]:
    return {"metadata": {"name": "east", "annotations": {names.LOSSES: text}}}


def _lost_every(gap_s: float, times: int) -> list[float]:
    """Return the hold-out after each loss."""
    record, found = None, []
    for number in range(times):
        record = after_loss(record, NOW + timedelta(seconds=gap_s * number), OPTIONS)
        found.append(holdout_s(record, OPTIONS))
    return found


def test_the_first_return_is_free_and_each_further_loss_doubles_the_hold_out() -> None:
    assert _lost_every(120, 7) == [0, 60, 120, 240, 480, 900, 900]


def test_a_calm_period_resets_the_hold_out() -> None:
    record = after_loss(Losses(4, NOW), NOW + timedelta(seconds=240 + 3601), OPTIONS)
    assert record == Losses(1, NOW + timedelta(seconds=240 + 3601))
    assert after_loss(Losses(4, NOW), NOW + timedelta(seconds=240 + 3599), OPTIONS).count == 5


def test_the_hold_out_counts_from_the_return() -> None:
    assert held_out_until(Losses(3, NOW), NOW + timedelta(seconds=30), OPTIONS) == NOW + timedelta(seconds=150)
    assert held_out_until(None, NOW, OPTIONS) == NOW


def test_the_record_survives_its_text() -> None:
    assert losses_of(_cluster(losses_text(Losses(3, NOW)))) == Losses(3, NOW)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        "{}",
        '{"count": 0, "lostAt": "2026-01-01T00:00:00Z"}',
        '{"count": true, "lostAt": "2026-01-01T00:00:00Z"}',
        '{"count": "2", "lostAt": "2026-01-01T00:00:00Z"}',
        '{"count": 2, "lostAt": 7}',
        '{"count": 2}',
    ],
)
def test_a_malformed_record_counts_as_none(text: str | None) -> None:
    assert losses_of(_cluster(text)) is None


def test_an_absurd_count_is_bounded() -> None:
    record = losses_of(_cluster('{"count": 999999999999, "lostAt": "2026-01-01T00:00:00Z"}'))
    assert record is not None
    assert holdout_s(record, OPTIONS) == OPTIONS.max_s
    assert after_loss(record, NOW, OPTIONS).count == record.count


@pytest.mark.parametrize(
    ("key", "since_s", "tainted", "expected"),
    [
        ("unreachable", 0, None, Losses(1, NOW)),
        ("unreachable", 0, "unreachable", None),
        ("unreachable", 90, "unreachable", Losses(2, NOW + timedelta(seconds=90))),
        ("not-ready", 90, "unreachable", None),
        ("unreachable", 90, None, Losses(2, NOW + timedelta(seconds=90))),
    ],
    ids=["first", "known", "again while held out", "not ready instead of unreachable", "again"],
)
def test_a_loss_counts_once(key: str, since_s: int, tainted: str | None, expected: Losses | None) -> None:
    key = {"unreachable": names.TAINT_UNREACHABLE, "not-ready": names.TAINT_NOT_READY}[key]
    before = None if expected is not None and expected.count == 1 else Losses(1, NOW)
    taints = [{"key": names.TAINT_UNREACHABLE, "effect": "NoExecute"}] if tainted else []
    cluster = {"metadata": {"name": "east"}, "spec": {"taints": taints}}
    assert next_losses(cluster, before, NOW + timedelta(seconds=since_s), key, OPTIONS) == expected


@given(st.lists(st.floats(1.0, 20_000.0), max_size=80))
def test_the_hold_out_is_bounded_at_most_doubles_and_falls_only_to_nothing(gaps: list[float]) -> None:
    now, record, before_s = NOW, None, 0.0
    for gap_s in gaps:
        now += timedelta(seconds=gap_s)
        record = after_loss(record, now, OPTIONS)
        after_s = holdout_s(record, OPTIONS)
        assert 0.0 <= after_s <= OPTIONS.max_s
        assert after_s <= max(2 * before_s, OPTIONS.base_s)
        assert after_s >= before_s or (after_s == 0.0 and gap_s > OPTIONS.calm_s)
        before_s = after_s


@pytest.mark.parametrize(
    ("lost_s", "was_ready", "expected"),
    [
        (-300, False, True),  # lost before the restart, back after it
        (30, True, True),  # lost within the first minute
        (61, True, False),
        (-300, True, False),  # back before the restart
        (0, True, False),
        (600, False, False),
    ],
)
def test_a_loss_of_the_restart_is_recognised(lost_s: int, *, was_ready: bool, expected: bool) -> None:
    losses = Losses(5, NOW + timedelta(seconds=lost_s))
    assert is_of_restart(losses, NOW, OPTIONS, was_ready=was_ready) is expected
