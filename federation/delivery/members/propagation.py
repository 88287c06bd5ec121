"""One propagation of a federated object to its clusters: its inputs, and the results by cluster.

A `Propagation` lives as long as one reconcile. `clusterdispatch.py` and `memberoperations.py` record results in it;
`reconcile.py` and `deletion.py` publish them. It does no I/O.
"""

import asyncio
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import Object
from federation.delivery.members.operations import Outcome
from federation.delivery.rules.memberrecord import MemberKey, generation_of
from federation.delivery.rules.status import ClusterStatus, clusters_of
from federation.planning.federatedobject.finished import evidence_by_cluster
from federation.planning.rendering.drift import is_subset
from federation.planning.rendering.memberobject import Renderer
from federation.planning.rendering.verdicts import Verdict
from federation.planning.rollout.steps import Step
from federation.runtime.controller import Key

BRIEF_S = 1.0
"""Member objects and followers usually appear or disappear within this time; a shorter wait is not published."""
_MISSED_CHANGES = "it has finished there, so changes of its spec are not delivered; create it again to run it again"


@dataclass(frozen=True, slots=True)
class StartedOperation:
    """An operation that this propagation started."""

    cluster: str
    future: "asyncio.Future[Outcome]"


@dataclass(slots=True)
class Propagation:
    """The federated object of one reconcile, and what the reconcile found in each cluster."""

    key: Key
    federated: Object
    type_: FederatedType
    annotations: Mapping[str, str]
    renderer: Renderer
    steps: dict[str, Step] = field(default_factory=dict)
    waits: dict[str, tuple[ClusterStatus, str]] = field(default_factory=dict)
    """The status and message of clusters whose step is not the last one."""
    statuses: dict[str, ClusterStatus] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    finished: dict[str, Object] = field(default_factory=dict)
    """The evidence that the object has finished, by cluster; it begins with what is published."""
    held: dict[str, Verdict] = field(default_factory=dict)
    """The clusters that get nothing because of the host's admission."""
    unjudged: set[str] = field(default_factory=set)
    """The clusters whose objects the host must be asked about before they are written."""
    unseen: set[str] = field(default_factory=set)
    """The clusters whose cache is incomplete. They get the object, which is new, if they do not have it."""
    lacking: AbstractSet[str] = frozenset()
    """The clusters that answered an earlier reconcile, too late for it, that they do not have the object."""
    absent: set[str] = field(default_factory=set)
    """The clusters without a complete cache that answered that they do not have the object."""
    started: list[StartedOperation] = field(default_factory=list)
    has_ended: bool = False
    """Whether the reconcile published its results. A later result of an operation requeues the object."""
    has_brief_wait: bool = False
    """Whether a write waits for a follower that is expected at once; publishing that would cost a write for nothing."""
    resources_updated: bool = False
    recheck_after_s: float | None = None

    def recheck(self, after_s: float) -> None:
        """Requeue the object after this time, or earlier when an earlier time was set."""
        self.recheck_after_s = after_s if self.recheck_after_s is None else min(self.recheck_after_s, after_s)

    def record(self, cluster: str, status: ClusterStatus, live: Object | None = None, message: str = "") -> None:
        """Record a cluster's status, with the generation of the member object that it describes."""
        self.statuses[cluster] = status
        self.generations[cluster] = generation_of(live)
        if message:
            self.messages[cluster] = message

    @property
    def published(self) -> Mapping[str, Mapping[str, Any]]:
        """The published status of each cluster that may have the object."""
        found = clusters_of(self.federated)
        return {name: found[name] for name in found.keys() - self.lacking} if self.lacking else found

    def record_written(self, cluster: str, live: Object | None) -> None:
        """Record that the member object is as its step says."""
        status, message = self.waits.get(cluster, (ClusterStatus.OK, ""))
        if live is not None and self._misses_changes(cluster, live):
            status, message = ClusterStatus.FINISHED, _MISSED_CHANGES
        self.record(cluster, status, live, message)

    def _misses_changes(self, cluster: str, live: Object) -> bool:
        """Return whether the object has finished with another content than it should have by now."""
        if (evidence := self.finished.get(cluster)) is None:
            return False
        desired = self.renderer.render(cluster)
        content = {key: value for key, value in desired.object.items() if key != "metadata"}
        return evidence.get("templateHash") != desired.hash and not is_subset(content, live)

    def member_key(self, cluster: str) -> MemberKey:
        """Return the key of the member object in a cluster."""
        return member_key(self.federated, self.type_, cluster)

    def describe(self, clusters: Iterable[str]) -> str:
        """Return one line with the status of each cluster and its message."""
        return "; ".join(
            f"{cluster}: {self.statuses[cluster].value}"
            + (f" ({message})" if (message := self.messages.get(cluster)) else "")
            for cluster in sorted(clusters)
        )


def member_key(federated: Object, type_: FederatedType, cluster: str) -> MemberKey:
    """Return the key of a federated object's member object in a cluster."""
    name = str(federated["spec"]["template"]["metadata"]["name"])
    namespace = federated["metadata"].get("namespace", "") if type_.resource.namespaced else ""
    return MemberKey(cluster, type_.resource, namespace, name)


def begin_propagation(key: Key, federated: Object, type_: FederatedType) -> Propagation:
    """Return a propagation without results."""
    annotations = federated["metadata"].get("annotations") or {}
    finished = evidence_by_cluster(federated)
    return Propagation(key, federated, type_, annotations, Renderer(federated, type_), finished=finished)
