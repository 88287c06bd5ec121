"""The guard over overrides: a policy that would lower the replicas of many objects is held (docs/reference/guard.md).

A held object keeps its earlier overrides in the clusters that would lose replicas. `guard/moveguard.py` judges.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import Object
from federation.guard.moveguard import MoveGuard
from federation.planning.guard.ledger import GuardOptions, Permit
from federation.planning.guard.moves import Annotations
from federation.planning.guard.record import held_move
from federation.planning.guard.shrinking import causes_of, shrunk_clusters
from federation.planning.overrides.policies import Policy
from federation.runtime.controller import Key, key_of
from federation.runtime.host import Host


@dataclass(frozen=True, slots=True)
class PermittedOverrides:
    """Additional writes: the clusters that keep their stored overrides, and annotations.

    With `wait_s` above 0 nothing is written, and the guard is asked again after that time. `message` says what is held.
    """

    kept: frozenset[str] = frozenset()
    annotations: Annotations = field(default_factory=dict)
    wait_s: float = 0.0
    message: str = ""

    @property
    def changes_plan(self) -> bool:
        """Whether the overrides are to be planned again."""
        return bool(self.kept or self.annotations)


class OverrideGuard(MoveGuard):
    """Rules about the overrides of all federated objects. `enqueue` requeues one."""

    def __init__(self, host: Host, options: GuardOptions, enqueue: Callable[[Key], None]) -> None:
        super().__init__(host, options, annotation=names.HELD_OVERRIDES)
        self.on_approval(lambda federated: enqueue(key_of(federated)))

    def lets_pass(self, key: Key, federated: Object, type_: FederatedType, patch: Object) -> bool:
        """Return whether the patch needs no permit: nothing is held, and no cluster would lose replicas."""
        if names.HELD_OVERRIDES in (federated["metadata"].get("annotations") or {}) or self._shrunk(
            federated, type_, patch
        ):
            return False
        self.withdraw(key)
        return True

    def rule(
        self, key: Key, federated: Object, type_: FederatedType, policies: Sequence[Policy], patch: Object | None
    ) -> PermittedOverrides:
        """Return what the guard permits of the patch that stores the overrides of the policies."""
        shrunk = self._shrunk(federated, type_, patch or {})
        if not shrunk:
            self.withdraw(key)
            was_held = names.HELD_OVERRIDES in (federated["metadata"].get("annotations") or {})
            return PermittedOverrides(annotations={names.HELD_OVERRIDES: None} if was_held else {})
        sizes = self.sizes(federated, causes_of(federated, [str(policy.reference) for policy in policies]))
        judged = self.judge(key, held_move(federated, names.HELD_OVERRIDES), sizes, shrunk, {})
        if judged.permit is Permit.WAIT:
            return PermittedOverrides(wait_s=judged.wait_s)
        if judged.permit is Permit.GO or judged.held is None:
            return PermittedOverrides(annotations=judged.annotations)
        message = (
            f"{judged.held.cause} would lower the replicas of more objects at a time than the guard allows; this one"
            f" keeps its earlier overrides in clusters [{','.join(sorted(shrunk))}]. To let them go on:"
            f" {judged.approval_command}"
        )
        return PermittedOverrides(shrunk, judged.annotations, message=message)

    def _shrunk(self, federated: Object, type_: FederatedType, patch: Object) -> frozenset[str]:
        return shrunk_clusters(federated, type_, patch) if self.options.share < 1 else frozenset()
