"""Strategic merge patches of pods by other objects, such as a WorkloadSpread. Pure.

Fields that pods do not have are removed, as when Kubernetes decodes a pod. `unknown_fields` finds them for warnings.
"""

import copy
from typing import Any

from federation.apiserver.semantics.patch.strategic import strategic_merge_patch
from federation.apiserver.semantics.schema import builtin
from federation.apiserver.semantics.schema.defaulting import has_only_known_fields, prune

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
