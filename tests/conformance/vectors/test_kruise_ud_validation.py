"""UnitedDeployments are accepted and refused as in the vectors."""

from typing import Any

from tests.support.vectors import each_case, load

from federation.features.uniteddeployment.admission import RULES
from federation.features.uniteddeployment.rules.countvalidation import validate_counts
from federation.features.uniteddeployment.rules.unitedvalidation import validate_united, validate_update


def _check(fields: list[str], expected: dict[str, Any]) -> None:
    assert (not fields) == bool(expected.get("valid")), fields
    for key in ("error_fields_include_one_of", "error_fields", "error_field"):
        wanted = expected.get(key) or []
        wanted = [wanted] if isinstance(wanted, str) else wanted
        assert not wanted or set(wanted) & set(fields), fields
    assert len(fields) == (expected.get("error_count") or len(fields))


@each_case(load("kruise-ud-validation"))
def test_a_new_object_is_validated_like_in_the_reference(case: dict[str, Any]) -> None:
    causes = validate_united(case["input"].get("object") or {}, RULES)
    _check([cause["field"] for cause in causes], case["expected"])


@each_case(load("kruise-ud-validation-update"))
def test_an_update_is_validated_like_in_the_reference(case: dict[str, Any]) -> None:
    new, old = case["input"].get("new") or {}, case["input"].get("old") or {}
    causes = [*validate_united(new, RULES), *validate_update(new, old)]
    _check([cause["field"] for cause in causes], case["expected"])


@each_case(load("kruise-ud-validation-capacity"))
def test_counts_are_validated_like_in_the_reference(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    subsets = [{"name": "", **subset} for subset in given.get("subsets") or ()]
    fields = [cause["field"] for cause in validate_counts(given.get("replicas"), subsets, "subsets")]
    assert bool(fields) == bool(expected.get("error"))
    first = expected.get("first_error_fields") or []
    assert fields[: len(first)] == first
    assert set(expected.get("error_fields") or ()) <= set(fields)
