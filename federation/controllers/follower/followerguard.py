"""The guard over followers that a policy takes from running workloads (docs/reference/guard.md).

A held follower stays in the clusters. `guard/moveguard.py` judges.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from federation.api import names
from federation.apimachinery.resources import Object
from federation.controllers.follower.names import EVENT_FOLLOWERS_HELD
from federation.guard.moveguard import MoveGuard
from federation.planning.followers.abandoned import abandoned_clusters, causes_of
from federation.planning.followers.leaderplan import identity_of
from federation.planning.followers.references import Identity
from federation.planning.guard.ledger import GuardOptions, Permit
from federation.planning.guard.moves import Annotations
from federation.planning.guard.record import held_move
from federation.runtime.controller import Key, key_of
from federation.runtime.events import WARNING
from federation.runtime.host import Host


@dataclass(frozen=True, slots=True)
class PermittedFollowing:
    """The clusters that leaders keep the follower in, and annotations to write. With `wait_s` above 0: ask again."""

    kept: dict[Identity, frozenset[str]] = field(default_factory=dict)
    annotations: Annotations = field(default_factory=dict)
    wait_s: float = 0.0


class FollowerGuard(MoveGuard):
    """Rules about the followers of all workloads. `enqueue` requeues one."""

    def __init__(self, host: Host, options: GuardOptions, enqueue: Callable[[Key], None]) -> None:
        super().__init__(host, options, annotation=names.HELD_FOLLOWING)
        self._recorder = host.recorder
        self.on_approval(lambda federated: enqueue(key_of(federated)))

    def rule(
        self, key: Key, federated: Object, leaving: frozenset[str], leaders: Iterable[Object]
    ) -> PermittedFollowing:
        """Return what the guard permits for a follower that leaves these clusters; `leaders` are those that it had."""
        was_held = names.HELD_FOLLOWING in (federated["metadata"].get("annotations") or {})
        abandoned = self._abandoned(identity_of(federated), leaving, leaders)
        if not abandoned or self.options.share >= 1:
            self.withdraw(key)
            return PermittedFollowing(annotations={names.HELD_FOLLOWING: None} if was_held else {})
        sizes = self.sizes(federated, causes_of(federated))
        lost = frozenset[str]().union(*abandoned.values())
        judged = self.judge(key, held_move(federated, names.HELD_FOLLOWING), sizes, lost, {})
        if judged.permit is Permit.WAIT:
            return PermittedFollowing(wait_s=judged.wait_s)
        if judged.permit is Permit.GO or judged.held is None:
            return PermittedFollowing(annotations=judged.annotations)
        if not was_held:
            text = (
                "policies would take more followers from their workloads at a time than the guard allows; this one"
                f" stays in clusters [{','.join(sorted(lost))}]. To let them go on: {judged.approval_command}"
            )
            self._recorder.event(federated, WARNING, EVENT_FOLLOWERS_HELD, text)
        return PermittedFollowing(abandoned, judged.annotations)

    def _abandoned(
        self, follower: Identity, leaving: frozenset[str], leaders: Iterable[Object]
    ) -> dict[Identity, frozenset[str]]:
        """Return the clusters by leader that stays in them and refers to the follower."""
        found: dict[Identity, frozenset[str]] = {}
        for leader in leaders if leaving else ():
            type_ = self._objects.type_of(leader)
            clusters = abandoned_clusters(
                leaving,
                follower,
                leader,
                type_,
                self._objects.types.for_group_kind,
                lambda identity: self._objects.of_source(*identity),
            )
            if clusters:
                found[identity_of(leader)] = clusters
        return found
