"""Parts that several of our kinds share: cluster terms, tolerations, resource selectors, reference counts."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from federation.api.v1alpha1.base import DateTime, Int64, Model, NonNegative

_CONDITION_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


class ClusterOperator(StrEnum):
    """The relation of a key to a set of values."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class ClusterSelectorRequirement(Model):
    """One expression over a cluster's labels or fields."""

    key: str
    """The label key, or in matchFields the field (only metadata.name), that the expression applies to."""
    operator: ClusterOperator
    """The relation of the key to the values."""
    values: list[str]
    """At least one value for In and NotIn, none for Exists and DoesNotExist, exactly one integer for Gt and Lt."""


class ClusterSelectorTerm(Model):
    """Expressions that must all hold. A term without any expression matches no cluster."""

    match_expressions: list[ClusterSelectorRequirement] | None = None
    """Expressions over the cluster's labels."""
    match_fields: list[ClusterSelectorRequirement] | None = None
    """Expressions over the cluster's fields."""


class Toleration(Model):
    """Allows an object in clusters with a matching taint, as a Pod's toleration does for nodes."""

    effect: str | None = None
    """The taint effect to match: NoSchedule, PreferNoSchedule or NoExecute; empty matches all."""
    key: str | None = None
    """The taint key to match; empty matches all keys, the operator must then be Exists."""
    operator: str | None = None
    """Exists or Equal (the default)."""
    toleration_seconds: Int64 | None = None
    """How long a NoExecute taint is tolerated after its timeAdded; for ever without a number. Zero and less mean not at
    all."""
    value: str | None = None
    """The taint value to match; empty with the operator Exists."""


class LabelOperator(StrEnum):
    """The relation of a label to a set of values."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class LabelSelectorRequirement(Model):
    """One expression over an object's labels."""

    key: str
    """The label key."""
    operator: LabelOperator
    """The relation of the key to the values."""
    values: list[str] | None = None
    """At least one value for In and NotIn, none for the others."""


class LabelSelector(Model):
    """A Kubernetes label selector: all entries must hold, an empty one matches every object."""

    match_expressions: list[LabelSelectorRequirement] | None = None
    """Expressions that must all hold."""
    match_labels: dict[str, str] | None = None
    """Labels that the object must have, with these values."""


class ResourceSelector(Model):
    """Objects that a policy selects by kind, and then by name or label. An extension of this project."""

    api_version: str = Field(min_length=1)
    """The API version of the objects, for example apps/v1."""
    kind: str = Field(min_length=1)
    """The kind of the objects, for example Deployment."""
    name: str | None = None
    """The name of one object; empty selects by labelSelector alone."""
    label_selector: LabelSelector | None = None
    """The labels of the objects; absent selects all objects of the kind (and name)."""


class TypedRefCount(Model):
    """The number of objects of one resource that refer to the policy."""

    count: NonNegative
    """The number of objects."""
    group: str | None = None
    """The API group of the objects."""
    resource: str
    """The plural name of the objects."""


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Model):
    """One aspect of an object's state."""

    last_transition_time: DateTime
    """When the status last changed."""
    message: Annotated[str, Field(max_length=32768)]
    """Details of the last transition, for people."""
    observed_generation: NonNegative | None = None
    """The generation that the condition was set for."""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """The reason of the last transition, in CamelCase."""
    status: ConditionStatus
    """Whether the condition holds."""
    type: Annotated[str, Field(max_length=316, pattern=_CONDITION_TYPE)]
    """The aspect."""
