"""Vectors `metadata_helpers`: annotations are written by merge patches here, and an empty key is refused by validation."""

from typing import Any

import pytest
from tests.support.vectors import each_case, facts, load

from federation.api import names
from federation.apimachinery.finalizers import has_finalizer, with_finalizers, without_finalizers
from federation.apimachinery.mergepatch import apply_merge_patch, create_merge_patch
from federation.apimachinery.objectmeta import validate_metadata_update
from federation.planning.federatedobject import federatedtemplate


def _copied(given: dict[str, Any]) -> dict[str, Any]:
    before = given["dest"]
    after = apply_merge_patch(before, {key: given["src"].get(key) for key in given["keys"]})
    return {"newDest": after, "numChanges": len(create_merge_patch(before, after))}


def _annotated(given: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return the annotations after a patch, which is refused for a key that no annotation can have."""
    before, key = given["annotations"], given["key"]
    refused = validate_metadata_update({"annotations": {**before, key: ""}}, {})
    after = before if refused else apply_merge_patch(before, patch)
    updated = bool(create_merge_patch(before, after))
    return {"annotations": after, "updated": updated, "result": updated, "error": bool(refused)}


def _with_finalizers(given: dict[str, Any], after: list[str]) -> dict[str, Any]:
    updated = after != given["finalizers"]
    return {"finalizers": after, "updated": updated, "result": updated}


def _template(metadata: dict[str, Any]) -> dict[str, Any]:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    return dict(federatedtemplate.divide(obj).template)


def _answer(given: dict[str, Any]) -> dict[str, Any]:  # one line per operation of the format
    metadata = {"annotations": given["annotations"], "finalizers": given["finalizers"]}
    key, value = given["key"], given["value"]
    match given["op"]:
        case "copySubmap":
            return _copied(given)
        case "hasAnnotationKey":
            return {**_annotated(given, {}), "result": key in metadata["annotations"]}
        case "hasAnnotationKeyValue":
            return {**_annotated(given, {}), "result": metadata["annotations"].get(key) == value}
        case "addAnnotation":
            return _annotated(given, {key: value})
        case "removeAnnotation":
            return _annotated(given, {key: None})
        case "hasFinalizer":
            return {"result": has_finalizer({"metadata": metadata}, given["finalizer"])}
        case "addFinalizers":
            return _with_finalizers(given, with_finalizers({"metadata": metadata}, *given["add"]))
        case "removeFinalizers":
            return _with_finalizers(given, without_finalizers({"metadata": metadata}, *given["remove"]))
        case "isDerivedService":
            return {"result": names.DERIVED_SERVICE in given["annotations"]}
        case "objectMetaEquivalent":
            return {"result": _template(given["a"]) == _template(given["b"])}
        case other:
            pytest.fail(f"the format has an operation without an adapter: {other}")


@each_case(load("metadata_helpers"))
def test_metadata_changes_as_the_vectors_say(case: dict[str, Any]) -> None:
    given = facts(
        case["input"], op="", src={}, dest={}, keys=[], annotations={}, key="", value="", finalizers=[], finalizer="",
        add=[], remove=[], a={}, b={},
    )  # fmt: skip
    answer = _answer(given)
    for key, expected in case["expected"].items():
        assert (answer.get(key) or None) == (expected or None), key
