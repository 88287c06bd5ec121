"""Change a pod so that it runs in the nodes of a subset. Pure; returns a new pod.

Strategic merge patches need the schema of pods, which the API server owns, so the caller passes a function. The rules
of `kube-scheduler` make several required terms alternatives: the subset's term is added to each of them.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.apimachinery.errors import BadRequest
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import SelectorError, compile_label_selector
from federation.features.workloadspread import names
from federation.features.workloadspread.rules.subsets import name_of
from federation.planning.corerules import PatchPod

PATCHED_METADATA = frozenset({"labels", "annotations", "finalizers"})
"""The metadata of a pod that a patch may change. The rest says which pod it is, and which controller owns it."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def inject_subset(pod: Object, spread: str, subset: Object, patch_pod: PatchPod, uid: str = "") -> Object:
    """Return the pod with the tolerations, node affinity, patch and annotation of a subset.

    `spread` is the name of the WorkloadSpread; `uid` is that of `ledger.Choice`. BadRequest when the patch is
    malformed.
    """
    injected = {**pod, "spec": with_node_rules(pod.get("spec") or {}, subset)}
    return with_match(with_patch(injected, subset, patch_pod), spread, name_of(subset), uid)


def with_patch(pod: Object, subset: Mapping[str, Any], patch_pod: PatchPod) -> Object:
    """Return the pod with the patch of a subset merged in; BadRequest when the patch is malformed."""
    patch = subset.get("patch")
    if not patch:
        return pod
    patched = _with_identity(patch_pod(pod, patch), pod)
    if _priority_class(patched) == _priority_class(pod):
        return patched
    # The priority admission plugin computes the number of the new class.
    kept = {key: value for key, value in (patched.get("spec") or {}).items() if key != "priority"}
    return {**patched, "spec": kept}


def _priority_class(pod: Mapping[str, Any]) -> str:
    return str((pod.get("spec") or {}).get("priorityClassName") or "")


def is_released(owner: Mapping[str, Any] | None, pod: Object, injected: Object) -> bool:
    """Return True if the selector of the pod's controller matches the pod, and not the injected pod.

    The controller would release such a pod and create another one, without end. `owner` is None when it is unknown.
    """
    return is_deselected(owner, pod["metadata"].get("labels"), injected["metadata"].get("labels"))


def is_deselected(owner: Mapping[str, Any] | None, before: Mapping[str, str] | None, after: Mapping[str, str]) -> bool:
    """Return True if the selector of a workload matches the labels before a change, and not those after it."""
    selector = ((owner or {}).get("spec") or {}).get("selector")
    try:
        matches = compile_label_selector(selector).matches if isinstance(selector, dict) else None
    except SelectorError:
        return False
    return matches is not None and matches(before) and not matches(after)


def _with_identity(patched: Object, pod: Object) -> Object:
    """Return the patched pod as the same pod of the same controller; BadRequest when the patch leaves no pod."""
    metadata = patched.get("metadata") or {}
    if not isinstance(metadata, dict) or ("spec" in pod and not isinstance(patched.get("spec"), dict)):
        raise BadRequest("the patch must keep metadata and spec of the pod objects")
    for field in ("labels", "annotations"):
        if not isinstance(metadata.get(field) or {}, dict):
            raise BadRequest(f"metadata.{field} of the patch is not an object")
    kept = {key: value for key, value in (pod.get("metadata") or {}).items() if key not in PATCHED_METADATA}
    changed = {key: value for key, value in metadata.items() if key in PATCHED_METADATA}
    return {**patched, "metadata": {**kept, **changed}} if kept or changed else patched


def with_node_rules(spec: Mapping[str, Any], subset: Mapping[str, Any]) -> Object:
    """Return a pod's spec with the tolerations and the node affinity of a subset."""
    changed = dict(spec)
    if tolerations := subset.get("tolerations"):
        changed["tolerations"] = [*(spec.get("tolerations") or ()), *tolerations]
    affinity = spec.get("affinity") or {}
    nodes = dict(affinity.get("nodeAffinity") or {})
    if preferred := subset.get("preferredNodeSelector"):
        nodes[_PREFERRED] = [*(nodes.get(_PREFERRED) or ()), *preferred]
    if (term := subset.get("requiredNodeSelector")) is not None:
        terms = required_terms({"affinity": {"nodeAffinity": nodes}})
        nodes[_REQUIRED] = {
            **(nodes.get(_REQUIRED) or {}),
            "nodeSelectorTerms": [_joined(own, term) for own in terms] or [term],
        }
    changed["affinity"] = {**affinity, "nodeAffinity": nodes}
    return changed


def required_terms(spec: Mapping[str, Any]) -> list[Object]:
    """Return the required node selector terms of a pod's spec, which are alternatives; empty when there are none."""
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    return required.get("nodeSelectorTerms") or []


def _joined(own: Mapping[str, Any], added: Mapping[str, Any]) -> Object:
    """Return a term that matches the nodes that both terms match."""
    joined = dict(own)
    for part in ("matchExpressions", "matchFields"):
        if more := added.get(part):
            joined[part] = [*(own.get(part) or ()), *more]
    return joined


def with_match(pod: Object, spread: str, subset: str, uid: str = "") -> Object:
    """Return the pod with the annotation that names its WorkloadSpread and subset."""
    metadata = pod.get("metadata") or {}
    match = {"name": spread, "subset": subset} | ({"uid": uid} if uid else {})
    annotations = {**(metadata.get("annotations") or {}), names.MATCHED_WORKLOAD_SPREAD: orjson.dumps(match).decode()}
    return {**pod, "metadata": {**metadata, "annotations": annotations}}
