"""Strategies of HorizontalPodAutoscalers in autoscaling/v2, the stored version, and in autoscaling/v1.

The rules of the kind are those of v2. The strategy of v1 converts, applies them and converts back, so that a client of
v1 sees defaults and refusals of the whole object, including the parts that its annotations carry.
"""

from typing import ClassVar

from federation.apimachinery.dotpaths import value_at
from federation.apimachinery.fielderrors import Causes
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.conversion.autoscalerconversion import to_v1, to_v2, without_status_annotations
from federation.apiserver.semantics.defaults import otherdefaults as defaults
from federation.apiserver.semantics.defaults.poddefaults import fill
from federation.apiserver.semantics.strategies.base import StatusFields, Strategy
from federation.apiserver.semantics.validation.autoscalervalidation import (
    validate_autoscaler,
    validate_autoscaler_status,
)


class HorizontalPodAutoscalerStrategy(Strategy):
    """autoscaling/v2 HorizontalPodAutoscaler."""

    names_again = False
    status_always: ClassVar[StatusFields] = {"currentMetrics": None, "desiredReplicas": 0}

    default = staticmethod(defaults.default_autoscaler)
    validate = staticmethod(validate_autoscaler)
    validate_update = staticmethod(validate_autoscaler)

    def validate_status_update(self, new: Object, old: Object) -> Causes:
        del old
        return validate_autoscaler_status(new)


class HorizontalPodAutoscalerV1Strategy(Strategy):
    """autoscaling/v1 HorizontalPodAutoscaler."""

    names_again = False
    status_always: ClassVar[StatusFields] = {"currentReplicas": 0, "desiredReplicas": 0}

    def default(self, obj: Object) -> None:
        if not isinstance(value_at(obj, "spec"), dict):
            obj["spec"] = {}
        fill(obj["spec"], minReplicas=1)
        _replace(obj, to_v1(to_v2(obj)), keeps_status="status" in obj)

    def prepare_create(self, obj: Object) -> None:
        _replace(obj, without_status_annotations(obj), keeps_status=True)

    def prepare_update(self, new: Object, old: Object) -> None:
        _replace(new, to_v1({**to_v2(new), "status": to_v2(old)["status"]}), keeps_status="status" in old)

    def prepare_status_update(self, new: Object, old: Object) -> None:
        converted = {**to_v2(new), "spec": to_v2(old)["spec"]}
        _replace(new, to_v1(converted), keeps_status=True)

    def validate(self, obj: Object) -> Causes:
        return validate_autoscaler(to_v2(obj))

    def validate_update(self, new: Object, old: Object) -> Causes:
        return validate_autoscaler(to_v2(new), to_v2(old))

    def validate_status_update(self, new: Object, old: Object) -> Causes:
        del old
        return validate_autoscaler_status(new)


def _replace(obj: Object, new: Object, *, keeps_status: bool) -> None:
    """Give the object the content of another one, in place."""
    obj.clear()
    obj.update(new)
    if not keeps_status:
        obj.pop("status", None)
