"""Which freeze holds a change, and until when, in the time of its zone."""

from datetime import datetime
from typing import Any

import pytest

from federation.planning.freezes.changefreeze import Change, compile_freeze, find_frozen, window_problems
from federation.planning.freezes.names import FREEZE_EXCEPTIONS

FRIDAY_NIGHT = {"schedule": "0 22 * * 5", "duration": "10h", "timeZone": "Europe/Berlin"}


def a_freeze(name: str = "f", exceptions: str = "", **spec: Any) -> Any:
    annotations = {FREEZE_EXCEPTIONS: exceptions} if exceptions else {}
    return compile_freeze(
        {
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"reason": "r", "windows": [FRIDAY_NIGHT], **spec},
        }
    )


def held(*freezes: Any, at: str = "2026-07-03T21:00:00+00:00", change: Change = Change.MOVES, **labels: str) -> str:
    found = find_frozen(freezes, "shop", "web", labels, change, datetime.fromisoformat(at))
    return "" if found is None else found.message


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ("2026-07-03T19:59:59+00:00", ""),
        ("2026-07-03T20:00:00+00:00", "2026-07-04T06:00:00Z"),  # 22:00 in summer
        ("2026-07-04T05:59:59+00:00", "2026-07-04T06:00:00Z"),
        ("2026-07-04T06:00:00+00:00", ""),
        ("2026-12-04T20:30:00+00:00", ""),
        ("2026-12-04T21:00:00+00:00", "2026-12-05T07:00:00Z"),  # 22:00 in winter
    ],
)
def test_a_schedule_is_in_the_time_of_its_zone(at: str, until: str) -> None:
    assert held(a_freeze(), at=at) == (f"ChangeFreeze f holds until {until}: r" if until else "")


def test_the_longest_freeze_is_named() -> None:
    longer = a_freeze("longer", windows=[{"start": "2026-07-03T00:00:00Z", "end": "2026-07-09T00:00:00Z"}])
    assert held(a_freeze(), longer).startswith("ChangeFreeze longer holds until 2026-07-09")
    assert held(longer, a_freeze()).startswith("ChangeFreeze longer holds until 2026-07-09")


def test_windows_without_a_gap_between_them_are_one() -> None:
    halves = [{"schedule": f"0 {hour} 3,4 7 *", "duration": "12h"} for hour in (0, 12)]
    assert held(a_freeze(windows=halves)) == "ChangeFreeze f holds until 2026-07-05T00:00:00Z: r"


def test_windows_that_follow_each_other_for_ever_have_no_certain_end() -> None:
    for_ever = a_freeze(windows=[{"schedule": "0 * * * *", "duration": "2h"}])
    assert held(for_ever) == "ChangeFreeze f holds at least until 2026-07-06T13:00:00Z: r"


def test_of_freezes_that_end_together_the_first_is_named() -> None:
    assert held(a_freeze("b"), a_freeze("a")).startswith("ChangeFreeze b holds")


@pytest.mark.parametrize(
    ("freeze", "is_held"),
    [
        (a_freeze(), True),
        (a_freeze(holds=["Updates"]), False),
        (a_freeze(namespaces=["shop"]), True),
        (a_freeze(namespaces=["other"]), False),
        (a_freeze(clusterSelector={"matchLabels": {"tier": "prod"}}), True),
        (a_freeze(clusterSelector={"matchLabels": {"tier": "test"}}), False),
        (a_freeze(exceptions="other/web, shop/web"), False),
        (a_freeze(exceptions="shop/*"), False),
        (a_freeze(exceptions="shop/api"), True),
    ],
)
def test_a_freeze_holds_what_it_selects(freeze: Any, is_held: bool) -> None:
    assert bool(held(freeze, tier="prod")) is is_held


@pytest.mark.parametrize(
    "spec",
    [
        {"windows": [{**FRIDAY_NIGHT, "timeZone": "Europe/Nowhere"}]},
        {"windows": [{**FRIDAY_NIGHT, "schedule": "every day"}]},
        {"windows": [{**FRIDAY_NIGHT, "duration": "long"}]},
        {"holds": ["Everything"]},
        {"clusterSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
    ],
)
def test_a_malformed_freeze_holds_everything_at_any_time(spec: dict[str, Any]) -> None:
    freeze = a_freeze(**spec)
    for change in Change:
        assert held(freeze, at="2026-07-08T00:00:00+00:00", change=change).startswith("ChangeFreeze f is malformed: ")


def test_windows_that_cannot_be_read_are_named() -> None:
    spec = {"windows": [FRIDAY_NIGHT, {**FRIDAY_NIGHT, "timeZone": "Mars/Olympus"}, {**FRIDAY_NIGHT, "schedule": "x"}]}
    assert [field for field, _ in window_problems(spec)] == ["spec.windows[1]", "spec.windows[2]"]
