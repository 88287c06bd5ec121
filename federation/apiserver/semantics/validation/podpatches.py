"""Strategic merge patches of pods that other objects hold, such as WorkloadSpreads, and their validation. Pure.

Fields that pods do not have are removed, as when Kubernetes decodes a pod. `unknown_fields` finds them for warnings.

A patch may be written before the workload that it is for. `validate_lone_patch` then finds what no workload can make
valid: it merges the patch into a stand-in, and counts an error only if it is about a value that the patch itself sets.
"""

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from federation.apimachinery.errors import ApiError, BadRequest
from federation.apimachinery.fielderrors import Causes, invalid
from federation.apiserver.semantics.defaults.poddefaults import default_template
from federation.apiserver.semantics.patch.strategic import strategic_merge_patch
from federation.apiserver.semantics.schema import builtin
from federation.apiserver.semantics.schema.defaulting import has_only_known_fields, prune
from federation.apiserver.semantics.schema.validation import decode_errors
from federation.apiserver.semantics.validation.podvalidation import validate_template

Fields = dict[str, Any]
_STAND_IN: Fields = {"metadata": {}, "spec": {"containers": [{"name": "stand-in", "image": "stand-in"}]}}
_OF_VALUES = frozenset({"FieldValueInvalid", "FieldValueNotSupported", "FieldValueTooLong"})
"""Reasons of errors about one value. Others, such as a missing field, may be due to what the stand-in lacks."""
_INDEX = re.compile(r"\[\d+\]")


def patch_pod(pod: Fields, patch: Mapping[str, Any]) -> Fields:
    """Return the pod with a strategic merge patch merged in.

    BadRequest and Invalid when the patch is malformed, or leaves fields whose types are not those of a pod.
    """
    schema = builtin.builtin_schema("", "v1", "Pod")
    patched: Fields = strategic_merge_patch(schema, pod, patch)
    if not has_only_known_fields(schema, patched):
        patched = copy.deepcopy(patched)  # the patched pod shares parts with both arguments
        prune(schema, patched)
    if errors := decode_errors(schema, patched):
        raise BadRequest("; ".join(dict.fromkeys(errors)))
    return patched


def unknown_fields(patch: Fields) -> list[str]:
    """Return the paths of the fields of a patch that pods do not have, such as `spec.containers[0].resources.limit`."""
    found = prune(builtin.builtin_schema("", "v1", "Pod"), copy.deepcopy(patch))
    return [path for path in found if not path.rpartition(".")[2].startswith("$")]


def validate_patched_pod(template: Fields, patch: Mapping[str, Any], claims: Sequence[str], field: str) -> Causes:
    """Return the causes of an invalid pod: a pod template with a patch and defaults.

    `claims` are names of volumes that the workload adds to its pods.
    """
    try:
        patched = copy.deepcopy(patch_pod(template, patch))
    except ApiError as error:
        return [invalid(field, patch, error.message)]
    default_template(patched)
    return validate_template(patched, field, claims=claims)


def validate_lone_patch(patch: Mapping[str, Any], field: str) -> Causes:
    """Return the causes that make every pod with this patch invalid, whatever workload it is for."""
    found = validate_patched_pod(_STAND_IN, patch, (), "")
    unusable = [cause for cause in found if cause["field"] in ("", ".spec.containers")]
    if not unusable:
        set_here = frozenset(_paths(patch, "")).union(f".{each}" for each in patch.get("metadata") or ())
        found = [cause for cause in found if cause["reason"] in _OF_VALUES]
        unusable = [cause for cause in found if _INDEX.sub("", cause["field"]) in set_here]
    return [{**cause, "field": field + cause["field"]} for cause in unusable]


def _paths(value: Any, path: str) -> Iterator[str]:
    """Yield the paths of the scalars in a patch, without indices of lists, and of maps of scalars, such as labels."""
    if isinstance(value, dict):
        if value and not any(isinstance(inner, dict | list) for inner in value.values()):
            yield path
        for key, inner in value.items():
            yield from _paths(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, path)
    elif value is not None:
        yield path
