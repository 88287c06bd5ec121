"""The guard over decisions: volumes that stay behind, and how many objects one cause may move. Pure.

A decision that removes an object from clusters goes on, waits a moment, or is held. A PlacementHold lists all held
moves of one cause and takes the approval; `planning/guard/moves.py` judges. Reference: docs/reference/guard.md.
Decision: docs/decisions/0281-what-is-held-stays-held.md
"""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from federation.api import names
from federation.planning.failover.eviction import Placement
from federation.planning.guard import ledger
from federation.planning.guard.causes import Mover, blamed_for, causes_of_move
from federation.planning.guard.deletions import is_deletion
from federation.planning.guard.earliervolumes import describe_start
from federation.planning.guard.ledger import Cause
from federation.planning.guard.losses import held_placement, lost_clusters
from federation.planning.guard.moves import Annotations, Judged
from federation.planning.guard.record import HeldMove, held_move
from federation.scheduling.answers import Wait
from federation.scheduling.chain import Permit
from federation.scheduling.proposal import Proposal
from federation.scheduling.volumefacts import permit_of_decision


class VolumesStay(Permit):
    """The volumes that the decision would leave behind, and on whose word."""

    name = "volumes"

    def permit(self, proposal: Proposal) -> Proposal:
        """Return the decision with it: failover keeps what stays, the guard holds what waits."""
        moves, held = proposal.world.moves, held_move(proposal.attempt.federated)
        if held is not None and is_deletion(held.cause):
            held = None
        clusters = frozenset[str]() if held is None else held.clusters
        evicting = proposal.world.evictions.clusters.by_name
        volumes = permit_of_decision(
            proposal.attempt,
            proposal.due,
            proposal.decision,
            proposal.modes,
            evicting=evicting.keys(),
            drained={name for name, each in evicting.items() if each.is_drained and each.is_ready},
            held=clusters,
            approved=clusters if held is not None and moves.is_approved(held, clusters) else frozenset(),
        )
        return replace(proposal, volumes=volumes)


class WithinGuard(Permit):
    """A decision that takes an object away from clusters, with others of the same cause."""

    name = "guard"

    def permit(self, proposal: Proposal) -> Proposal | Wait:
        """Let it go on, wait for others of its cause, or be held. What waits for volumes is held wherever it is."""
        attempt, volumes, moves = proposal.attempt, proposal.volumes, proposal.world.moves
        held = held_move(attempt.federated)
        before, after = _counted(proposal, held)
        lost = lost_clusters(before, after) | volumes.waits.keys()
        released = _released(proposal)
        causes = _causes(proposal, frozenset(proposal.due.comparison.changed), before, lost)
        if not causes:
            moves.withdraw(proposal.key)
            return _with_guarded(proposal, released)
        sizes = {each: proposal.world.count(each, attempt, proposal.due.policy) for each in causes}
        needs_approval = bool(volumes.waits)
        judged = moves.judge(proposal.key, held, sizes, lost, before, proposal.now, needs_approval=needs_approval)
        if judged.permit is ledger.Permit.GO:
            return _with_guarded(proposal, {**judged.annotations, **released})
        if judged.permit is ledger.Permit.WAIT:
            return Wait("", "further moves of its cause may follow", judged.wait_s)
        placements = held_placement(before, after, proposal.due.unit.desired_replicas) if attempt.current() else {}
        annotations = {**judged.annotations, **proposal.annotations}
        return Wait(
            names.REASON_HELD,
            _message(proposal, judged, lost),
            proposal.requeue_after_s or None,
            placements,
            annotations,
        )


def _with_guarded(proposal: Proposal, annotations: Annotations) -> Proposal:
    return replace(proposal, annotations={**annotations, **proposal.annotations})


def _message(proposal: Proposal, judged: Judged, lost: frozenset[str]) -> str:
    """Return why the move is held, and what lets it go on."""
    assert judged.held is not None
    volumes = proposal.volumes
    if not proposal.attempt.current():
        visible, chosen = proposal.snapshot.by_name.keys(), proposal.decision.placements
        return describe_start(lost, visible, chosen, judged.approval_command)
    reason = f"{judged.held.cause} would move more objects at a time than the guard allows; this one would lose"
    if volumes.waits:
        ways = "; ".join(dict.fromkeys(volumes.waits.values()))
        reason = f"{volumes.volumes} do not move with it, and it would start with empty volumes ({ways}); it would lose"
    return f"{reason} clusters [{','.join(sorted(lost))}]. To let them go on: {judged.approval_command}"


def _released(proposal: Proposal) -> Annotations:
    """Return the annotation for a move that goes on: an approval holds until all that it is about has left."""
    attempt, after = proposal.attempt, proposal.decision.placements
    remaining = proposal.volumes.approved & after.keys() if attempt.current() else ()
    held = (attempt.federated["metadata"].get("annotations") or {}).get(names.HELD_PLACEMENT)
    return {names.HELD_PLACEMENT: held if remaining else None}


def _causes(
    proposal: Proposal, changed: frozenset[str], before: Placement, lost: AbstractSet[str]
) -> tuple[Cause, ...]:
    """Return what a move away from the clusters `lost` counts for, nothing if the guard does not judge it."""
    world, namespace = proposal.world, proposal.key[0]
    blamed = blamed_for(changed, before, lost, proposal.volumes, world.moves.options.share)
    policy, project = proposal.due.policy, world.scoped.projects.of(namespace)
    mover = Mover(
        policy.ref.namespace,
        policy.ref.name,
        policy.profile,
        proposal.attempt.federated_type.name,
        namespace,
        project.name if project is not None else "",
    )
    return tuple(causes_of_move(blamed, mover, lost))


def _counted(proposal: Proposal, held: HeldMove | None) -> tuple[Placement, Placement]:
    """Return the placements that are compared.

    The one before has no clusters that leave or have left, unless volumes are there, and of lost and drained ones what
    remains. A move that is held stays held whatever becomes of its clusters: it is compared as if nothing were lost.
    """
    waits, current = proposal.volumes.waits, proposal.attempt.current()
    existing = {cluster.name for cluster in proposal.snapshot.clusters if not cluster.is_terminating} | waits.keys()
    before = {name: count for name, count in current.items() if name in existing}
    if held is not None and _is_still_held(proposal, held, before):
        return before, proposal.chosen
    remains = {name: count for name, count in proposal.left.items() if name not in waits}
    before |= remains
    counted = {name: count for name, count in before.items() if name not in remains or count != 0}
    return counted, proposal.decision.placements


def _is_still_held(proposal: Proposal, held: HeldMove, before: Placement) -> bool:
    """Return whether the cause of a held move is still there, without an approval."""
    if is_deletion(held.cause) or proposal.world.moves.is_approved(held, held.clusters):
        return False
    lost = lost_clusters(before, proposal.chosen)
    return bool(lost and proposal.wishes) and held.cause in _causes(proposal, proposal.wishes, before, lost)
