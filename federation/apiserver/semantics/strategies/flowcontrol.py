"""Strategies of FlowSchemas and PriorityLevelConfigurations.

`registry/flowcontrolobjects.py` creates the server's own; `http/flowcontrol.py` grants seats by them.
"""

from typing import ClassVar

from federation.apimachinery.fielderrors import Causes
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults import otherdefaults as defaults
from federation.apiserver.semantics.strategies.base import USER_METADATA, GenerationStrategy, StatusFields
from federation.apiserver.semantics.validation.flowcontrolvalidation import (
    validate_conditions,
    validate_flow_schema,
    validate_priority_level,
)


class _FlowControlStrategy(GenerationStrategy):
    status_always: ClassVar[StatusFields] = {}
    status_resets = USER_METADATA

    def validate_status_update(self, new: Object, old: Object) -> Causes:
        del old
        return validate_conditions(new)


class FlowSchemaStrategy(_FlowControlStrategy):
    """flowcontrol.apiserver.k8s.io/v1 FlowSchema."""

    default = staticmethod(defaults.default_flow_schema)
    validate = staticmethod(validate_flow_schema)


class PriorityLevelConfigurationStrategy(_FlowControlStrategy):
    """flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration."""

    default = staticmethod(defaults.default_priority_level)
    validate = staticmethod(validate_priority_level)
