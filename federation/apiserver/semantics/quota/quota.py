"""One ResourceQuota: its scopes, the resources that it tracks, and the refusal of a write beyond its limits.

Texts and rules are those of kube-apiserver's ResourceQuota admission (apiserver/pkg/admission/plugin/resourcequota).
The names `bytes` and `bytes/<plural>.<group>` are this server's own: the stored size of a namespace's objects.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.quantity import ZERO
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.quota.podusage import Usage, is_best_effort, missing_resources, parse_usage
from federation.apiserver.semantics.quota.usage import tracks

BYTES = "bytes"
_KIND_BYTES = "bytes/"


@dataclass(frozen=True, slots=True)
class Quota:
    """The specification of a ResourceQuota."""

    name: str
    hard: Usage
    scopes: tuple[Mapping[str, Any], ...]
    counted: frozenset[str]
    """The names in `hard` without those of stored bytes."""
    byte_limits: Mapping[str, int]
    """The limits on stored bytes, by store prefix of the kind ("" for all kinds)."""

    def names_for(self, group_resource: str, *objects: Object | None) -> frozenset[str]:
        """Return the limited resources that one of these objects of a kind can use; none outside the scopes."""
        if not any(obj is not None and self._has_in_scope(group_resource, obj) for obj in objects):
            return frozenset()
        return frozenset(name for name in self.hard if tracks(name, group_resource))

    def counts(self, group_resource: str) -> bool:
        """Return True if objects of a kind can use a limited resource."""
        return any(tracks(name, group_resource) for name in self.hard)

    def masked(self, group_resource: str, obj: Object, usage: Usage) -> Usage:
        """Return the part of an object's usage that this quota counts."""
        if not self._has_in_scope(group_resource, obj):
            return {}
        return {name: amount for name, amount in usage.items() if name in self.hard}

    def _has_in_scope(self, group_resource: str, obj: Object) -> bool:
        if not self.scopes:
            return True
        matches = _SCOPED.get(group_resource)
        return matches is not None and all(matches(scope, obj) for scope in self.scopes)


def is_bytes(name: str) -> bool:
    """Return True for the name of a limit on stored bytes."""
    return name == BYTES or name.startswith(_KIND_BYTES)


def parse_quota(obj: Object) -> Quota:
    """Return the quota of a stored object."""
    spec = obj.get("spec") or {}
    selected = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    scopes = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    hard = parse_usage(spec.get("hard"))
    limits = {bytes_prefix(name): amount.value for name, amount in hard.items() if is_bytes(name)}
    counted = frozenset(name for name in hard if not is_bytes(name))
    return Quota(obj["metadata"]["name"], hard, (*scopes, *selected), counted, limits)


def bytes_prefix(name: str) -> str:
    """Return the store prefix of the kind that a limit on stored bytes names, "" for all kinds."""
    plural, _, group = name.removeprefix(BYTES).lstrip("/").partition(".")
    return f"/{group or 'core'}/{plural}/" if plural else ""


def find_refusal(quota: Quota, used: Usage, requested: Usage) -> str:
    """Return the text about exceeded limits, "" if the requested usage fits."""
    exceeded = {
        name for name, amount in requested.items() if amount > ZERO and quota.hard[name] < used.get(name, ZERO) + amount
    }
    if not exceeded:
        return ""
    return (
        f"exceeded quota: {quota.name}, requested: {_format(requested, exceeded)}, used: {_format(used, exceeded)},"
        f" limited: {_format(quota.hard, exceeded)}"
    )


def find_unspecified(quota: Quota, pod: Object, names: Iterable[str]) -> str:
    """Return the text about containers that lack a limited resource, "" if none does."""
    missing = missing_resources(pod, names)
    return f"failed quota: {quota.name}: {missing}" if missing else ""


def _format(usage: Usage, names: Iterable[str]) -> str:
    return ",".join(f"{name}={usage.get(name, ZERO)}" for name in sorted(names))


def _matches_scope(scope: Mapping[str, Any], pod: Object) -> bool:
    spec = pod.get("spec") or {}
    match scope.get("scopeName"):
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return is_best_effort(pod)
        case "NotBestEffort":
            return not is_best_effort(pod)
        case "PriorityClass":
            return _matches_values(scope, spec.get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return _uses_other_namespaces(spec.get("affinity") or {})
    return False


def _matches_claim_scope(scope: Mapping[str, Any], claim: Object) -> bool:
    if scope.get("scopeName") != "VolumeAttributesClass":
        return False
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    # While the class changes, the claim uses both.
    found = {
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    }
    classes = {name for name in found if name}
    return any(_matches_values(scope, name) for name in classes or {""})


def _matches_values(scope: Mapping[str, Any], value: str) -> bool:
    values = scope.get("values") or ()
    match scope.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "DoesNotExist":
            return not value
    return bool(value)


_SCOPED: Mapping[str, Callable[[Mapping[str, Any], Object], bool]] = {
    "pods": _matches_scope,
    "persistentvolumeclaims": _matches_claim_scope,
}
"""The kinds that scopes can select; no other kind counts in a quota with scopes."""


def _uses_other_namespaces(affinity: Mapping[str, Any]) -> bool:
    for part in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(part) or {}
        terms = [*(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())]
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [weighted.get("podAffinityTerm") or {} for weighted in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
