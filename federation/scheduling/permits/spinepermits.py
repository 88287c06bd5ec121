"""The permits of the spine, and those of them that need no module: definitions and freezes. Pure.

A chart creates a CustomResourceDefinition and objects of it at once. A member serves the new kind only when it has the
definition and its API was discovered again. A decision before that leaves the member out, and most policies keep such a
decision (`reschedulePolicy`), so that the object would never get there.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from federation.apimachinery.clock import from_rfc3339, is_ahead
from federation.apimachinery.resources import CRDS
from federation.planning.changehold import Hold
from federation.planning.failover.eviction import Placement
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.freezes.changefreeze import Change, find_frozen_move
from federation.planning.freezes.freezeindex import left_s
from federation.planning.guard.losses import held_placement, lost_clusters
from federation.scheduling.answers import Wait
from federation.scheduling.chain import Permit
from federation.scheduling.framework.moving import AVOIDED
from federation.scheduling.names import REASON_AWAITS_DEFINITION, REASON_FROZEN
from federation.scheduling.permits.failover import Failover
from federation.scheduling.permits.guard import VolumesStay, WithinGuard
from federation.scheduling.proposal import Proposal
from federation.scheduling.worldobjects import WorldObjects

WAIT_MAX = timedelta(seconds=30)
"""How long after its creation, or that of its definition, an object waits."""


class DefinitionArrived(Permit):
    """The ready clusters that get the object's definition, and do not serve its kind yet."""

    name = "definition"
    asks_of_failures = True

    def permit(self, proposal: Proposal) -> Proposal | Wait:
        """Wait for them; an object that is placed already does not, and none does when the time is over."""
        decision, attempt, now = proposal.decision, proposal.attempt, proposal.now
        if decision.filtered is None or not decision.filtered.rejected or attempt.current():
            return proposal
        kind = decision.unit.gvk
        lacking = {c.name for c in proposal.snapshot.clusters if c.is_ready and kind not in c.api_types}
        lacking &= decision.filtered.rejected.keys()
        definition = _definition_of(attempt.federated, proposal.world.federated_objects) if lacking else None
        if definition is None or (until := _until(now, attempt.federated, definition)) <= now:
            return proposal
        late = effective_placement(definition) & lacking
        if not late:
            return proposal
        text = f"the definition of its kind is on its way to {', '.join(sorted(late))}"
        return Wait(REASON_AWAITS_DEFINITION, text, (until - now).total_seconds())


def _definition_of(federated: Mapping[str, Any], objects: WorldObjects) -> Mapping[str, Any] | None:
    template = federated["spec"]["template"]
    group, _, _ = str(template["apiVersion"]).rpartition("/")
    for each in objects.of_kind(CRDS.group_kind):
        spec = each["spec"]["template"].get("spec") or {}
        if spec.get("group") == group and (spec.get("names") or {}).get("kind") == template["kind"]:
            return each
    return None


def _until(now: datetime, *objects: Mapping[str, Any]) -> datetime:
    texts = (each["metadata"].get("creationTimestamp") for each in objects)
    times = [from_rfc3339(at) if at else now for at in texts]
    # A server whose clock was ahead must not let the object wait for as long.
    return max((at for at in times if not is_ahead(at, now)), default=now) + WAIT_MAX


class NotFrozen(Permit):
    """A decision of which a ChangeFreeze holds the move."""

    name = "freeze"

    def permit(self, proposal: Proposal) -> Proposal | Wait:
        """Write the decision without its move until the freeze ends."""
        frozen = _find(proposal) if proposal.world.freezes else None
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


PERMITS = (DefinitionArrived(), VolumesStay(), Failover(), NotFrozen(), WithinGuard())
