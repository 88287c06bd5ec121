"""Change a pod so that it runs in the nodes of a subset. Pure; returns a new pod.

Strategic merge patches need the schema of pods, which the API server owns, so the caller passes a function. The rules
of `kube-scheduler` make several required terms alternatives: the subset's term is added to each of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery.resources import Object
from federation.planning.workloadspread.subsets import name_of

PatchPod = Callable[[Object, Object], Object]
"""Returns a pod with a strategic merge patch merged in, without fields that pods do not have; BadRequest."""

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
    patched = patch_pod(pod, patch)
    if _priority_class(patched) == _priority_class(pod):
        return patched
    # The priority admission plugin computes the number of the new class.
    kept = {key: value for key, value in (patched.get("spec") or {}).items() if key != "priority"}
    return {**patched, "spec": kept}


def _priority_class(pod: Mapping[str, Any]) -> str:
    return str((pod.get("spec") or {}).get("priorityClassName") or "")


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
