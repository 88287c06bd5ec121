"""The guard over decisions: volumes that stay behind, and how many objects one cause may move. Pure.

A decision that removes an object from clusters goes on, waits a moment, or is held. A PlacementHold lists all held
moves of one cause and takes the approval; `planning/guard/moves.py` judges. Reference: docs/reference/guard.md.
"""

from dataclasses import replace

from federation.api import names
from federation.planning.guard import ledger
from federation.planning.guard.causes import Mover, blamed_for, causes_of_move
from federation.planning.guard.deletions import is_deletion
from federation.planning.guard.earliervolumes import describe_start
from federation.planning.guard.losses import held_placement, lost_clusters
from federation.planning.guard.moves import Annotations, Judged
from federation.planning.guard.record import held_move
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
        volumes = permit_of_decision(
            proposal.attempt,
            proposal.due,
            proposal.decision,
            proposal.modes,
            evicting=proposal.world.evictions.clusters.by_name.keys(),
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
        before, after = _counted(proposal), proposal.decision.placements
        lost = lost_clusters(before, after) | volumes.waits.keys()
        released = _released(proposal)
        blamed = blamed_for(proposal.due.comparison.changed, before, lost, volumes, moves.options.share)
        if not blamed:
            moves.withdraw(proposal.key)
            return _with_guarded(proposal, released)
        policy, type_name = proposal.due.policy, attempt.federated_type.name
        ref, project = policy.ref, proposal.world.scoped.projects.of(proposal.key[0])
        owner = project.name if project is not None else ""
        mover = Mover(ref.namespace, ref.name, policy.profile, type_name, proposal.key[0], owner)
        sizes = {each: proposal.world.count(each, attempt, policy) for each in causes_of_move(blamed, mover, lost)}
        needs_approval, held = bool(volumes.waits), held_move(attempt.federated)
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


def _counted(proposal: Proposal) -> dict[str, int | None]:
    """Return the placement that a decision is compared with.

    It has no clusters that leave or have left, unless volumes are there, and of lost and drained ones what remains.
    """
    waits, current = proposal.volumes.waits, proposal.attempt.current()
    existing = {cluster.name for cluster in proposal.snapshot.clusters if not cluster.is_terminating} | waits.keys()
    remains = {name: count for name, count in proposal.left.items() if name not in waits}
    before = {name: count for name, count in current.items() if name in existing} | remains
    return {name: count for name, count in before.items() if name not in remains or count != 0}
