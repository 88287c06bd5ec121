"""ClusterTaintPolicy and Remedy: taints and actions while something holds in a cluster.

Reference: docs/reference/clusterrules.md.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from federation.api.resources import CLUSTER_TAINT_POLICIES, REMEDIES
from federation.api.v1alpha1.base import (
    AGE,
    LABEL_KEY,
    QUANTITY_PATTERN,
    Bytes,
    Column,
    DateTime,
    Definition,
    Kind,
    Model,
    NonNegative,
)
from federation.api.v1alpha1.common import ClusterSelectorTerm, LabelSelector

_SECONDS_MAX = 7 * 86400
_Seconds = Annotated[int, Field(ge=0, le=_SECONDS_MAX, json_schema_extra={"format": "int32"})]
_Name = Annotated[str, Field(min_length=1, max_length=253)]


class StatusOperator(StrEnum):
    """The relation of a condition's status to the values."""

    IN = "In"
    NOT_IN = "NotIn"


class ConditionMatch(Model):
    """A condition of the FederatedCluster. One that the cluster does not have says nothing."""

    operator: StatusOperator = StatusOperator.IN
    """Whether the status must be one of the values, or none of them."""
    type: Annotated[str, Field(min_length=1, max_length=316)]
    """The type of the condition, such as Ready."""
    values: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=64)]],
        Field(min_length=1, max_length=8, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ]
    """Values of its status: True, False, Unknown."""


class Measure(StrEnum):
    """Allocatable is the capacity of the schedulable nodes, Free what no pod has requested of it, Waiting the requests
    of pods without a node, and Nodes the number of schedulable nodes.
    """

    ALLOCATABLE = "Allocatable"
    FREE = "Free"
    NODES = "Nodes"
    WAITING = "Waiting"


_Limit = Annotated[
    int | str,
    Field(json_schema_extra={"x-kubernetes-int-or-string": True, "pattern": rf"^[0-9]{{1,3}}%$|{QUANTITY_PATTERN}"}),
]
"""A quantity or a percentage."""


class MetricMatch(Model):
    """An amount that the cluster reports, below or above a limit. One that it does not report says nothing."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "has(self.above) != has(self.below)",
                    "message": "gives no limit or two; give one of above and below",
                },
                {
                    "rule": "has(self.resource) == (self.measure != 'Nodes')",
                    "message": "names a resource for Nodes, or none for another measure; correct resource",
                    "fieldPath": ".resource",
                },
            ]
        }
    )

    above: _Limit | None = None
    """It holds above this amount."""
    below: _Limit | None = None
    """It holds below this amount."""
    measure: Measure
    """The measure."""
    resource: _Name | None = None
    """The resource, such as cpu, memory or pods."""


class RuleTerm(Model):
    """Facts about a cluster; all parts that are given must hold."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    cluster_labels: LabelSelector | None = None
    """The labels of the cluster."""
    conditions: Annotated[list[ConditionMatch] | None, Field(min_length=1, max_length=16)] = None
    """Conditions of the cluster."""
    metrics: Annotated[list[MetricMatch] | None, Field(min_length=1, max_length=16)] = None
    """Amounts that the cluster reports."""


class RuleSpec(Model):
    """The clusters of a rule, and the time in which it is active."""

    clear_seconds: _Seconds = 300
    """The time without anything that holds before the rule ends in a cluster."""
    clear_when: Annotated[list[RuleTerm] | None, Field(min_length=1, max_length=8)] = None
    """Terms of which one must hold for that time before the rule ends; absent means that none of `when` holds."""
    cluster_affinity: Annotated[list[ClusterSelectorTerm] | None, Field(max_length=16)] = None
    """Terms over cluster labels and names, of which at least one must match."""
    cluster_selector: dict[str, str] | None = None
    """Labels that a cluster must carry."""
    clusters: Annotated[list[_Name] | None, Field(max_length=1000)] = None
    """The names of the clusters; absent or empty means all."""
    hold_seconds: _Seconds = 60
    """The time that a term must hold before the rule becomes active in a cluster."""
    max_clusters: Annotated[
        int | str,
        Field(json_schema_extra={"x-kubernetes-int-or-string": True, "pattern": "^[0-9]{1,3}%$"}),
    ] = "50%"
    """The most clusters in which the rule is active at a time, as a number or as a percentage of the selected ones,
    rounded up. Others wait."""
    when: Annotated[list[RuleTerm] | None, Field(min_length=1, max_length=8)] = None
    """Terms of which at least one must hold; absent means always."""


class TaintEffect(StrEnum):
    """NoSchedule and PreferNoSchedule keep new replicas out; NoExecute also moves those that run there."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class RuleTaint(Model):
    """A taint that the rule sets, and removes again."""

    effect: TaintEffect
    """Its effect on replicas that do not tolerate it."""
    key: Annotated[str, Field(min_length=1, max_length=317, pattern=LABEL_KEY)]
    """Its key; the keys of the control plane are not allowed."""
    value: Annotated[str | None, Field(max_length=63)] = None
    """Its value."""


class Removal(StrEnum):
    """Automatic removes the taints when the rule ends; Manual leaves that to people."""

    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


class ClusterTaintPolicySpec(RuleSpec):
    """The clusters of a policy, the time in which it is active, and their taints."""

    removal: Removal = Removal.AUTOMATIC
    """The way in which the taints are removed."""
    taints: Annotated[list[RuleTaint], Field(min_length=1, max_length=8)]
    """The taints of the clusters in which the policy is active."""


class ActionType(StrEnum):
    """Cordon keeps new replicas out, CutTraffic takes the cluster's endpoints out of multi-cluster Services, Event
    writes an Event of the cluster, Taint sets a taint, Webhook sends a request when the rule becomes active and when it
    ends.
    """

    CORDON = "Cordon"
    CUT_TRAFFIC = "CutTraffic"
    EVENT = "Event"
    TAINT = "Taint"
    WEBHOOK = "Webhook"


class Webhook(Model):
    """A request. It is sent until it is answered with a status of success, and at most for an hour."""

    ca_bundle: Bytes | None = None
    """The certificates (PEM) that the server's must come from; absent means those of the system."""
    timeout_seconds: Annotated[int, Field(ge=1, le=30, json_schema_extra={"format": "int32"})] = 10
    """The longest time for an answer."""
    url: Annotated[str, Field(min_length=9, max_length=2048, pattern=r"^https?://[^\s/]+")]
    """The address that it is posted to."""


class RemedyAction(Model):
    """One thing that is done in a cluster."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "has(self.taint) == (self.type == 'Taint')",
                    "message": "is required for type Taint, and for no other; correct type or taint",
                    "fieldPath": ".taint",
                },
                {
                    "rule": "has(self.webhook) == (self.type == 'Webhook')",
                    "message": "is required for type Webhook, and for no other; correct type or webhook",
                    "fieldPath": ".webhook",
                },
            ]
        }
    )

    message: Annotated[str | None, Field(max_length=512)] = None
    """A text for the Event and the request."""
    taint: RuleTaint | None = None
    """The taint."""
    type: ActionType
    """The kind of the action."""
    webhook: Webhook | None = None
    """The request."""


class RemedySpec(RuleSpec):
    """The clusters of a remedy, the time in which it is active, and its actions."""

    actions: Annotated[list[RemedyAction], Field(min_length=1, max_length=8)]
    """The actions in a cluster in which the remedy is active; they are undone when it ends."""


class RuleState(StrEnum):
    """Pending and Clearing are before and after Active; taints are set in Active and Clearing."""

    PENDING = "Pending"
    ACTIVE = "Active"
    CLEARING = "Clearing"


class RuleCluster(Model):
    """The state of a rule in a cluster."""

    name: str
    """The cluster."""
    since: DateTime
    """The time since which it has this state."""
    state: RuleState
    """The state."""


class RuleStatus(Model):
    """The clusters in which the rule is not calm."""

    active: NonNegative | None = None
    """The number of clusters in which it is active or clearing."""
    clusters: list[RuleCluster] | None = None
    """The first 100 of them and of those where it is pending."""
    problem: str | None = None
    """The reason why it cannot be read; nothing changes in any cluster then."""


_COLUMNS = (Column("Active", ".status.active", "integer"), Column("Hold", ".spec.holdSeconds", "integer"), AGE)


class ClusterTaintPolicy(Kind):
    """ClusterTaintPolicy sets taints on clusters while something holds in them."""

    DEFINITION: ClassVar[Definition] = Definition(CLUSTER_TAINT_POLICIES, "ctp", columns=_COLUMNS)

    spec: ClusterTaintPolicySpec
    status: RuleStatus | None = None


class Remedy(Kind):
    """Remedy acts on clusters while something holds in them."""

    DEFINITION: ClassVar[Definition] = Definition(REMEDIES, columns=_COLUMNS)

    spec: RemedySpec
    status: RuleStatus | None = None
