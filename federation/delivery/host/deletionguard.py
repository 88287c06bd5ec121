"""The guard over deletions that take data or other objects with them (docs/reference/guard.md).

It is asked before the member objects of a namespace, a CustomResourceDefinition, a volume or a claim are deleted. What
it holds waits by its finalizers until somebody approves; what may go on is recorded in an annotation first, so that a
restart neither holds nor counts it again. A namespace waits for the claims in it. `guard/moveguard.py` judges.
"""

from collections.abc import Callable, Mapping, Sequence

from federation.api import names
from federation.api.federatedtype import Ending, FederatedType
from federation.apimachinery.resources import NAMESPACES, Object
from federation.delivery.members.clusters import clusters_of_interest
from federation.delivery.members.keptstate import KeptState
from federation.delivery.rules.names import EVENT_DELETION_HELD
from federation.guard.moveguard import MoveGuard
from federation.planning.guard.deletions import (
    CLAIM,
    allowed_deletion,
    cause_of,
    holds_among,
    is_deletion,
    is_released,
    remaining_of,
)
from federation.planning.guard.ledger import Cause, GuardOptions, Permit
from federation.planning.guard.moves import Annotations
from federation.planning.guard.record import held_move
from federation.planning.leftovers.strays import is_kept
from federation.runtime.controller import DONE, Key, Result, key_of
from federation.runtime.events import WARNING
from federation.runtime.host import Host

_REMAINING = "sync/remaining"
_RECHECK_S = 1.0
_WRITER = "sync"


class DeletionGuard(MoveGuard):
    """Rules about the deletions of all federated objects. `enqueue` requeues one."""

    def __init__(self, host: Host, options: GuardOptions, kept: KeptState, enqueue: Callable[[Key], None]) -> None:
        super().__init__(host, options)
        self._recorder = host.recorder
        self._enqueue = enqueue
        self.on_approval(self._requeue)
        kept.on_object_gone(self.withdraw)
        host.objects.add_index(_REMAINING, remaining_of)

    async def wait_synced(self) -> None:
        """Return once approvals are known, and count what was recorded before a restart."""
        await self.recall(_is_deleted)

    async def wait(self, key: Key, federated: Object, type_: FederatedType) -> Result | None:
        """Return when to reconcile again while the member objects must stay, None when they may be deleted."""
        lost = frozenset(clusters_of_interest(federated))
        is_counted = is_kept(type_.resource) and type_.ending is not Ending.REMOVE and self.options.share < 1
        if not is_counted or not lost or is_released(federated) or allowed_deletion(federated) is not None:
            return None
        if type_.resource == NAMESPACES and (claims := self._claims_in(federated)):
            return await self._wait_for_claims(key, federated, claims)
        held = held_move(federated)
        if held is not None and not is_deletion(held.cause):
            held = None  # a move that was held before
        if held is not None and self.moves.is_waiting(held):
            return DONE  # its approval requeues it
        judged = self.judge(key, held, self._sizes(federated), lost, dict.fromkeys(lost))
        if judged.permit is Permit.WAIT:
            return Result(requeue_after_s=judged.wait_s)
        await self._annotate(key, federated, judged.annotations)
        if judged.permit is Permit.GO:
            return None
        what = f"{federated['spec']['template'].get('kind')}s"
        await self._report(
            key,
            federated,
            f"more {what} are deleted at a time than the guard allows; this one stays in clusters"
            f" [{','.join(sorted(lost))}] until: {judged.approval_command}",
        )
        return DONE

    def _requeue(self, federated: Object) -> None:
        """Requeue an object of an approved hold if it is its deletion that was held."""
        if _is_deleted(federated):
            self._enqueue(key_of(federated))

    def _sizes(self, federated: Object) -> Mapping[Cause, int]:
        """Return the number of objects at the beginning of the window."""
        cause = cause_of(federated)
        return {cause: len(self._objects.keys_by_index(_REMAINING, str(cause))) + self.moved(cause)}

    def _claims_in(self, federated: Object) -> Sequence[Object]:
        """Return the claims of a namespace whose deletion is not decided yet."""
        namespace = str(federated["spec"]["template"]["metadata"]["name"])
        claims = self._objects.of_kind(CLAIM, namespace)
        return [claim for claim in claims if clusters_of_interest(claim) and allowed_deletion(claim) is None]

    async def _wait_for_claims(self, key: Key, federated: Object, claims: Sequence[Object]) -> Result:
        """Keep a namespace, which would take its claims with it; report when they are held."""
        if holds := holds_among(claims):
            commands = "; ".join(f"fedctl approve {hold} --reason TEXT" for hold in holds)
            text = f"the namespace stays in its clusters while the deletion of claims in it is held, until: {commands}"
            await self._report(key, federated, text)
        return Result(requeue_after_s=_RECHECK_S)

    async def _annotate(self, key: Key, federated: Object, annotations: Annotations) -> None:
        present = federated["metadata"].get("annotations") or {}
        changed = {name: value for name, value in annotations.items() if present.get(name) != value}
        if changed:
            await self._objects.patch(key, federated, {"metadata": {"annotations": changed}}, writer=_WRITER)

    async def _report(self, key: Key, federated: Object, message: str) -> None:
        """Set the condition Propagated, and emit an event when that is news."""
        is_news = await self._objects.set_condition(
            key, names.PROPAGATED, status="False", reason=names.REASON_HELD, message=message, writer=_WRITER
        )
        if is_news:
            self._recorder.event(federated, WARNING, EVENT_DELETION_HELD, message)


def _is_deleted(federated: Object) -> bool:
    return bool(federated["metadata"].get("deletionTimestamp"))
