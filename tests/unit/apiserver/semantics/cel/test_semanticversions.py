"""Semantic versions: grammar, order and normalization."""

import pytest

from federation.apiserver.semantics.cel.programs import compile_expression
from federation.apiserver.semantics.cel.semanticversions import normalize, order, parse


@pytest.mark.parametrize(
    "text", ["1.2", "v1.2.3", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", "", "1.2.3.4", f"{2**64}.0.0"]
)
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="semantic version"):
        parse(text)


def test_versions_are_ordered_as_semver_org_says() -> None:
    ordered = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
    ]
    shuffled = [*ordered[3:], *ordered[:3]]
    assert sorted(shuffled, key=order) == ordered
    assert parse("1.0.0+build") == parse("1.0.0+other")


@pytest.mark.parametrize(
    ("text", "usual"), [("v1.2", "1.2.0"), ("1", "1.0.0"), ("01.002.3", "1.2.3"), ("1.0.00", "1.0.0")]
)
def test_short_and_prefixed_versions_are_normalized(text: str, usual: str) -> None:
    assert parse(normalize(text)) == usual


def test_a_short_version_with_a_pre_release_is_refused() -> None:
    with pytest.raises(ValueError, match="short version"):
        normalize("1.2-rc")


@pytest.mark.parametrize(
    "expression",
    [
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
        "isSemver('1.2.3') && !isSemver('v1.2') && isSemver('v1.2', true)",
        "semver('1.2.3-rc').isLessThan(semver('1.2.3')) && semver('2.0.0').isGreaterThan(semver('1.9.9'))",
        "semver('v1.2', true).compareTo(semver('1.2.0')) == 0 && semver('1.0.0+a') == semver('1.0.0+b')",
    ],
)
def test_rules_may_use_versions(expression: str) -> None:
    assert compile_expression(expression, ()).evaluate({}) is True
