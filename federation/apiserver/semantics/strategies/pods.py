"""Strategies of Pods and PodTemplates."""

from typing import Any

from federation.apimachinery.fielderrors import Causes, forbidden, invalid, show
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults import poddefaults as defaults
from federation.apiserver.semantics.strategies.base import GenerationStrategy
from federation.apiserver.semantics.validation.podvalidation import validate_pod_spec, validate_template

_UPDATE_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`,"
    " `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations),"
    " `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_CHANGEABLE = frozenset({"activeDeadlineSeconds", "tolerations", "schedulingGates"})


class PodStrategy(GenerationStrategy):
    """v1 Pod: its spec is almost immutable, and deletion has a grace period once it is bound to a node."""

    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        defaults.default_pod(obj)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}
        if obj["spec"].get("schedulingGates"):
            obj["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]

    def validate(self, obj: Object) -> Causes:
        return validate_pod_spec(obj["spec"], "spec")

    def validate_update(self, new: Object, old: Object) -> Causes:
        if new["spec"] == old["spec"]:
            return []
        causes = self.validate(new)
        if _fixed_part(new["spec"]) != _fixed_part(old["spec"]):
            causes.append(forbidden("spec", _UPDATE_TEXT))
        kept = new["spec"].get("tolerations", ())
        removed = [item for item in old["spec"].get("tolerations") or () if item not in kept]
        if removed:
            causes.append(forbidden("spec.tolerations", f"existing toleration can not be modified: {show(removed[0])}"))
        return causes + _validate_deadline(new["spec"], old["spec"]) + _validate_gates(new["spec"], old["spec"])

    def grace_period_s(self, obj: Object, wanted: int | None) -> int:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        if wanted is None or wanted < 0:
            wanted = int(spec.get("terminationGracePeriodSeconds", 30))
        # No kubelet has to stop a pod that is not bound to a node or that has finished.
        if not spec.get("nodeName") or status.get("phase") in {"Failed", "Succeeded"}:
            return 0
        return wanted


class PodTemplateStrategy(GenerationStrategy):
    """v1 PodTemplate."""

    def default(self, obj: Object) -> None:
        defaults.default_template(obj.setdefault("template", {}))

    def validate(self, obj: Object) -> Causes:
        return validate_template(obj["template"], "template")


def qos_class(spec: dict[str, Any]) -> str:
    """Return the QoS class of a pod: Guaranteed, Burstable or BestEffort."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    resources = [_compute_resources(container) for container in containers]
    if not any(requests or limits for requests, limits in resources):
        return "BestEffort"
    if all(limits.keys() >= {"cpu", "memory"} and requests == limits for requests, limits in resources):
        return "Guaranteed"
    return "Burstable"


def _validate_deadline(new: dict[str, Any], old: dict[str, Any]) -> Causes:
    """Require that activeDeadlineSeconds is only reduced."""
    field = "activeDeadlineSeconds"
    before, after = old.get(field), new.get(field)
    if before is None:
        return []
    if after is None:
        return [invalid(f"spec.{field}", after, "must not update from a positive integer to nil value")]
    return [invalid(f"spec.{field}", after, "must be less than or equal to previous value")] if after > before else []


def _validate_gates(new: dict[str, Any], old: dict[str, Any]) -> Causes:
    before = [gate.get("name") for gate in old.get("schedulingGates") or ()]
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(new.get("schedulingGates") or ())
        if gate.get("name") not in before
    ]


def _compute_resources(container: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the (requests, limits) of cpu and memory."""
    resources = container.get("resources") or {}
    requests, limits = (
        {name: amount for name, amount in (resources.get(part) or {}).items() if name in {"cpu", "memory"}}
        for part in ("requests", "limits")
    )
    return requests, limits


def _fixed_part(spec: dict[str, Any]) -> dict[str, Any]:
    fixed = {name: value for name, value in spec.items() if name not in _CHANGEABLE}
    for kind in ("containers", "initContainers"):
        if kind in fixed:
            fixed[kind] = [{**container, "image": ""} for container in fixed[kind]]
    return fixed
