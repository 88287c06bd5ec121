"""Slow builds of Python are recognised by how they were configured."""

import pytest

from federation.apimachinery import interpreter


@pytest.mark.parametrize(
    ("configured", "prefix", "is_slow"),
    [
        ("'--prefix=/opt/python' '--enable-shared'", "/opt/python", True),
        ("'--build=x' '--enable-optimizations' '--with-lto'", "/usr/local", False),
        ("'--enable-shared' '--prefix=/usr'", "/usr", False),
        ("", "/opt/python", False),
    ],
    ids=["pyenv", "optimised", "distribution", "unknown"],
)
def test_a_build_is_slow_if_it_was_configured_without_optimisation(configured: str, prefix: str, is_slow: bool) -> None:
    assert interpreter.is_slow_build(configured, prefix) is is_slow


def test_the_version_of_a_slow_build_is_named() -> None:
    assert interpreter.slow_build() in ("", interpreter.platform.python_version())
