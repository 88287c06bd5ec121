"""The inputs and the results of admission, as frozen facts.

Amounts are integers: cpu in thousandths, everything else in whole units. Times are seconds since the epoch.
`queuestate.py` makes these facts from objects, `admission.py` decides about them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from weakref import WeakValueDictionary

from federation.planning.accounts.usage import Excess, Scope
from federation.planning.rendering.admittednodes import PodNodes
from federation.scheduling.deadlines import Alternative, Deadline, Offer

_NEVER = float("inf")
Pair = tuple[str, str]
"""A flavour and a resource."""
Amounts = Mapping[Pair, int]
Resources = Mapping[str, int]


class Reclaim(StrEnum):
    """The jobs that give way when a queue needs quota that it has lent."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


@dataclass(frozen=True)
class Queue(Scope[Pair]):
    """A ClusterJobQueue. `evictions_left` is how many of its jobs may still be evicted in the present hour."""

    weight: int = 1
    is_held: bool = False
    is_drained: bool = False
    keeps: bool = True
    """Whether quota and a cluster are kept for its first job that cannot start."""
    gives_way_within: bool = False
    """Whether its jobs of lower priority give way to those of higher priority."""
    reclaim: Reclaim = Reclaim.NEVER
    evictions_left: int = 0
    mean_s: float | None = None
    """How long its jobs ran."""


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """One choice of flavours for a job: what it charges, and the clusters that all of the flavours have.

    Jobs that ask for the same share one object, so that they are recognised.
    """

    amounts: Amounts
    clusters: frozenset[str]
    nodes: tuple[PodNodes, ...] = ()
    """What its pods get from the flavours."""


@dataclass(frozen=True, slots=True, eq=False)
class Bids:
    """The deadline of a job, and what each cluster offers for it, the cheapest first; their starts are not known."""

    deadline: Deadline
    offers: tuple[Offer, ...]


class Shape:
    """Stands for the jobs that are equal for admission, one object for all of them, so that it is compared quickly."""

    __slots__ = ("__weakref__",)


_SHAPES: WeakValueDictionary[tuple[object, ...], Shape] = WeakValueDictionary()


@dataclass(frozen=True)
class Job:
    """One object with a queue. `needs` is what all its pods request; {} if no room has to be there.

    It waits unless `holds` is set: then it is admitted, has `cluster` as soon as it is placed, and is admitted to
    `clusters` until then. `is_leaving` is an evicted job that is not gone from its cluster yet.
    """

    key: str
    queue: str
    leaf: str
    """The JobQueue: `namespace/name`."""
    options: tuple[Option, ...]
    needs: Resources = field(default_factory=dict)
    priority: int = 0
    created_s: float = 0.0
    is_front: bool = False
    limit_s: float | None = None
    """The longest time that it can run, which its kind enforces."""
    holds: Amounts | None = None
    cluster: str = ""
    clusters: frozenset[str] = frozenset()
    started_s: float = 0.0
    is_leaving: bool = False
    excluded: frozenset[str] = frozenset()
    """The clusters that do not take it: those that lack a class of its pods, and those that refused it."""
    lacking: frozenset[str] = frozenset()
    """Those of them that lack a class."""
    may_displace: bool = True
    """Whether others may give way to it: not to one whose pods a cluster refused."""
    not_before_s: float = 0.0
    held_until_s: float = 0.0
    """Until when an admission check holds it."""
    has_grown: bool = False
    """Whether it now needs more than it was admitted for."""
    stopped: str = ""
    """Why it has to leave its cluster and wait, "" if it need not."""
    pods_due_s: float = _NEVER
    """When its cluster must have created a pod of it, if it has not."""
    problem: str = ""
    """Why it cannot be admitted at all, for its author."""
    bids: Bids | None = None
    """Its deadline, if it has one."""

    @property
    def namespace(self) -> str:
        """Return the namespace of the job, which is that of its JobQueue."""
        return self.leaf.partition("/")[0]

    @cached_property
    def order(self) -> tuple[bool, int, float, str]:
        """Return the sort key within a queue."""
        return (not self.is_front, -self.priority, self.created_s, self.key)

    @cached_property
    def shape(self) -> "Shape":
        """Return what decides whether it can be admitted, besides its place in the order and its limit."""
        parts = (
            self.queue,
            self.options,
            tuple(sorted(self.needs.items())),
            self.excluded,
            bool(self.problem),
            self.bids,
        )
        return _SHAPES.setdefault(parts, Shape())

    def is_refused(self, now: float) -> bool:
        """Return whether its cluster creates none of its pods."""
        return now >= self.pods_due_s

    def ends_because(self, now: float) -> str:
        """Return why an admitted job has to leave its cluster, "" if it may stay."""
        if self.is_leaving:
            return ""
        if self.stopped:
            return self.stopped
        if self.is_refused(now):
            return f"cluster {self.cluster} creates none of its pods; see the events of the object there"
        return "it has grown beyond what it was admitted for" if self.has_grown and self.cluster else ""

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for its admission."""
        return self.holds is None and not self.is_leaving


@dataclass(frozen=True, slots=True)
class Room:
    """A cluster: what its nodes have, and what is free of it."""

    total: Resources
    free: Resources


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room of a cluster or quota of a group that is kept for a job; others may use it if they end before `until_s`."""

    key: str
    until_s: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """The clusters that are ready, and the reservations of the last round by cluster or queue."""

    clusters: Mapping[str, Room]
    reserved: Mapping[str, Reservation] = field(default_factory=dict)
    can_hold: Callable[[str, str, Option], bool] = lambda _job, _cluster, _option: True
    """Whether all pods of a job would fit on the nodes of a cluster if these were empty."""


class Lack(StrEnum):
    """Causes for which a job waits."""

    PROBLEM = "Problem"
    HELD = "Held"
    NO_QUOTA = "NoQuota"
    """The queue has no quota of a resource in any flavour that the pods can use."""
    TOO_LARGE = "TooLarge"
    """More than its queue may ever have, or than any cluster has."""
    QUOTA = "Quota"
    BEHIND = "Behind"
    """The quota is kept for another job."""
    ROOM = "Room"
    RESERVED = "Reserved"
    """The room is kept for another job."""
    CHEAPER = "Cheaper"
    """It waits for a cheaper cluster, because it ends there in time."""
    RETRY = "Retry"
    """The scheduler found no place a moment ago."""
    CHECK = "Check"
    """An admission check has not said Ready."""
    START = "Start"
    """It has its quota and room, and is about to start."""
    TURN = "Turn"
    """More jobs are before it than are considered at a time."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Why a job waits: of `resource` (of `flavor`) it needs `needed`, and `found` is there."""

    lack: Lack
    flavor: str = ""
    resource: str = ""
    needed: int = 0
    found: int = 0


def short_of(lack: Lack, excess: Excess[Pair], option: Option) -> Waits:
    """Return what a job lacks of the quota that an option exceeds."""
    return Waits(lack, *excess.measure, option.amounts[excess.measure], max(0, excess.free))


@dataclass(frozen=True, slots=True)
class Admitted:
    """A job that may start: what it holds, and the clusters that may have it."""

    holds: Amounts
    clusters: frozenset[str]
    nodes: tuple[PodNodes, ...] = ()


@dataclass(frozen=True, slots=True)
class Eviction:
    """A job that gives way to another one."""

    to: str
    because: str
    refused_by: str = ""
    """The cluster that does not run it."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """The result of a round. `waits` has every job that still waits."""

    admitted: Mapping[str, Admitted]
    evicted: Mapping[str, Eviction]
    waits: Mapping[str, Waits]
    reserved: Mapping[str, Reservation]
    alternatives: Mapping[str, Sequence[Alternative]] = field(default_factory=dict)
    """The best clusters for jobs with a deadline that had a turn and quota."""
