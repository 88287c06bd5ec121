"""Admission of HorizontalPodAutoscalers on the host: a warning where one does not act.

The host runs no pods, so an autoscaler scales a federated workload in members that it is delivered to, or its total if
the workload is divided. Where no policy does either, it would be accepted without a word and do nothing.
"""

from federation.admission.policyselectors import ListObjects
from federation.api import names
from federation.api.federatedtype import parse_configs
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery.errors import ApiError
from federation.apimachinery.resources import Object, group_kind_of
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide

_KIND = "HorizontalPodAutoscaler"
_LABELS = (names.PROPAGATION_POLICY_LABEL, names.CLUSTER_PROPAGATION_POLICY_LABEL)


class AutoscalerAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state; `list_objects` reads the store."""

    resources = frozenset({"horizontalpodautoscalers.autoscaling"})

    def __init__(self, list_objects: ListObjects) -> None:
        self._list = list_objects

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:  # noqa: ARG002  # a plugin's signature
        """Warn about an autoscaler of a federated workload if no policy delivers it, and none divides workloads."""
        scaler = request.obj or {}
        if not request.changes_spec:
            return
        target = (scaler.get("spec") or {}).get("scaleTargetRef") or {}
        try:
            if not await self._is_federated(target) or await self._may_act(scaler, request.namespace):
                return
        except ApiError:
            return  # An autoscaler is not refused because a warning could not be computed.
        request.warnings.append(
            f"spec.scaleTargetRef: {target.get('kind')} {target.get('name')} is federated and runs no pods on the host,"
            " so this autoscaler does not act; it scales the total if the workload's policy divides it (schedulingMode:"
            " Divide), and each member if a propagation policy selects it, or the workload lists it in the annotation"
            f" {names.FOLLOWERS}"
        )

    async def _is_federated(self, target: Object) -> bool:
        types = parse_configs(await self._list(FEDERATED_TYPE_CONFIGS, ""))
        return any(type_.resource.group_kind == group_kind_of(target) for type_ in types)

    async def _may_act(self, scaler: Object, namespace: str) -> bool:
        """Return whether a label names a policy, or a policy divides workloads or selects autoscalers here."""
        if any(label in (scaler["metadata"].get("labels") or {}) for label in _LABELS):
            return True
        policies = [
            *await self._list(PROPAGATION_POLICIES, namespace),
            *await self._list(CLUSTER_PROPAGATION_POLICIES, ""),
        ]
        if any(policy["spec"].get("schedulingMode") == "Divide" for policy in policies):
            return True
        selectors = [entry for policy in policies for entry in policy["spec"].get("resourceSelectors") or ()]
        return any(entry.get("kind") == _KIND for entry in selectors)
