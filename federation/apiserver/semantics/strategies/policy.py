"""Strategies of PodDisruptionBudgets and PriorityClasses."""

from typing import ClassVar

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, forbidden, immutable, invalid
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults import otherdefaults as defaults
from federation.apiserver.semantics.podclasses import system_class_problem
from federation.apiserver.semantics.strategies.base import GenerationStrategy, StatusFields
from federation.apiserver.semantics.validation.fieldrules import Rule, is_one_of, is_present
from federation.apiserver.semantics.validation.selectorvalidation import validate_label_selector
from federation.apiserver.semantics.validation.workloadvalidation import validate_int_or_percent


class PodDisruptionBudgetStrategy(GenerationStrategy):
    """policy/v1 PodDisruptionBudget."""

    name_problems = staticmethod(nameformats.path_segment)
    knows_finalizers = False
    allow_unconditional_update = False
    rules = (Rule("spec.unhealthyPodEvictionPolicy", is_one_of("AlwaysAllow", "IfHealthyBudget")),)
    status_always: ClassVar[StatusFields] = {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }

    def validate(self, obj: Object) -> Causes:
        spec = obj.get("spec") or {}
        causes: Causes = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            causes.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for field in ("minAvailable", "maxUnavailable"):
            causes += validate_int_or_percent(spec.get(field), f"spec.{field}")
        return causes + validate_label_selector(spec.get("selector") or {}, "spec.selector")


class PriorityClassStrategy(GenerationStrategy):
    """scheduling.k8s.io/v1 PriorityClass."""

    immutable_fields = ("value", "preemptionPolicy")
    names_again = False
    rules = (
        Rule("preemptionPolicy", is_present),
        Rule("preemptionPolicy", is_one_of("Never", "PreemptLowerPriority", "")),
    )
    highest_user_value = 1_000_000_000

    def has_spec_changed(self, new: Object, old: Object) -> bool:
        """Return False: the generation of a PriorityClass stays 1."""
        del new, old
        return False

    default = staticmethod(defaults.default_priority_class)

    def validate(self, obj: Object) -> Causes:
        name = obj["metadata"].get("name", "")
        if name.startswith("system-"):
            problem = system_class_problem(obj)
            return [forbidden("metadata.name", problem)] if problem else []
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
