"""Whether annotations override policies: by the namespace's label, otherwise the default."""

from typing import Any

import pytest

from federation.scheduling.annotationswitch import AnnotationPolicy, problem_of
from federation.scheduling.names import SCHEDULING_ANNOTATIONS


def a_namespace(value: str | None, name: str = "shop") -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {} if value is None else {SCHEDULING_ANNOTATIONS: value}}}


@pytest.mark.parametrize("default", [True, False])
def test_a_label_wins_over_the_default_and_its_changes_are_noticed(default: bool) -> None:  # a parameter of the test
    switch = AnnotationPolicy(is_allowed=default)
    assert not switch.put(a_namespace(None))
    for value, is_allowed in (("disabled", False), ("enabled", True)):
        assert switch.put(a_namespace(value)) == (switch.allows("shop") != (default if value == "disabled" else False))
        assert switch.allows("shop") == is_allowed
    assert switch.allows("elsewhere") == switch.allows("") == default
    assert switch.remove("shop") == (not default)
    assert switch.allows("shop") == default


def test_an_invalid_label_is_reported_and_the_default_stays() -> None:
    switch = AnnotationPolicy()
    assert not switch.put(a_namespace("off"))
    assert switch.allows("shop")
    assert "'off' is neither enabled nor disabled" in problem_of(a_namespace("off"))
    assert problem_of(a_namespace("disabled")) == problem_of(a_namespace(None)) == ""
