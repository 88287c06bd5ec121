"""Query parameters."""

import pytest

from federation.apimachinery.errors import BadRequest
from federation.apiserver.http.parameters import duration_s, timeout_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1m30s", 90),
        ("500ms", 0.5),
        ("1h", 3600),
        (".5s", 0.5),
        ("1.s", 1),
        ("0", 0),
        ("-0", 0),
        ("-1.5h", -5400),
        ("+2us", 2e-6),
        ("2µs", 2e-6),
        ("2μs", 2e-6),
        ("2562047h47m", 9223372020),
    ],
)
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    assert duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "invalid duration"),
        ("-", "invalid duration"),
        (".", "invalid duration"),
        (".s", "invalid duration"),
        ("s", "invalid duration"),
        ("1s2", "missing unit in duration"),
        ("30", "missing unit in duration"),
        ("1d", 'unknown unit "d" in duration'),
        ("1 s", 'unknown unit " s" in duration'),
        ("1ss", 'unknown unit "ss" in duration'),
        ("--1s", "invalid duration"),
        ("1e3s", 'unknown unit "e" in duration'),
        ("٣s", "invalid duration"),
        ("2562048h", "invalid duration"),
        ("9" * 60 + "s", "invalid duration"),
    ],
)
def test_other_texts_are_refused_with_the_words_of_go(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^time: {problem}"):
        duration_s(text)


@pytest.mark.parametrize(("text", "seconds"), [("0", 60), ("-1s", 60), ("2h", 60), ("5s", 5), ("1ns", 1e-9)])
def test_a_timeout_shortens_the_default_only(text: str, seconds: float) -> None:
    assert timeout_s(text, 60) == seconds


def test_a_malformed_timeout_is_a_bad_request() -> None:
    with pytest.raises(
        BadRequest, match=r'^invalid timeout specified in the request URL - time: invalid duration "soon"'
    ):
        timeout_s("soon", 60)
