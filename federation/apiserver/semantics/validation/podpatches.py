"""Strategic merge patches of pods that other objects hold, such as WorkloadSpreads, and their validation. Pure.

Fields that pods do not have are removed, as when Kubernetes decodes a pod. `unknown_fields` finds them for warnings.
"""

import copy
from collections.abc import Sequence
from typing import Any

from federation.apimachinery.errors import ApiError
from federation.apimachinery.fielderrors import Causes, invalid
from federation.apiserver.semantics.defaults.poddefaults import default_template
from federation.apiserver.semantics.patch.strategic import strategic_merge_patch
from federation.apiserver.semantics.schema import builtin
from federation.apiserver.semantics.schema.defaulting import has_only_known_fields, prune
from federation.apiserver.semantics.validation.podvalidation import validate_template

Fields = dict[str, Any]


def patch_pod(pod: Fields, patch: Fields) -> Fields:
    """Return the pod with a strategic merge patch merged in; BadRequest and Invalid when the patch is malformed."""
    schema = builtin.builtin_schema("", "v1", "Pod")
    patched: Fields = strategic_merge_patch(schema, pod, patch)
    if not has_only_known_fields(schema, patched):
        patched = copy.deepcopy(patched)  # the patched pod shares parts with both arguments
        prune(schema, patched)
    return patched


def unknown_fields(patch: Fields) -> list[str]:
    """Return the paths of the fields of a patch that pods do not have, such as `spec.containers[0].resources.limit`."""
    found = prune(builtin.builtin_schema("", "v1", "Pod"), copy.deepcopy(patch))
    return [path for path in found if not path.rpartition(".")[2].startswith("$")]


def validate_patched_pod(template: Fields, patch: Fields, claims: Sequence[str], field: str) -> Causes:
    """Return the causes of an invalid pod: a pod template with a patch and defaults.

    `claims` are names of volumes that the workload adds to its pods.
    """
    try:
        patched = copy.deepcopy(patch_pod(template, patch))
    except ApiError as error:
        return [invalid(field, patch, error.message)]
    default_template(patched)
    return validate_template(patched, field, claims=claims)
