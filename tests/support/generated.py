"""How many cases of a kind run: generated examples by profile (tests/conftest.py), and parameters by tier."""

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

_USUAL = 100


def examples(count: int) -> settings:
    """Return the settings of a property that has `count` examples where others have a hundred."""
    return settings(max_examples=max(1, count * settings().max_examples // _USUAL))


def nightly_after(count: int, cases: Iterable[Any]) -> list[ParameterSet]:
    """Return the parameters of a test; all but the first `count` of them are nightly."""
    return [pytest.param(case, marks=[pytest.mark.nightly] * (n >= count)) for n, case in enumerate(cases)]


def nightly_unless(kept: Iterable[tuple[Any, ...]], cases: Iterable[tuple[Any, ...]]) -> list[ParameterSet]:
    """Return the parameters of a test that takes several; all but `kept` are nightly."""
    held = list(kept)
    return [pytest.param(*case, marks=[pytest.mark.nightly] * (case not in held)) for case in cases]
