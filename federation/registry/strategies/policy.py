"""Autoscalers, disruption budgets and priority classes."""

from typing import Any, ClassVar

from federation.api.resources import Object
from federation.registry.defaults import others as defaults
from federation.registry.strategies.base import StatusFields, Strategy
from federation.registry.strategies.network import GenerationStrategy
from federation.registry.validation.fields import Causes, forbidden, immutable, invalid, non_negative, required
from federation.registry.validation.workloads import validate_label_selector


class AutoscalerStrategy(Strategy):
    """autoscaling/v2 HorizontalPodAutoscaler."""

    status_always: ClassVar[StatusFields] = {"currentMetrics": None, "desiredReplicas": 0}

    def default(self, obj: Object) -> None:
        defaults.default_autoscaler(obj)

    def validate(self, obj: Object) -> Causes:
        spec = obj.get("spec") or {}
        least, most = spec.get("minReplicas", 1), spec.get("maxReplicas")
        causes: Causes = []
        if isinstance(least, int) and least < 1:
            causes.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
        if not isinstance(most, int) or most < 1:
            causes.append(invalid("spec.maxReplicas", most or 0, "must be greater than 0"))
        elif isinstance(least, int) and most < least:
            causes.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
        target = spec.get("scaleTargetRef") or {}
        causes += [required(f"spec.scaleTargetRef.{field}") for field in ("kind", "name") if not target.get(field)]
        return causes


class BudgetStrategy(Strategy):
    """policy/v1 PodDisruptionBudget."""

    status_always: ClassVar[StatusFields] = {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }
    has_generation = True

    def validate(self, obj: Object) -> Causes:
        spec = obj.get("spec") or {}
        causes: Causes = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            causes.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for field in ("minAvailable", "maxUnavailable"):
            causes += _validate_share(spec.get(field), f"spec.{field}")
        return causes + validate_label_selector(spec.get("selector") or {}, "spec.selector")


class PriorityClassStrategy(GenerationStrategy):
    """scheduling.k8s.io/v1 PriorityClass."""

    immutable_fields = ("value", "preemptionPolicy")
    highest_user_value = 1_000_000_000

    def default(self, obj: Object) -> None:
        defaults.default_priority_class(obj)

    def validate(self, obj: Object) -> Causes:
        name = obj["metadata"].get("name", "")
        if name.startswith("system-"):
            return []
        if obj.get("value", 0) > self.highest_user_value:
            return [
                forbidden("value", f"maximum allowed value of a user defined priority is {self.highest_user_value}")
            ]
        return []

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = self.validate(new) + immutable("preemptionPolicy", new["preemptionPolicy"], old["preemptionPolicy"])
        if new["value"] != old["value"]:
            causes.append(forbidden("value", "may not be changed in an update."))
        return causes


def _validate_share(value: Any, field: str) -> Causes:
    if value is None or isinstance(value, int):
        return non_negative(field, value)
    number = str(value).removesuffix("%")
    if str(value).endswith("%") and number.isdigit():
        return [] if int(number) <= 100 else [invalid(field, value, "must not be greater than 100%")]
    return [
        invalid(
            field,
            value,
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex"
            " used for validation is '[0-9]+%')",
        )
    ]
