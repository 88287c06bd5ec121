"""Corrections of drift: what counts as one, what is new about it, and what is shown."""

from datetime import datetime, timedelta

import pytest

from federation.api import names
from federation.apimachinery.clock import ManualClock, to_rfc3339
from federation.apimachinery.resources import Object
from federation.delivery.rules.corrections import Correction, News, after, is_correction, shown
from federation.delivery.rules.memberrecord import Drifted, MemberRecord
from federation.planning.drift.fields import Author, Field
from federation.planning.drift.fights import CORRECTIONS_MAX

EVE, KUBECTL = Author("eve", "Update", "2026-01-01T00:00:00Z"), Author("kubectl", "Apply", "")
NOW = ManualClock().now()


def of(*fields: str, author: Author | None = EVE) -> Correction:
    return Correction(tuple(Field(name, ()) for name in fields), author)


def at(after_s: float) -> tuple[float, datetime]:
    """Return a monotonic and a wall time."""
    return 1000.0 + after_s, NOW + timedelta(seconds=after_s)


def live(digest: str | None) -> Object:
    return {"metadata": {"annotations": {names.TEMPLATE_HASH: digest} if digest else None}}


@pytest.mark.parametrize(
    ("written", "seen", "expected"),
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
def test_content_that_was_applied_before_is_a_correction(written: str, seen: Object | None, expected: bool) -> None:
    assert is_correction(MemberRecord(content=written), "h", seen) is expected


def test_a_burst_is_news_once_and_a_fight_once_more() -> None:
    known: Drifted | None = None
    found = []
    for _ in range(CORRECTIONS_MAX + 2):
        known, news = after(known, of("spec.replicas"), *at(0))
        found.append(news)
    quiet = News(False, False, False)
    assert found == [
        News(True, False, False),
        *[quiet] * (CORRECTIONS_MAX - 1),
        News(False, True, True),
        News(False, True, False),
    ]
    known, news = after(known, of("spec.replicas"), *at(120 + 600))
    assert news == News(True, False, False)


def test_what_is_shown_of_a_drift() -> None:
    known, _ = after(None, of("spec.replicas", "spec.paused"), *at(0))
    known, _ = after(known, of("spec.replicas", author=None), *at(10))
    found = shown(known, *at(10))
    assert found is not None
    assert (found.fields, found.corrections, found.paused_until) == (["spec.replicas"], 2, "")
    assert (found.manager, found.operation, found.time) == ("eve", "Update", EVE.time)
    assert (found.since, found.last) == (to_rfc3339(at(0)[1]), to_rfc3339(at(10)[1]))
    known, _ = after(known, of("spec.replicas", author=KUBECTL), *at(10))
    found = shown(known, *at(10))
    assert found is not None
    assert found.manager == "kubectl"
    known, _ = after(known, of("spec.replicas", author=None), *at(610))
    found = shown(known, *at(610))
    assert found is not None
    assert (found.manager, found.corrections, found.since) == ("", 1, to_rfc3339(at(610)[1])), "another burst"
    assert shown(known, *at(610 + 3600)) is not None
    assert shown(known, *at(610 + 3601)) is None
    assert shown(None, *at(0)) is None


def test_a_pause_is_shown_with_its_end() -> None:
    known: Drifted | None = None
    for _ in range(CORRECTIONS_MAX + 1):
        known, _ = after(known, of("spec.replicas"), *at(0))
    found = shown(known, *at(0))
    assert found is not None
    assert found.paused_until == to_rfc3339(at(60)[1])
