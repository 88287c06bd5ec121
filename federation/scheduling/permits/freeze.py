"""Freezes of decisions: a ChangeFreeze holds a move as a whole, and lets the rest of the decision go on. Pure."""

from collections.abc import Mapping
from functools import partial

from federation.planning.changehold import Hold
from federation.planning.freezes.changefreeze import Change, find_frozen_move
from federation.planning.freezes.freezeindex import left_s
from federation.planning.guard.losses import held_placement, lost_clusters
from federation.scheduling.answers import Wait
from federation.scheduling.chain import Permit
from federation.scheduling.framework.moving import AVOIDED
from federation.scheduling.names import REASON_FROZEN
from federation.scheduling.proposal import Proposal

Placement = Mapping[str, int | None]


class NotFrozen(Permit):
    """A decision of which a ChangeFreeze holds the move."""

    name = "freeze"

    def permit(self, proposal: Proposal) -> Proposal | Wait:
        """Write the decision without its move until the freeze ends."""
        frozen = _find(proposal)
        waiting = proposal.world.freezes.waiting
        if frozen is None:
            waiting.discard(proposal.key)
            return proposal
        proposal.world.withdraw(proposal.key)
        waiting.add(proposal.key)
        before, after, _ = _compared(proposal)
        leaving = ",".join(sorted(lost_clusters(before, after)))
        return Wait(
            REASON_FROZEN,
            f"{frozen.message}; it would leave clusters [{leaving}]",
            left_s(frozen, proposal.now),
            held_placement(before, after, proposal.due.unit.desired_replicas),
        )


def _find(proposal: Proposal) -> Hold | None:
    """Return the freeze that holds the move, None if nothing moves or nothing holds it."""
    if not proposal.world.freezes:
        return None
    before, after, is_evicting = _compared(proposal)
    find = partial(_find_in, proposal)
    return find_frozen_move(before, after, proposal.due.unit.desired_replicas, find, is_evicting=is_evicting)


def _compared(proposal: Proposal) -> tuple[Placement, Placement, bool]:
    """Return the placement now and then, and whether failover takes replicas away.

    What failover keeps for the moment is a part of the move that somebody wishes: a freeze holds that as a whole.
    """
    before, after = proposal.attempt.current(), proposal.decision.placements
    is_evicting = bool(lost_clusters(before, after) & (proposal.left.keys() | AVOIDED.of(proposal.due.unit).keys()))
    if proposal.stays and proposal.wishes and not is_evicting:
        after = proposal.chosen
    return before, after, is_evicting


def _find_in(proposal: Proposal, cluster: str, change: Change) -> Hold | None:
    found = proposal.world.clusters.snapshot().by_name.get(cluster)
    labels = {} if found is None else found.labels
    return proposal.world.freezes.find(proposal.attempt.federated, labels, change, proposal.now)
