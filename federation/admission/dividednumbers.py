"""Admission of kinds whose numbers are about one cluster's pods: a warning where the workload is divided.

A PodDisruptionBudget or an autoscaler that a policy delivers is the same in each cluster, and the replicas of its
workload are not: `minAvailable: 4` over clusters with two replicas each blocks every drain.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.admission.policyselectors import ListObjects
from federation.api import names
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery import dotpaths
from federation.apimachinery.errors import ApiError, InvalidInput
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import compile_label_selector
from federation.apiserver.admission.plugins import AdmissionPlugin, ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide
from federation.planning.federatedobject.placements import overrides_of, placement_of
from federation.scheduling.framework.types import SchedulingMode
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import Policy, compile_valid

_BUDGET = "poddisruptionbudgets.policy"
_FIELDS: Mapping[str, tuple[str, ...]] = {
    _BUDGET: ("minAvailable", "maxUnavailable"),
    "horizontalpodautoscalers.autoscaling": ("minReplicas", "maxReplicas"),
    "scaledobjects.keda.sh": ("minReplicaCount", "maxReplicaCount"),
}
_TARGETS = ("scaleTargetRef", "targetRef")


class DividedNumbersAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`, around another one for some of its resources. `list_objects` reads the store.

    It lives as long as the API server and keeps no state.
    """

    resources = frozenset(_FIELDS)

    def __init__(self, list_objects: ListObjects, inner: AdmissionPlugin) -> None:
        self._list = list_objects
        self._inner = inner

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Warn about numbers that hold in each cluster while the workload is divided over several."""
        if request.resource.group_resource in self._inner.resources:
            await self._inner.validate(request, access)
        obj, spec = request.obj or {}, (request.obj or {}).get("spec") or {}
        if not request.changes_spec:
            return
        name = request.resource.group_resource
        numbers = [(field, spec[field]) for field in _FIELDS[name] if type(spec.get(field)) is int and spec[field] > 0]
        if not numbers:
            return
        try:
            policy = await self._policy_of(request.namespace, obj)
            # The workload may come later: charts create budgets first.
            is_divided = policy is not None and policy.mode is SchedulingMode.DIVIDE and policy.max_clusters != 1
            if policy is None or not (is_divided or await self._is_divided(request.namespace, name, spec)):
                return
        except (ApiError, InvalidInput):
            return  # Nothing is refused because a warning could not be computed.
        remedy = "a percentage holds for any number of replicas" if name == _BUDGET else "divide it by the clusters"
        request.warnings.extend(
            f"spec.{field}: {number} holds in each cluster that {policy.ref} selects, and the workload's replicas are"
            f" divided over several; {remedy}"
            for field, number in numbers
        )

    async def _policy_of(self, namespace: str, obj: Object) -> Policy | None:
        """Return the policy that delivers the object."""
        policies = PolicyIndex()
        for kind, scope in ((PROPAGATION_POLICIES, namespace), (CLUSTER_PROPAGATION_POLICIES, "")):
            for found in compile_valid(await self._list(kind, scope)):
                policies.put(found)
        labels = obj["metadata"].get("labels") or {}
        ref = policies.match({"metadata": {"namespace": namespace, "labels": labels}, "spec": {"template": obj}})
        return policies.get(ref) if ref is not None else None

    async def _is_divided(self, namespace: str, name: str, spec: Mapping[str, Any]) -> bool:
        """Return whether a workload of the object has its replicas in several clusters."""
        federated = await self._list(FEDERATED_OBJECTS, namespace)
        if name == _BUDGET:
            if not isinstance(spec.get("selector"), dict):
                return False  # It selects nothing.
            selector = compile_label_selector(spec["selector"])
            path = ("spec", "template", "metadata", "labels")
            chosen: Iterable[Object] = (
                each for each in federated if selector.matches(dotpaths.get(each["spec"]["template"], path) or {})
            )
        else:
            target: Mapping[str, Any] = next((spec[key] for key in _TARGETS if isinstance(spec.get(key), dict)), {})
            chosen = (each for each in federated if _is_target(each["spec"]["template"], target))
        return any(map(_has_shares, chosen))


def _is_target(template: Mapping[str, Any], target: Mapping[str, Any]) -> bool:
    return template.get("kind") == (target.get("kind") or "Deployment") and (
        template["metadata"].get("name") == target.get("name")
    )


def _has_shares(federated: Object) -> bool:
    """Return whether the scheduler divides the object's replicas over several clusters."""
    divided = [
        cluster
        for cluster, patches in overrides_of(federated, names.GLOBAL_SCHEDULER).items()
        if any(str(patch.get("path", "")).endswith("/replicas") for patch in patches)
    ]
    return len(set(placement_of(federated, names.GLOBAL_SCHEDULER)) & set(divided)) > 1
