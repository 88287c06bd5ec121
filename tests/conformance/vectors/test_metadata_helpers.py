"""Vectors `metadata_helpers`, as far as these helpers exist here as functions of their own."""

from typing import Any

import pytest
from tests.support.vectors import load

from federation.planning.federatedobject import federatedtemplate

CASES = [case for case in load("metadata_helpers") if case["input"]["op"] == "objectMetaEquivalent"]


def _object(metadata: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_objects_that_differ_only_in_identity_make_the_same_template(case: dict[str, Any]) -> None:
    left, right = (federatedtemplate.divide(_object(case["input"].get(side) or {})).template for side in ("a", "b"))
    assert (left == right) is bool(case["expected"].get("result"))
