"""The memory of corrections: what counts as one, what is reported, and what is forgotten."""

import pytest

from federation.api import names
from federation.apimachinery.clock import ManualClock, to_rfc3339
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.delivery.members.corrections import REPORTS_PER_MINUTE, WRITTEN_MAX, Corrections, Report
from federation.delivery.members.expectations import MemberKey
from federation.delivery.members.operations import Correction
from federation.planning.drift.fields import Author, Field
from federation.planning.drift.fights import CORRECTIONS_MAX

EVE, KUBECTL = Author("eve", "Update", "2026-01-01T00:00:00Z"), Author("kubectl", "Apply", "")


def key(name: str = "web", cluster: str = "m1") -> MemberKey:
    return MemberKey(cluster, DEPLOYMENTS, "default", name)


def of(*fields: str, author: Author | None = EVE) -> Correction:
    return Correction(tuple(Field(name, ()) for name in fields), author)


def live(digest: str | None) -> Object:
    return {"metadata": {"annotations": {names.TEMPLATE_HASH: digest} if digest else None}}


@pytest.mark.parametrize(
    ("written", "shown", "expected"),
    [
        ("h", live("h"), True),
        ("h", live("forged"), True),
        ("h", live(None), True),
        ("h", None, True),
        ("", live("h"), True),
        ("", live("older"), False),
        ("", live(None), False),
        ("", None, False),
        ("older", live("older"), False),
    ],
)
def test_content_that_was_applied_before_is_a_correction(written: str, shown: Object | None, expected: bool) -> None:
    corrections = Corrections(ManualClock())
    if written:
        corrections.record_write(key(), written)
    assert corrections.is_correction(key(), "h", shown) is expected
    assert not corrections.is_correction(key("other"), "h", None)
    assert not corrections.is_correction(key(cluster="m2"), "h", None)


def test_the_latest_written_objects_are_remembered() -> None:
    corrections = Corrections(ManualClock())
    for number in range(WRITTEN_MAX):
        corrections.record_write(key(str(number)), "h")
    corrections.record_write(key("0"), "h")
    assert corrections.is_correction(key("1"), "h", None)
    corrections.record_write(key("new"), "h")
    assert not corrections.is_correction(key("1"), "h", None)
    assert corrections.is_correction(key("0"), "h", None)


async def test_a_burst_is_reported_once_and_a_fight_once_more() -> None:
    clock = ManualClock()
    corrections, reports = Corrections(clock), []
    for _ in range(CORRECTIONS_MAX + 2):
        reports.append(corrections.record(key(), of("spec.replicas")))
    quiet = Report()
    assert reports == [Report(begins_burst=True), *[quiet] * (CORRECTIONS_MAX - 1), Report(begins_fight=True), quiet]
    assert corrections.pause_left_s(key()) == 120
    assert corrections.pause_left_s(key("other")) == 0
    await clock.advance(30)
    assert corrections.pause_left_s(key()) == 90
    await clock.advance(90 + 600)
    assert corrections.record(key(), of("spec.replicas")) == Report(begins_burst=True)
    assert corrections.pause_left_s(key()) == 0


async def test_what_is_shown_of_a_drift() -> None:
    clock = ManualClock()
    corrections, since = Corrections(clock), to_rfc3339(clock.now())
    corrections.record(key(), of("spec.replicas", "spec.paused"))
    await clock.advance(10)
    corrections.record(key(), of("spec.replicas", author=None))
    found = corrections.find(key())
    assert found is not None
    assert (found.fields, found.corrections, found.paused_until) == (["spec.replicas"], 2, "")
    assert (found.manager, found.operation, found.time) == ("eve", "Update", EVE.time)
    assert (found.since, found.last) == (since, to_rfc3339(clock.now()))
    corrections.record(key(), of("spec.replicas", author=KUBECTL))
    found = corrections.find(key())
    assert found is not None
    assert found.manager == "kubectl"
    await clock.advance(600)
    corrections.record(key(), of("spec.replicas", author=None))
    found = corrections.find(key())
    assert found is not None
    assert (found.manager, found.corrections, found.since) == ("", 1, to_rfc3339(clock.now())), "another burst"
    await clock.advance(3600)
    assert corrections.find(key()) is not None
    await clock.advance(1)
    assert corrections.find(key()) is None


async def test_a_pause_is_shown_with_its_end() -> None:
    clock = ManualClock()
    corrections = Corrections(clock)
    for _ in range(CORRECTIONS_MAX + 1):
        corrections.record(key(), of("spec.replicas"))
    found = corrections.find(key())
    assert found is not None
    assert found.paused_until == "2026-01-01T00:01:00Z"


async def test_reports_are_limited_per_cluster_and_minute() -> None:
    clock = ManualClock()
    corrections = Corrections(clock)
    reports = [corrections.record(key(str(number)), of("a")) for number in range(REPORTS_PER_MINUTE + 1)]
    assert [report.begins_burst for report in reports] == [True] * REPORTS_PER_MINUTE + [False]
    assert corrections.record(key("x", "m2"), of("a")).begins_burst
    await clock.advance(60)
    assert corrections.record(key("later"), of("a")).begins_burst


def test_what_is_removed_by_us_is_forgotten() -> None:
    corrections = Corrections(ManualClock())
    for name in ("web", "other"):
        corrections.record_write(key(name), "h")
        corrections.record(key(name), of("a"))
    corrections.forget(key())
    assert not corrections.is_correction(key(), "h", None)
    assert corrections.find(key()) is None
    assert corrections.find(key("other")) is not None
    corrections.forget(key(cluster="m2"))
    corrections.forget_cluster("m1")
    assert corrections.find(key("other")) is None
    assert not corrections.is_correction(key("other"), "h", None)
