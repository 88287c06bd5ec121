"""The moves of federated objects that a guard judges: counted in a window, held, and approved. Pure.

The annotations of the objects are the memory: after a restart, and for a plan, they are read again, so nothing held
goes on and the window is counted further. `ledger.py` counts, `record.py` knows the annotations. Times come from the
caller.
"""

import contextlib
import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from federation.api import names
from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.planning.federatedobject.placements import Name
from federation.planning.guard.ledger import Cause, GuardOptions, Ledger, Permit
from federation.planning.guard.record import HeldMove, PastMove, held_move, held_text, past_move, past_text

Annotations = dict[str, str | None]
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


def _no_approval(hold: str) -> Mapping[str, Any]:  # noqa: ARG001  # a world without approvals
    return {}


class Moves:
    """Judges moves. `annotation` is where a held move is recorded; only moves of placements are recorded when they go.

    `approval` returns the approval of a PlacementHold, {} without one.
    """

    def __init__(
        self,
        options: GuardOptions,
        *,
        annotation: str = names.HELD_PLACEMENT,
        approval: Callable[[str], Mapping[str, Any]] = _no_approval,
    ) -> None:
        self.options = options
        self._annotation = annotation
        self._approval = approval
        self._ledger: Ledger[Name] = Ledger(options)
        self._open: dict[Cause, str] = {}
        """The PlacementHold that takes further moves of a cause, until it is approved."""

    def remember(self, key: Name, federated: Mapping[str, Any], now: datetime) -> None:
        """Count what the object recorded."""
        if (held := held_move(federated, self._annotation)) is not None and self.is_waiting(held):
            self._ledger.hold(key, held.cause)
            self._open.setdefault(held.cause, held.hold)
        past = past_move(federated) if self._annotation == names.HELD_PLACEMENT else None
        if past is not None and not past.hold:
            with contextlib.suppress(ValueError):  # somebody edited the annotation
                at = min(from_rfc3339(past.at), now)  # a clock that was ahead may have written it
                self._ledger.record(key, past.causes, at.timestamp())

    def withdraw(self, key: Name) -> None:
        """Forget the move of an object that stays where it is, or is gone."""
        self._ledger.withdraw(key)

    def moved(self, cause: Cause, now: datetime) -> int:
        """Return how many objects moved within the window."""
        return self._ledger.moved(cause, now.timestamp())

    def counted(self, cause: Cause, now: datetime) -> int:
        """Return how many objects moved within the window, are about to, or are held."""
        return self._ledger.counted(cause, now.timestamp())

    def judge(
        self,
        key: Name,
        held: HeldMove | None,
        sizes: Mapping[Cause, int],
        lost: AbstractSet[str],
        before: Mapping[str, int | None],
        now: datetime,
        *,
        needs_approval: bool = False,
    ) -> Judged:
        """Return the permit for a move away from the clusters `lost`; `before` is the placement to record for it.

        `held` is what the object recorded when this move was held. `sizes` are the numbers of objects by cause, in the
        order in which one of them is named. A move that `needs_approval` is held, however few objects move.
        """
        if held is not None and self.is_approved(held, lost):
            self._ledger.withdraw(key)
            return Judged(Permit.GO, self._moved(before, sizes, held.hold, now))
        if needs_approval:
            cause = next(iter(sizes))
            self._ledger.hold(key, cause)
        else:
            judgement = self._ledger.propose(key, sizes, now.timestamp())
            if judgement.permit is Permit.GO:
                return Judged(Permit.GO, self._moved(before, sizes, "", now))
            if judgement.permit is Permit.WAIT:
                return Judged(Permit.WAIT, {}, judgement.wait_s)
            assert judgement.cause is not None
            cause = judgement.cause
        move = self._held(held, cause, lost, now)
        return Judged(Permit.HOLD, {self._annotation: held_text(move)}, held=move)

    def is_approved(self, held: HeldMove, lost: AbstractSet[str]) -> bool:
        """Return whether exactly this move was approved: no other cluster, and not held after the approval."""
        approval = self._approval(held.hold)
        return bool(approval) and lost <= held.clusters and held.since < str(approval.get("at", ""))

    def is_waiting(self, held: HeldMove) -> bool:
        """Return whether the hold is still without approval."""
        return not self._approval(held.hold)

    def _moved(
        self, before: Mapping[str, int | None], causes: Mapping[Cause, int], hold: str, now: datetime
    ) -> Annotations:
        if self._annotation != names.HELD_PLACEMENT:
            return {self._annotation: None}
        past = PastMove(to_rfc3339(now), tuple(causes), before, hold)
        return {names.HELD_PLACEMENT: None, names.PREVIOUS_PLACEMENT: past_text(past)}

    def _held(self, before: HeldMove | None, cause: Cause, lost: AbstractSet[str], now: datetime) -> HeldMove:
        """Return the record of the held move; it stays as it is while the same is held."""
        if before is not None and before.cause == cause and lost <= before.clusters and self.is_waiting(before):
            return before
        name = self._open.get(cause)
        if name is None or self._approval(name):
            name = self._open[cause] = _hold_name(cause, int(now.timestamp()))
        return HeldMove(name, cause, frozenset(lost), to_rfc3339(now))


def _hold_name(cause: Cause, second: int) -> str:
    """Return a name that people recognise and that no earlier hold has."""
    slug = re.sub("[^a-z0-9]+", "-", f"{cause.namespace}-{cause.name}".lower()).strip("-")
    digest = blake2b(f"{cause} {second}".encode(), digest_size=4).hexdigest()
    return f"{slug[:_SLUG_LENGTH_MAX].rstrip('-')}-{digest}"
