"""`Proposal`: a decision on its way to its write, as far as permits have narrowed it. Pure.

Permits read it, and return it with fewer moves, or with more to record (`chain.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from federation.planning.failover.evictionrecord import Stay, StayReason
from federation.planning.federatedobject.placements import Name
from federation.planning.guard.volumepermit import FREE, OF_TAINTS, VolumePermit
from federation.scheduling.answers import Due
from federation.scheduling.attempt import Annotations, SchedulingAttempt
from federation.scheduling.engine import Decision
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.world import World
from federation.scheduling.worldobjects import ClaimModes


@dataclass(frozen=True, slots=True)
class Proposal:
    """The decision to write. `left` are the replicas that remain in clusters which the guard must not count.

    `is_partial`: moves wait, so the object stays due; `requeue_after_s` is when one of them may go on by time alone.
    """

    attempt: SchedulingAttempt
    due: Due
    decision: Decision
    snapshot: Snapshot
    """The clusters of its project."""
    world: World
    now: datetime
    volumes: VolumePermit = FREE
    """The volumes that it would leave behind."""
    left: Mapping[str, int | None] = field(default_factory=dict)
    chosen: Mapping[str, int | None] = field(default_factory=dict)
    """The placement that the engine chose, before failover limited it."""
    annotations: Annotations = field(default_factory=dict)
    """Annotations to write with the placement."""
    stays: Mapping[str, Stay] = field(default_factory=dict)
    """Why replicas stay in clusters that they have to leave."""
    warnings: Mapping[str, str] = field(default_factory=dict)
    """Messages of the events to record with the placement, by reason."""
    is_partial: bool = False
    requeue_after_s: float | None = None

    @property
    def key(self) -> Name:
        """Namespace and name of the object."""
        metadata = self.attempt.federated["metadata"]
        return metadata.get("namespace") or "", metadata["name"]

    @property
    def wishes(self) -> frozenset[str]:
        """The inputs of the decision that changed, without those that only say that a cluster is lost or drained."""
        return frozenset(self.due.comparison.changed) - OF_TAINTS

    @property
    def modes(self) -> ClaimModes:
        """The access modes of the claims of its namespace."""
        return ClaimModes(self.world.federated_objects, self.key[0])

    @property
    def needs_room(self) -> bool:
        """Whether replicas stay because no other cluster can hold them."""
        return any(stay.reason is StayReason.NO_ROOM for stay in self.stays.values())

    def recording(self, annotations: Annotations) -> "Proposal":
        """Return it with further annotations."""
        return replace(self, annotations={**self.annotations, **annotations})
