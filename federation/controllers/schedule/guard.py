"""The guard over decisions. A decision that removes an object from clusters goes on, waits a moment, or is held.

It finds out what a decision counts for; `guard/moveguard.py` judges. A PlacementHold, which `holds.py` writes, lists
all held moves of one cause and takes the approval. Reference: docs/reference/guard.md.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from federation.api import names
from federation.apimachinery.resources import Object
from federation.controllers.schedule.claimmodes import ClaimModes
from federation.controllers.schedule.decider import AttemptContext
from federation.controllers.schedule.inputcache import InputCache
from federation.controllers.schedule.names import EVENT_UNDO_REFUSED
from federation.guard.moveguard import MoveGuard
from federation.planning.federatedobject.placements import PLACED_IN, effective_placement, placement_of
from federation.planning.guard.causes import Mover, blamed_for, causes_of_move
from federation.planning.guard.deletions import is_deletion
from federation.planning.guard.earliervolumes import describe_start
from federation.planning.guard.ledger import Cause, GuardOptions, Permit
from federation.planning.guard.losses import Blame, held_placement, lost_clusters
from federation.planning.guard.record import held_move
from federation.planning.guard.undo import requested_undo, undo_problem, undone_placement
from federation.planning.guard.volumepermit import FREE, VolumePermit
from federation.runtime.controller import key_of
from federation.runtime.events import WARNING
from federation.runtime.host import Host
from federation.scheduling.assessment import Due
from federation.scheduling.attempt import Annotations
from federation.scheduling.engine import Decision, Placements
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.volumefacts import permit_of_decision

_BY_NAMESPACE = "schedule/namespace"


@dataclass(frozen=True, slots=True)
class PermittedPlacement:
    """The placement to write, unless the permit is WAIT, with the guard's annotations; `message` says what is held."""

    permit: Permit
    placements: Placements
    annotations: Annotations
    wait_s: float = 0.0
    message: str = ""


class Guard(MoveGuard):
    """Rules about the decisions of all federated objects. It lives as long as the schedule controller."""

    def __init__(self, host: Host, cache: InputCache, options: GuardOptions) -> None:
        super().__init__(host, options)
        self._recorder = host.recorder
        self._cache = cache
        host.objects.add_index(PLACED_IN, effective_placement)
        host.objects.add_index(_BY_NAMESPACE, _placed_in_namespace)

    def on_federated(self, old: Object | None, new: Object | None) -> None:
        """Count what an object recorded before the restart, and forget a deleted one."""
        if new is None:
            self.withdraw(key_of(old or {}))
        elif old is None and not new["metadata"].get("deletionTimestamp"):
            self.remember(new)

    def permit(self, context: AttemptContext, due: Due, decision: Decision, evicting: AbstractSet[str]) -> VolumePermit:
        """Return which volumes a successful decision would leave behind, and on whose word."""
        held = held_move(context.federated)
        if held is not None and is_deletion(held.cause):
            held = None
        clusters = frozenset[str]() if held is None else held.clusters
        return permit_of_decision(
            context.attempt,
            due,
            decision,
            ClaimModes(self._objects, context.key.namespace),
            evicting=evicting,
            held=clusters,
            approved=clusters if held is not None and self.is_approved(held, clusters) else frozenset(),
        )

    def rule(
        self,
        context: AttemptContext,
        due: Due,
        decision: Decision,
        snapshot: Snapshot,
        left: Placements,
        volumes: VolumePermit = FREE,
    ) -> PermittedPlacement:
        """Return what is written for a successful decision.

        `left` are the replicas that remain in lost and drained clusters: failover limits itself what leaves them.
        `volumes` is what may leave its volumes behind; what waits there is held wherever it is.
        """
        before = _counted(context.attempt.current(), snapshot, left, volumes)
        lost = lost_clusters(before, decision.placements) | volumes.waits.keys()
        go = PermittedPlacement(Permit.GO, decision.placements, self._released(context, decision, volumes))
        blamed = blamed_for(due.comparison.changed, before, lost, volumes, self.options.share)
        if not blamed:
            self.withdraw(context.key)
            return go
        sizes = self._sizes(context, due, lost, blamed)
        held = held_move(context.federated)
        judged = self.judge(context.key, held, sizes, lost, before, needs_approval=bool(volumes.waits))
        if judged.permit is Permit.GO:
            return replace(go, annotations={**judged.annotations, **go.annotations})
        if judged.permit is Permit.WAIT:
            return replace(go, permit=Permit.WAIT, wait_s=judged.wait_s)
        assert judged.held is not None
        reason = f"{judged.held.cause} would move more objects at a time than the guard allows; this one would lose"
        if volumes.waits:
            ways = "; ".join(dict.fromkeys(volumes.waits.values()))
            reason = (
                f"{volumes.volumes} do not move with it, and it would start with empty volumes ({ways}); it would lose"
            )
        clusters = ",".join(sorted(lost))
        message = f"{reason} clusters [{clusters}]. To let them go on: {judged.approval_command}"
        if not context.attempt.current():
            message = describe_start(lost, snapshot.by_name.keys(), decision.placements, judged.approval_command)
            return PermittedPlacement(Permit.HOLD, {}, judged.annotations, message=message)
        placements = held_placement(before, decision.placements, decision.unit.desired_replicas)
        return PermittedPlacement(Permit.HOLD, placements, judged.annotations, message=message)

    def _released(self, context: AttemptContext, decision: Decision, volumes: VolumePermit) -> Annotations:
        """Return the annotation for a move that goes on: an approval holds until all that it is about has left."""
        remaining = volumes.approved & decision.placements.keys() if context.attempt.current() else ()
        held = (context.federated["metadata"].get("annotations") or {}).get(names.HELD_PLACEMENT)
        return {names.HELD_PLACEMENT: held if remaining else None}

    def undo(self, context: AttemptContext, snapshot: Snapshot) -> Placements | None:
        """Return the placement to restore because the user asks to undo the last move, None otherwise."""
        past, attempt = requested_undo(context.federated), context.attempt
        if past is None or attempt.policy is None:
            return None
        left = snapshot.left
        existing = [each.name for each in snapshot.clusters if not each.is_terminating and each.name not in left]
        problem = undo_problem(past, existing, self._clock.now())
        if not problem and not self._cache.annotation_policy.allows(context.key.namespace):
            problem = "annotations may not override policies in this namespace"
        if problem:
            self._recorder.event(context.federated, WARNING, EVENT_UNDO_REFUSED, problem)
            return None
        self.withdraw(context.key)
        wanted = attempt.federated_type.replicas(context.federated["spec"]["template"])
        return undone_placement(past, attempt.current(), wanted)

    def _sizes(
        self, context: AttemptContext, due: Due, lost: frozenset[str], blamed: frozenset[Blame]
    ) -> Mapping[Cause, int]:
        """Return the number of objects by cause, in the order in which one of them is named."""
        ref, type_, profile = due.policy.ref, context.attempt.federated_type, due.policy.profile
        mover = Mover(ref.namespace, ref.name, profile, type_.name, context.key.namespace, context.project)
        return {cause: self._size(cause, context, due) for cause in causes_of_move(blamed, mover, lost)}

    def _size(self, cause: Cause, context: AttemptContext, due: Due) -> int:
        """Return how many objects there are of a cause."""
        match cause.kind:
            case "Namespace" | "Project":
                return len(self._objects.keys_by_index(_BY_NAMESPACE, context.key.namespace))
            case "SchedulingProfile":
                return len(self._cache.using_profile(due.policy.profile))
            case "FederatedTypeConfig":
                return len(self._objects.keys_of_type(context.attempt.federated_type))
            case "FederatedCluster":
                return len(self._objects.keys_by_index(PLACED_IN, cause.name))
            case _:
                return self._cache.count_bound_to(due.policy.ref)


def _counted(current: Placements, snapshot: Snapshot, left: Placements, volumes: VolumePermit) -> dict[str, int | None]:
    """Return the placement that a decision is compared with.

    It has no clusters that leave or have left, unless volumes are there, and of lost and drained ones what remains.
    """
    existing = {cluster.name for cluster in snapshot.clusters if not cluster.is_terminating} | volumes.waits.keys()
    remains = {name: count for name, count in left.items() if name not in volumes.waits}
    before = {name: count for name, count in current.items() if name in existing} | remains
    return {name: count for name, count in before.items() if name not in remains or count != 0}


def _placed_in_namespace(federated: Object) -> tuple[str, ...]:
    """Return the namespace of an object that the scheduler has placed, as the values of an index."""
    return (federated["metadata"].get("namespace", ""),) if placement_of(federated, names.GLOBAL_SCHEDULER) else ()
