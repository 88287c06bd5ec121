"""Strategies of FlowSchemas and PriorityLevelConfigurations.

They are stored and validated as in Kubernetes, and they do not steer this server: `http/flowcontrol.py` has its own
priority levels.
"""

from typing import ClassVar

from federation.apimachinery.fielderrors import Causes
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults import otherdefaults as defaults
from federation.apiserver.semantics.strategies.base import GenerationStrategy, StatusFields
from federation.apiserver.semantics.validation.flowcontrolvalidation import (
    validate_conditions,
    validate_flow_schema,
    validate_priority_level,
)


class _FlowControlStrategy(GenerationStrategy):
    status_always: ClassVar[StatusFields] = {}
    status_keeps_annotations = True

    def validate_status_update(self, new: Object, old: Object) -> Causes:
        del old
        return validate_conditions(new)


class FlowSchemaStrategy(_FlowControlStrategy):
    """flowcontrol.apiserver.k8s.io/v1 FlowSchema."""

    def default(self, obj: Object) -> None:
        defaults.default_flow_schema(obj)

    def validate(self, obj: Object) -> Causes:
        return validate_flow_schema(obj)


class PriorityLevelConfigurationStrategy(_FlowControlStrategy):
    """flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration."""

    def default(self, obj: Object) -> None:
        defaults.default_priority_level(obj)

    def validate(self, obj: Object) -> Causes:
        return validate_priority_level(obj)
