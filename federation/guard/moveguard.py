"""The common part of all guards: counting moves, recording held ones, and reading their approvals.

`controllers/schedule` asks about decisions, `controllers/override` about replicas that overrides lower,
`controllers/follower` about followers that leave their workloads, and `delivery` about deletions of data. The
arithmetic is in `planning/guard`. The annotations of the federated objects are the memory: after a restart they are
read again, so nothing held goes on and the window is counted further. `controllers/schedule` writes the PlacementHolds.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from federation.api import names
from federation.api.resources import PLACEMENT_HOLDS
from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.resources import Object, group_kind_of
from federation.planning.guard.ledger import Cause, GuardOptions, Ledger, Permit
from federation.planning.guard.record import HeldMove, PastMove, held_move, held_moves, held_text, past_move, past_text
from federation.runtime.controller import Key, key_of
from federation.runtime.host import Host

Annotations = dict[str, str | None]
BY_HOLD = "guard/hold"
"""The index of federated objects by the PlacementHolds that they wait for."""
BY_RECORD = "guard/record"
"""The index of federated objects by the annotations that guards left on them."""
_RECORDS = (names.HELD_PLACEMENT, names.HELD_OVERRIDES, names.HELD_FOLLOWING, names.PREVIOUS_PLACEMENT)
_SLUG_LENGTH_MAX = 40


@dataclass(frozen=True, slots=True)
class Judged:
    """The permit for one move, with the annotations to write for it; for WAIT when to ask again."""

    permit: Permit
    annotations: Annotations
    wait_s: float = 0.0
    held: HeldMove | None = None

    @property
    def approval_command(self) -> str:
        """The command that lets a held move go on."""
        return f"fedctl approve {self.held.hold} --reason TEXT" if self.held is not None else ""


class MoveGuard:
    """Judges moves of federated objects. It lives as long as its controller.

    `annotation` is where a held move is recorded. Only moves of placements are recorded when they go on.
    """

    def __init__(self, host: Host, options: GuardOptions, *, annotation: str = names.HELD_PLACEMENT) -> None:
        self.options = options
        self._objects = host.objects
        self._annotation = annotation
        self._clock = host.clock
        self._holds = host.informers.for_resource(PLACEMENT_HOLDS)
        self._ledger: Ledger[Key] = Ledger(options)
        self._open: dict[Cause, str] = {}
        """The PlacementHold that takes further moves of a cause, until it is approved."""
        host.objects.add_index(BY_HOLD, holds_of)
        host.objects.add_index(BY_RECORD, records_of)

    def on_approval(self, requeue: Callable[[Object], None]) -> None:
        """Call the function with each federated object of a hold that is approved."""

        def handle(old: Object | None, new: Object | None) -> None:  # noqa: ARG001  # a handler's signature
            if new is not None and new["spec"].get("approval"):
                for federated in self._objects.by_index(BY_HOLD, new["metadata"]["name"]):
                    requeue(federated)

        self._holds.add_handler(handle)

    async def recall(self, is_counted: Callable[[Object], bool] = lambda _: True) -> None:
        """Count what the objects recorded before a restart, once it is known what was approved since."""
        await self._holds.wait_synced()
        recorded = [self._annotation]
        if self._annotation == names.HELD_PLACEMENT:
            recorded.append(names.PREVIOUS_PLACEMENT)
        found = (federated for record in recorded for federated in self._objects.by_index(BY_RECORD, record))
        for federated in {key_of(each): each for each in found if is_counted(each)}.values():
            self.remember(federated)

    def sizes(self, federated: Object, causes: Iterable[Cause]) -> dict[Cause, int]:
        """Return by cause how many objects of this one's kind there are, in the cause's namespace or in all."""
        kind = group_kind_of(federated["spec"]["template"])
        return {cause: len(self._objects.keys_of_kind(kind, cause.namespace)) for cause in causes}

    def remember(self, federated: Object) -> None:
        """Count what the object recorded before the restart."""
        if (held := held_move(federated, self._annotation)) is not None and not self._approval(held.hold):
            self._ledger.hold(key_of(federated), held.cause)
            self._open.setdefault(held.cause, held.hold)
        past = past_move(federated) if self._annotation == names.HELD_PLACEMENT else None
        if past is not None and not past.hold:
            with contextlib.suppress(ValueError):  # somebody edited the annotation
                at = min(from_rfc3339(past.at), self._clock.now())  # a clock that was ahead may have written it
                self._ledger.record(key_of(federated), past.causes, at.timestamp())

    def withdraw(self, key: Key) -> None:
        """Forget the move of an object that stays where it is, or is gone."""
        self._ledger.withdraw(key)

    def moved(self, cause: Cause) -> int:
        """Return how many objects moved within the window."""
        return self._ledger.moved(cause, self._clock.now().timestamp())

    def judge(
        self,
        key: Key,
        held: HeldMove | None,
        sizes: Mapping[Cause, int],
        lost: frozenset[str],
        before: Mapping[str, int | None],
        *,
        needs_approval: bool = False,
    ) -> Judged:
        """Return the permit for a move away from the clusters `lost`; `before` is the placement to record for it.

        `held` is what the object recorded when this move was held. `sizes` are the numbers of objects by cause, in the
        order in which one of them is named. A move that `needs_approval` is held, however few objects move.
        """
        if held is not None and self.is_approved(held, lost):
            self._ledger.withdraw(key)
            return Judged(Permit.GO, self._moved(before, sizes, held.hold))
        if needs_approval:
            cause = next(iter(sizes))
            self._ledger.hold(key, cause)
        else:
            judgement = self._ledger.propose(key, sizes, self._clock.now().timestamp())
            if judgement.permit is Permit.GO:
                return Judged(Permit.GO, self._moved(before, sizes, ""))
            if judgement.permit is Permit.WAIT:
                return Judged(Permit.WAIT, {}, judgement.wait_s)
            assert judgement.cause is not None
            cause = judgement.cause
        move = self._held(held, cause, lost)
        return Judged(Permit.HOLD, {self._annotation: held_text(move)}, held=move)

    def is_approved(self, held: HeldMove, lost: frozenset[str]) -> bool:
        """Return whether exactly this move was approved: no other cluster, and not held after the approval."""
        approval = self._approval(held.hold)
        return bool(approval) and lost <= held.clusters and held.since < str(approval.get("at", ""))

    def is_waiting(self, held: HeldMove) -> bool:
        """Return whether the hold is still without approval."""
        return not self._approval(held.hold)

    def _moved(self, before: Mapping[str, int | None], causes: Mapping[Cause, int], hold: str) -> Annotations:
        if self._annotation != names.HELD_PLACEMENT:
            return {self._annotation: None}
        past = PastMove(to_rfc3339(self._clock.now()), tuple(causes), before, hold)
        return {names.HELD_PLACEMENT: None, names.PREVIOUS_PLACEMENT: past_text(past)}

    def _held(self, before: HeldMove | None, cause: Cause, lost: frozenset[str]) -> HeldMove:
        """Return the record of the held move; it stays as it is while the same is held."""
        if before is not None and before.cause == cause and lost <= before.clusters and not self._approval(before.hold):
            return before
        now = self._clock.now()
        name = self._open.get(cause)
        if name is None or self._approval(name):
            name = self._open[cause] = _hold_name(cause, int(now.timestamp()))
        return HeldMove(name, cause, lost, to_rfc3339(now))

    def _approval(self, hold: str) -> Mapping[str, object]:
        stored = self._holds.get("", hold)
        return (stored or {}).get("spec", {}).get("approval") or {}


def holds_of(federated: Object) -> tuple[str, ...]:
    """Return the PlacementHolds that the object waits for, as the values of an index."""
    return tuple({held.hold for held in held_moves(federated)})


def records_of(federated: Object) -> tuple[str, ...]:
    """Return the annotations of guards that the object has, as the values of an index."""
    annotations = federated["metadata"].get("annotations") or {}
    return tuple(record for record in _RECORDS if record in annotations)


def _hold_name(cause: Cause, second: int) -> str:
    """Return a name that people recognise and that no earlier hold has."""
    slug = re.sub("[^a-z0-9]+", "-", f"{cause.namespace}-{cause.name}".lower()).strip("-")
    digest = blake2b(f"{cause} {second}".encode(), digest_size=4).hexdigest()
    return f"{slug[:_SLUG_LENGTH_MAX].rstrip('-')}-{digest}"
