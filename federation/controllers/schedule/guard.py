"""The guard over decisions, as the schedule controller keeps it: its memory after a restart, and the undo of a move.

`scheduling/permits/guard.py` judges each decision. A PlacementHold, which `holds.py` writes, lists all held moves of
one cause and takes the approval. Reference: docs/reference/guard.md.
"""

from federation.apimachinery.resources import Object
from federation.controllers.schedule.decider import AttemptContext
from federation.controllers.schedule.inputcache import InputCache
from federation.controllers.schedule.names import EVENT_UNDO_REFUSED
from federation.guard.moveguard import MoveGuard
from federation.planning.guard.ledger import GuardOptions
from federation.planning.guard.undo import requested_undo, undo_problem, undone_placement
from federation.runtime.controller import key_of
from federation.runtime.events import WARNING
from federation.runtime.host import Host
from federation.scheduling.engine import Placements
from federation.scheduling.snapshot import Snapshot


class Guard(MoveGuard):
    """The moves of all federated objects. It lives as long as the schedule controller."""

    def __init__(self, host: Host, cache: InputCache, options: GuardOptions) -> None:
        super().__init__(host, options)
        self._recorder = host.recorder
        self._cache = cache
        cache.moves = self.moves

    def on_federated(self, old: Object | None, new: Object | None) -> None:
        """Count what an object recorded before the restart, and forget a deleted one."""
        if new is None:
            self.withdraw(key_of(old or {}))
        elif old is None and not new["metadata"].get("deletionTimestamp"):
            self.remember(new)

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
