"""One propagation of a federated object to its clusters: what it aims at, and the decisions and results by cluster.

A `Propagation` lives as long as one reconcile. `clusterdelivery.py` notes the decisions in it, `memberoperations.py`
the results of operations; `publication.py` and `deletion.py` publish them. It does no I/O.
"""

import asyncio
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import Object
from federation.delivery.members.operations import Outcome
from federation.delivery.rules.content import Subject, settled_status
from federation.delivery.rules.decision import Decision
from federation.delivery.rules.memberrecord import generation_of
from federation.delivery.rules.status import ClusterStatus, earlier_pods_of
from federation.planning.accounts.names import QUOTA_CLAIM
from federation.planning.federatedobject.finished import (
    evidence_by_cluster,
    may_finish,
    run_of,
    started,
    started_by_cluster,
)
from federation.planning.rendering.memberobject import Renderer
from federation.planning.status.completeness import may_run_earlier_pods
from federation.planning.steps.steps import Step
from federation.runtime.controller import Key
from federation.scheduling.names import QUEUE_ADMISSION

BRIEF_S = 1.0
"""Member objects and followers usually appear or disappear within this time; a shorter wait is not published."""


@dataclass(frozen=True, slots=True)
class Aim:
    """The aim of one reconcile: the object, and its clusters."""

    key: Key
    subject: Subject
    selected: AbstractSet[str] = frozenset()
    recorded: AbstractSet[str] = frozenset()
    published: AbstractSet[str] = frozenset()
    """The clusters that the status names, as far as they may have the object."""
    steps: Mapping[str, Step] = field(default_factory=dict)
    """The steps of a divided workload, or of one with waves."""
    waits: Mapping[str, tuple[ClusterStatus, str]] = field(default_factory=dict)
    """The status and message of clusters whose step is not the last one."""
    run: str = ""
    """The id of this run, "" for an object that does not run to completion."""
    is_last_look: bool = False
    """Whether the object is deleted and no cache shows it any more: then the members themselves are asked."""

    @property
    def owner(self) -> str:
        """The uid of a federated object that is being deleted, "" if it may be written again."""
        return str(self.subject.federated["metadata"].get("uid", "")) if self.is_deleted else ""

    @property
    def is_deleted(self) -> bool:
        """Whether the federated object is being deleted."""
        return bool(self.subject.federated["metadata"].get("deletionTimestamp"))


class Known(NamedTuple):
    """Facts about an object in one cluster that no cache and no record has."""

    finished: Mapping[str, Any] | None = None
    """The published evidence that it has finished there."""
    started: Mapping[str, Any] | None = None
    """The published record that it was there in this run."""
    found: Object | None = None
    """The object of ours that the member answered to have, although its cache may not show it."""
    is_absent: bool = False
    """Whether the member answered that it lacks the object."""


class Result(NamedTuple):
    """The published result for a cluster: its status, the generation of the described member object, and the reason."""

    status: ClusterStatus
    generation: int
    message: str


COUNTED = frozenset((QUOTA_CLAIM, QUEUE_ADMISSION))
"""The annotations of objects whose pods quotas and queues count as they run."""


@dataclass(slots=True)
class StartedOperation:
    """An operation that this propagation started."""

    cluster: str
    future: "asyncio.Future[Outcome]"
    is_recorded: bool = False
    """Whether its result is recorded: callbacks run an iteration of the event loop after the future is done."""


@dataclass(slots=True)
class Propagation:
    """The decisions and results of one reconcile."""

    aim: Aim
    decisions: dict[str, Decision] = field(default_factory=dict)
    """The last decision by cluster."""
    results: dict[str, Result] = field(default_factory=dict)
    """The result by cluster; an operation that ends replaces the result of its decision."""
    finished: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The evidence that the object has finished, by cluster; it begins with what is published."""
    started_runs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The record that the object was there in this run, by cluster, of kinds that run to completion."""
    earlier_pods: set[str] = field(default_factory=set)
    """The clusters that may run pods of an earlier template, of objects that a quota or queue counts."""
    absent: set[str] = field(default_factory=set)
    """The clusters that answered this reconcile that they do not have the object."""
    found: dict[str, Object] = field(default_factory=dict)
    """The objects of clusters that answered this reconcile that they have it, whatever their caches show."""
    started: list[StartedOperation] = field(default_factory=list)
    has_ended: bool = False
    """Whether the reconcile published its results. A later result of an operation requeues the object."""
    has_written: bool = False
    """Whether an operation has changed a member object."""
    recheck_after_s: float | None = None

    @property
    def federated(self) -> Object:
        """The federated object."""
        return self.aim.subject.federated

    @property
    def statuses(self) -> dict[str, ClusterStatus]:
        """The status by cluster."""
        return {cluster: result.status for cluster, result in self.results.items()}

    def recheck(self, after_s: float | None) -> None:
        """Requeue the object after this time, or earlier when an earlier time was set."""
        if after_s is not None:
            self.recheck_after_s = after_s if self.recheck_after_s is None else min(self.recheck_after_s, after_s)

    def record(self, cluster: str, status: ClusterStatus, live: Object | None = None, message: str = "") -> None:
        """Record a cluster's status, with the generation of the member object that it describes."""
        if live is not None:
            is_counted = not COUNTED.isdisjoint(self.federated["metadata"].get("annotations") or ())
            has_earlier = is_counted and may_run_earlier_pods(self.aim.subject.type_.resource, live)
            (self.earlier_pods.add if has_earlier else self.earlier_pods.discard)(cluster)
        self.results[cluster] = Result(status, generation_of(live), message)

    def record_written(self, cluster: str, live: Object | None) -> None:
        """Record that the member object is as its step says."""
        subject, aim = self.aim.subject, self.aim
        status, message = settled_status(subject, cluster, live, aim.waits.get(cluster), self.finished.get(cluster))
        self.record(cluster, status, live, message)
        if aim.run and live is not None:
            self.started_runs[cluster] = started(aim.run, live)

    def known(self, cluster: str) -> Known:
        """Return what this reconcile knows of the object in a cluster."""
        finished, started_run = self.finished.get(cluster), self.started_runs.get(cluster)
        return Known(finished, started_run, self.found.get(cluster), is_absent=cluster in self.absent)

    def describe(self, clusters: Iterable[str]) -> str:
        """Return one line with the status of each cluster and its message."""
        found = ((cluster, self.results[cluster]) for cluster in sorted(clusters))
        return "; ".join(
            f"{cluster}: {result.status.value}" + (f" ({result.message})" if result.message else "")
            for cluster, result in found
        )


def begin_propagation(key: Key, federated: Object, type_: FederatedType, **aim: Any) -> Propagation:
    """Return a propagation without decisions."""
    subject = Subject(federated, type_, Renderer(federated, type_))
    annotations = federated["metadata"].get("annotations") or {}
    run = run_of(federated) if may_finish(federated["spec"]["template"]) else ""
    return Propagation(
        Aim(key, subject, run=run, **aim),
        finished=dict(evidence_by_cluster(federated)),
        started_runs=dict(started_by_cluster(federated, run)),
        earlier_pods=earlier_pods_of(federated) if not COUNTED.isdisjoint(annotations) else set(),
    )
