"""The kinds of queues: CapacityFlavor, ClusterJobQueue for the fleet, JobQueue for a namespace.

The words are Kueue's where the meaning is the same. Reference: docs/reference/queues.md.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.resources import CAPACITY_FLAVORS, CLUSTER_JOB_QUEUES, JOB_QUEUES
from federation.api.v1alpha1.base import AGE, Bytes, Column, DateTime, Definition, Int32, Kind, Model, QuantityText
from federation.api.v1alpha1.common import LabelSelector, Toleration

_AMOUNT = Field(
    json_schema_extra={
        "maxLength": 32,  # without it, the rule could cost more than API servers allow
        "x-kubernetes-validations": [
            {"rule": "!string(self).startsWith('-')", "message": "quantities must not be negative"}
        ],
    }
)
Amount = Annotated[QuantityText, _AMOUNT]
Name = Annotated[str, Field(min_length=1, max_length=63)]
ResourceName = Annotated[str, Field(min_length=1, max_length=253)]


def _keyed(key: str) -> dict[str, object]:
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


class CapacityFlavorSpec(Model):
    """The clusters and nodes of the flavour."""

    assign_nodes: bool = False
    """Whether pods whose nodeSelector says nothing of the node labels get them when they use the flavour."""
    cluster_selector: LabelSelector | None = None
    """The labels of its clusters; absent means all clusters."""
    node_labels: Annotated[dict[str, str] | None, Field(max_length=8)] = None
    """The labels of its nodes. Pods use the flavour if their nodeSelector has all of these labels, see assignNodes."""
    tolerations: Annotated[list[Toleration] | None, Field(max_length=8)] = None
    """The tolerations that pods get when they use the flavour."""


class CapacityFlavor(Kind):
    """CapacityFlavor is a part of the fleet that quota is given for: clusters, and a class of their nodes."""

    DEFINITION: ClassVar[Definition] = Definition(
        CAPACITY_FLAVORS,
        "cflavor",
        has_status=False,
        columns=(
            Column("Clusters", ".spec.clusterSelector.matchLabels"),
            Column("Nodes", ".spec.nodeLabels"),
            AGE,
        ),
    )

    spec: CapacityFlavorSpec


class ResourceQuota(Model):
    """The quota of one resource."""

    borrowing_limit: Amount | None = None
    """How much may be borrowed from the cohort; absent means all that others lend."""
    lending_limit: Amount | None = None
    """How much of the quota the cohort may use while it is unused; absent means all."""
    name: ResourceName
    """The resource: cpu, memory, pods, nvidia.com/gpu."""
    nominal_quota: Amount
    """The quota of the queue itself."""


class FlavorQuotas(Model):
    """The quotas of one flavour."""

    name: Name
    """The name of a CapacityFlavor."""
    resources: Annotated[list[ResourceQuota], Field(min_length=1, max_length=16, json_schema_extra=_keyed("name"))]
    """The quota of each resource. A job is not admitted if its pods request a resource that is not listed."""


class WithinQueue(StrEnum):
    """Whether jobs of the queue give way to others of the same queue."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


class ReclaimWithinCohort(StrEnum):
    """The borrowers that give way when the queue needs its own quota."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


class Preemption(Model):
    """The running jobs that give way to waiting ones."""

    evictions_per_hour: Annotated[Int32, Field(ge=0, le=1000)] = 10
    """How many jobs of this queue may be evicted in an hour, for whatever other job."""
    reclaim_within_cohort: ReclaimWithinCohort = ReclaimWithinCohort.NEVER
    """The jobs of borrowers that give way when this queue needs its own quota: Never, LowerPriority or Any."""
    within_queue: WithinQueue = WithinQueue.NEVER
    """Whether jobs of this queue give way to others of it with a higher priority: Never or LowerPriority."""


class AdmissionCheck(Model):
    """A service that is asked about each job before it is admitted."""

    ca_bundle: Bytes | None = None
    """The certificates (PEM) that the server's must come from; absent means those of the system."""
    name: Name
    """Its name in the reasons that jobs show."""
    timeout_seconds: Annotated[Int32, Field(ge=1, le=30)] = 10
    """The longest time for an answer; without an answer the job waits."""
    url: Annotated[str, Field(min_length=9, max_length=2048, pattern=r"^https?://[^\s/]+")]
    """The address that the question is posted to."""


class StopPolicy(StrEnum):
    """Whether the queue admits jobs, and keeps those that run."""

    NONE = "None"
    HOLD = "Hold"
    HOLD_AND_DRAIN = "HoldAndDrain"


class QueueingStrategy(StrEnum):
    """What happens behind the first job that cannot start."""

    RESERVE = "Reserve"
    BEST_EFFORT_FIFO = "BestEffortFIFO"


class ClusterJobQueueSpec(Model):
    """The quotas of the queue, and who may use it."""

    admission_checks: Annotated[list[AdmissionCheck] | None, Field(max_length=4, json_schema_extra=_keyed("name"))] = (
        None
    )
    """Services that must say Ready before a job is admitted, asked in this order."""
    cohort: Annotated[str, Field(max_length=63)] = ""
    """Queues with the same cohort lend each other what they do not use."""
    fair_weight: Annotated[Int32, Field(ge=1, le=1000)] = 1
    """The weight of the queue when several ask for the same capacity."""
    flavors: Annotated[list[FlavorQuotas], Field(min_length=1, max_length=16, json_schema_extra=_keyed("name"))]
    """The quotas by flavour; the first flavour that a job can use and that has room is taken."""
    losses_max: Annotated[Int32, Field(ge=0, le=1000)] = 3
    """How often a job that lost its cluster starts again."""
    namespace_selector: LabelSelector | None = None
    """The namespaces whose JobQueues may use this queue. Absent selects none, {} selects all."""
    pending_max: Annotated[Int32, Field(ge=1, le=100_000)] = 10_000
    """How many jobs of one JobQueue wait in order; later ones wait outside until there is a place."""
    preemption: Preemption = Field(default_factory=Preemption)
    """The running jobs that give way."""
    priority_class_names: Annotated[list[Name] | None, Field(max_length=64)] = None
    """The PriorityClasses that jobs of this queue may name. Absent allows none, so all jobs have the same priority."""
    queueing_strategy: QueueingStrategy = QueueingStrategy.RESERVE
    """Reserve keeps quota and a cluster for the first job that cannot start; BestEffortFIFO starts whatever fits."""
    stop_policy: StopPolicy = StopPolicy.NONE
    """Hold admits no further jobs, and what runs goes on; with HoldAndDrain what runs leaves its cluster and waits."""


class FlavorUsage(Model):
    """The use of a flavour and resource."""

    borrowed: QuantityText | None = None
    """The part that is borrowed from the cohort."""
    flavor: str
    """The name of the flavour."""
    nominal_quota: QuantityText
    """The quota of the queue itself."""
    resource: str
    """The name of the resource."""
    used: QuantityText
    """The amount that admitted jobs use."""


class ClusterJobQueueStatus(Model):
    """The number of jobs, and the use of the quota."""

    admitted: Int32 = 0
    """Jobs that were admitted and have not ended."""
    message: str | None = None
    """The fault of the queue, if it has one."""
    pending: Int32 = 0
    """Jobs that wait."""
    usage: list[FlavorUsage] | None = None
    """The use by flavour and resource."""


class ClusterJobQueue(Kind):
    """ClusterJobQueue has quota of the fleet, and admits the jobs of the JobQueues that name it."""

    DEFINITION: ClassVar[Definition] = Definition(
        CLUSTER_JOB_QUEUES,
        "cjq",
        columns=(
            Column("Cohort", ".spec.cohort"),
            Column("Pending", ".status.pending", "integer"),
            Column("Admitted", ".status.admitted", "integer"),
            Column("Used", ".status.usage[*].used", is_wide=True),
            Column("Message", ".status.message", is_wide=True),
            AGE,
        ),
    )

    spec: ClusterJobQueueSpec
    status: ClusterJobQueueStatus | None = None


class JobQueueSpec(Model):
    """The queue of the fleet behind it."""

    cluster_job_queue: Name
    """The name of the ClusterJobQueue whose quota its jobs use."""
    stop_policy: StopPolicy = StopPolicy.NONE
    """Hold admits no further jobs, and what runs goes on; with HoldAndDrain what runs leaves its cluster and waits."""


class ClusterAlternative(Model):
    """A cluster that was compared for a job with a deadline."""

    cluster: str
    """Its name."""
    cost: float | None = None
    """The price of the whole run, retries included, or grams of CO2e; absent if that is not known."""
    ends_by: DateTime | None = None
    """When the job has ended at the latest if it starts then."""
    is_met: bool | None = None
    """Whether the job ends before its deadline."""
    is_spot: bool | None = None
    """Whether its nodes may be taken away."""
    measure: str | None = None
    """`carbon` if the cost is grams of CO2e."""
    starts_at: DateTime | None = None
    """When the job can start there; absent if that is not known."""


class WaitingJob(Model):
    """A job that waits."""

    alternatives: list[ClusterAlternative] | None = None
    """The clusters that were compared for its deadline, the best one first."""
    estimated_start_time: DateTime | None = None
    """When it is expected to start; absent if that is not known."""
    kind: str
    """Its kind."""
    name: str
    """Its name."""
    position: Int32
    """Its place among all jobs that wait for the ClusterJobQueue, from 1."""
    waits_for: str
    """The quota, room or turn that it lacks."""


class JobQueueStatus(Model):
    """The jobs of the namespace in the queue."""

    admitted: Int32 = 0
    """Jobs that were admitted and have not ended."""
    message: str | None = None
    """Why jobs of this queue cannot be admitted."""
    pending: Int32 = 0
    """Jobs that wait."""
    waiting: list[WaitingJob] | None = None
    """The first of the jobs that wait, in their order."""


class JobQueue(Kind):
    """JobQueue is where jobs of a namespace wait until a ClusterJobQueue admits them."""

    DEFINITION: ClassVar[Definition] = Definition(
        JOB_QUEUES,
        "jq",
        columns=(
            Column("Cluster-Queue", ".spec.clusterJobQueue"),
            Column("Pending", ".status.pending", "integer"),
            Column("Admitted", ".status.admitted", "integer"),
            Column("Next", ".status.waiting[0].name"),
            Column("Start", ".status.waiting[0].estimatedStartTime", "date", is_wide=True),
            Column("Message", ".status.message", is_wide=True),
            AGE,
        ),
    )

    spec: JobQueueSpec
    status: JobQueueStatus | None = None
