"""Warnings about protections that do nothing where their authors expect them: what acts in members must get there.

The host runs no pods. A NetworkPolicy or PodDisruptionBudget acts only in members that have it, and so does a
ResourceQuota or LimitRange about pods, because those of a Deployment are made in members. Such an object that no policy
selects is stored, valid, and protects nothing. The table in docs/reference/admission.md lists what else is stored and
not enforced here.
"""

from collections.abc import Callable, Mapping, Sequence

from federation.apimachinery.resources import (
    LIMIT_RANGES,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_LEVELS,
    RESOURCE_QUOTAS,
    Object,
    Resource,
)
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide

_OF_PODS = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
_PREFIXES = ("requests.", "limits.")
_NOWHERE = "no policy selects it, so no member has it"
_NOTHING = f"{_NOWHERE}, and this host runs no pods: it protects nothing until a PropagationPolicy selects it"
_TEXTS: Mapping[Resource, str] = {
    NETWORK_POLICIES: _NOTHING,
    POD_DISRUPTION_BUDGETS: f"{_NOTHING}; a ClusterDisruptionBudget counts over all clusters",
    LIMIT_RANGES: (
        f"{_NOWHERE}: here it concerns Pods and PersistentVolumeClaims that are written on this host, and not the pods"
        " that members make for workloads"
    ),
    RESOURCE_QUOTAS: (
        f"{_NOWHERE}: here {{fields}} count Pods that are written on this host, and not the pods that members make for"
        " workloads; a FederatedResourceQuota counts those of all clusters"
    ),
}
_UNUSED = ("lendablePercent", "borrowingLimitPercent")
_UNUSED_QUEUES = ("queues", "handSize", "queueLengthLimit")
Delivers = Callable[[Resource, Object], Sequence[str]]
"""Returns the finalizers of an object that a policy selects, nothing for one that stays on the host."""


class ProtectionWarnings(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state."""

    resources = frozenset(resource.group_resource for resource in (*_TEXTS, PRIORITY_LEVELS))

    def __init__(self, delivers: Delivers) -> None:
        self._delivers = delivers

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:  # noqa: ARG002  # a plugin's signature
        """Add a warning about an object that is new or changed and does nothing."""
        obj, resource = request.obj, request.resource
        if obj is None or not request.changes_spec:
            return
        if resource == PRIORITY_LEVELS:
            request.warnings.extend(_unused_fields(obj))
            return
        fields = _about_pods(obj) if resource == RESOURCE_QUOTAS else ("",)
        typed = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
        if fields and not self._delivers(resource, typed):
            request.warnings.append(_TEXTS[resource].format(fields=", ".join(fields)))


def _about_pods(quota: Object) -> list[str]:
    """Return the limits of a quota that count what pods use."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    return [name for name in hard if name in _OF_PODS or (name.startswith(_PREFIXES) and name != "requests.storage")]


def _unused_fields(level: Object) -> list[str]:
    limited = (level.get("spec") or {}).get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    named = [f"spec.limited.{field}" for field in _UNUSED if limited.get(field)]
    named += [f"spec.limited.limitResponse.queuing.{field}" for field in _UNUSED_QUEUES if queuing.get(field)]
    return (
        [f"{', '.join(named)}: this API server does not use them; docs/operations.md has its limits"] if named else []
    )
