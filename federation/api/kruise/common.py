"""Parts that several kinds of apps.kruise.io share: node selectors, tolerations, counts."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from federation.api.v1alpha1.base import Int32, Int64, Model

IntOrPercent = Annotated[int | str, Field(json_schema_extra={"x-kubernetes-int-or-string": True})]


class NodeOperator(StrEnum):
    """The relation of a key to a set of values."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class NodeSelectorRequirement(Model):
    """One expression over a node's labels or fields."""

    key: str
    """The label key, or in matchFields the field (only metadata.name), that the expression applies to."""
    operator: NodeOperator
    """The relation of the key to the values."""
    values: list[str] | None = None
    """At least one value for In and NotIn, none for Exists and DoesNotExist, exactly one integer for Gt and Lt."""


class NodeSelectorTerm(Model):
    """Expressions that must all hold for a node. A term without any expression matches no node."""

    match_expressions: list[NodeSelectorRequirement] | None = None
    """Expressions over the node's labels."""
    match_fields: list[NodeSelectorRequirement] | None = None
    """Expressions over the node's fields."""


class PreferredSchedulingTerm(Model):
    """Nodes that the scheduler prefers."""

    preference: NodeSelectorTerm
    """The preferred nodes. A term without any expression prefers no node."""
    weight: Int32
    """The weight of the preference, from 1 to 100."""


class NodeToleration(Model):
    """Allows a pod on nodes with a matching taint."""

    effect: str | None = None
    """The taint effect to match: NoSchedule, PreferNoSchedule or NoExecute; empty matches all."""
    key: str | None = None
    """The taint key to match; empty matches all keys, the operator must then be Exists."""
    operator: str | None = None
    """Exists or Equal (the default)."""
    toleration_seconds: Int64 | None = None
    """How long a running pod tolerates a NoExecute taint; absent for ever, 0 and less evicts it at once."""
    value: str | None = None
    """The taint value to match; empty with the operator Exists."""
