"""Durations as Go writes them."""

import pytest

from federation.apimachinery.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5s", 5), ("1m30s", 90), ("250ms", 0.25), ("1.5h", 5400), (".5s", 0.5), ("0", 0), ("-2m", -120), ("1m0s", 60)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "1m30", "x5s", "-", "1d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)
