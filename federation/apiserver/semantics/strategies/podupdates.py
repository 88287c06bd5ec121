"""Fields that an update of a pod may change: images, deadline, tolerations, gates, and the placement of a gated pod.

A gated pod waits for a controller (a queue) to remove its scheduling gates, and that controller may narrow the nodes:
add to the node selector and to the required node affinity.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.fielderrors import Causes, forbidden, invalid

Fields = Mapping[str, Any]

_UPDATE_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_CHANGEABLE = frozenset({"activeDeadlineSeconds", "tolerations", "schedulingGates"})
_LISTS = ("containers", "initContainers")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_INT32_MAX = 2**31 - 1


def validate_changes(new: Fields, old: Fields) -> Causes:
    """Return the causes of changes of a pod's spec that an update may not make."""
    for name in _LISTS:
        if len(new.get(name) or ()) != len(old.get(name) or ()):
            return [forbidden(f"spec.{name}", "pod updates may not add or remove containers")]
    causes, is_final = _validate_deadline(new, old)
    if is_final:
        return causes
    causes += _validate_tolerations(new.get("tolerations") or (), old.get("tolerations") or ())
    causes += _validate_gates(new, old)
    after, before = _fixed_part(new), _fixed_part(old)
    if old.get("schedulingGates"):
        causes += _validate_placement(new, old)
        after, before = _without_placement(after), _without_placement(before)
    return causes if after == before else [*causes, forbidden("spec", _UPDATE_TEXT)]


def _validate_deadline(new: Fields, old: Fields) -> tuple[Causes, bool]:
    """Require that activeDeadlineSeconds is only reduced; also return whether nothing else is reported."""
    field = "spec.activeDeadlineSeconds"
    before, after = old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    if after is None:
        text = "must not update from a positive integer to nil value"
        return ([] if before is None else [invalid(field, after, text)]), False
    if not 0 <= after <= _INT32_MAX:
        return [invalid(field, after, f"must be between 0 and {_INT32_MAX}, inclusive")], True
    if before is not None and after > before:
        return [invalid(field, after, "must be less than or equal to previous value")], True
    return [], False


def _validate_tolerations(new: Sequence[Fields], old: Sequence[Fields]) -> Causes:
    """Allow more tolerations, and other times of the present ones."""
    kept = [_without_seconds(toleration) for toleration in new]
    if all(_without_seconds(toleration) in kept for toleration in old):
        return []
    return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _without_seconds(toleration: Fields) -> Fields:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _validate_gates(new: Fields, old: Fields) -> Causes:
    before = [gate.get("name") for gate in old.get("schedulingGates") or ()]
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(new.get("schedulingGates") or ())
        if gate.get("name") not in before
    ]


def _validate_placement(new: Fields, old: Fields) -> Causes:
    """Allow a gated pod more node labels and more requirements in each of its required terms."""
    causes: Causes = []
    after, before = new.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if any(after.get(key) != value for key, value in before.items()):
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        causes.append(invalid("spec.nodeSelector", after, text))
    at = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    wanted, present = _required_terms(new), _required_terms(old)
    if present and len(present) != len(wanted):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [*causes, invalid(at, list(wanted), text)]
    text = "only additions are allowed (no mutations or deletions)"
    pairs = zip(wanted, present, strict=False)
    return causes + [
        invalid(f"{at}[{index}]", dict(term), text)
        for index, (term, live) in enumerate(pairs)
        if not _has_only_additions(term, live)
    ]


def _required_terms(spec: Fields) -> Sequence[Fields]:
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms: Sequence[Fields] = required.get("nodeSelectorTerms") or ()
    return terms


def _has_only_additions(new: Fields, old: Fields) -> bool:
    """Return True if each list of the old term begins the new one; a term without requirements stays so."""
    parts = ("matchExpressions", "matchFields")
    if not any(old.get(part) for part in parts):
        return not any(new.get(part) for part in parts)
    return all((new.get(part) or [])[: len(old.get(part) or [])] == (old.get(part) or []) for part in parts)


def _fixed_part(spec: Fields) -> dict[str, Any]:
    fixed = {name: value for name, value in spec.items() if name not in _CHANGEABLE}
    for name in _LISTS:
        if name in fixed:
            fixed[name] = [{**container, "image": ""} for container in fixed[name]]
    return fixed


def _without_placement(spec: Fields) -> dict[str, Any]:
    """Return the fixed part without the node selector and affinity, which `_validate_placement` checks."""
    kept = {name: value for name, value in spec.items() if name != "nodeSelector"}
    affinity = {name: value for name, value in (kept.pop("affinity", None) or {}).items() if name != "nodeAffinity"}
    return {**kept, "affinity": affinity}
