"""Times on the command line: a timestamp with a zone, or an age."""

from datetime import UTC, datetime, timedelta

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.terminal.timearguments import parse_time

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("10m", timedelta(minutes=10)),
        ("-10m", timedelta(minutes=10)),
        ("2h30m ago", timedelta(hours=2, minutes=30)),
        ("3d", timedelta(days=3)),
        ("1d12h", timedelta(days=1, hours=12)),
        ("2026-01-10T11:00:00Z", timedelta(hours=1)),
        ("2026-01-10T13:30:00.5+02:00", timedelta(minutes=30, seconds=-0.5)),
    ],
)
def test_a_time_is_a_timestamp_or_an_age(text: str, ago: timedelta) -> None:
    assert parse_time(text, NOW, "--at") == NOW - ago


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-01-10T11:00:00", "10", "99999999999d", "d", "2026-13-01T00:00:00Z"]
)
def test_an_invalid_time_is_rejected_with_the_expected_form(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--at .*: write a time with its zone, for example 2026-"):
        parse_time(text, NOW, "--at")
