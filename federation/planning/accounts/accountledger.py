"""`Ledger`: how much is used of what is allowed, by one rule. Pure.

A *payer* is an object; what it takes from accounts is its claim. A claim counts from the decision on (`assume`), before
the write is observed (`report`). While both are known, the larger one counts for each account: a decision that gives
something up frees nothing until it is reported. A payer that is removed frees everything.

A write whose answer is lost may have been made. So an assumption names the version of the payer that the write is for,
and ends with the next version, which has the claim or shows that it was not written. Until then it counts beside later
decisions: a refusal ends the last one only (`revoke`), and an answer to a write all before it (`settle`).

The form of claims belongs to the caller, who passes their value with each question: prices change with time. What the
amounts mean to limits, `usage.py` says.

Decisions: docs/decisions/0230-one-ledger.md, docs/decisions/0247-a-decision-counts-until-the-next-version.md
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

Claim = TypeVar("Claim")
Measure = TypeVar("Measure", bound=Hashable)
Value = Callable[[Claim], Mapping[Measure, int] | None]
"""Returns what a claim takes by measure, None for a claim that takes nothing any more."""


class Ledger(Generic[Claim]):
    """The claims of all payers."""

    def __init__(self) -> None:
        self._reported: dict[Hashable, Claim] = {}
        self._assumed: dict[Hashable, list[tuple[Claim, int]]] = {}
        """With the versions for which the claims are written, the last decision last."""
        self._versions: dict[Hashable, int] = {}
        """The version that was reported of each payer."""

    def report(self, payer: Hashable, claim: Claim | None, version: int = 0) -> bool:
        """Record what a version of a payer has, None for nothing; return whether that changed what it has or counts."""
        before = self._reported.get(payer), self.claims(payer)
        self._versions[payer] = version
        self._keep(payer, lambda assumed, at: at >= version and assumed != claim)
        if claim is None:
            self._reported.pop(payer, None)
        else:
            self._reported[payer] = claim
        return before != (self._reported.get(payer), self.claims(payer))

    def assume(self, payer: Hashable, claim: Claim, version: int = 0) -> None:
        """Count a decision before its write, which changes this version and no other one."""
        if version >= self._versions.get(payer, 0):
            self._keep(payer, lambda assumed, at: (assumed, at) != (claim, version))
            self._assumed.setdefault(payer, []).append((claim, version))

    def assumed(self, payer: Hashable) -> Claim | None:
        """Return the last decision about a payer that is not observed yet, None without one."""
        found = self._assumed.get(payer)
        return found[-1][0] if found else None

    def revoke(self, payer: Hashable) -> None:
        """Forget the last decision about a payer, which was certainly not written."""
        if payer in self._assumed:
            last = self._assumed[payer].pop()
            self._keep(payer, lambda assumed, at: (assumed, at) != last)

    def is_open(self, payer: Hashable, version: int) -> bool:
        """Return whether it is not known if a decision about this version was written."""
        return any(at >= version for _, at in self._assumed.get(payer, ()))

    def settle(self, payer: Hashable, version: int) -> None:
        """Forget decisions about a version that a later write has found as it was: they were not written."""
        self._keep(payer, lambda _, at: at > version)

    def _keep(self, payer: Hashable, is_kept: Callable[[Claim, int], bool]) -> None:
        if payer in self._assumed:
            left = [(claim, at) for claim, at in self._assumed[payer] if is_kept(claim, at)]
            self._assumed[payer] = left
            if not left:
                del self._assumed[payer]

    def remove(self, payer: Hashable) -> bool:
        """Remove a payer that is gone; return whether it had anything."""
        known = bool(self.claims(payer))
        for each in (self._reported, self._assumed, self._versions):
            each.pop(payer, None)
        return known

    def claims(self, payer: Hashable) -> list[Claim]:
        """Return what a payer has, and then what is assumed of it."""
        found = [self._reported[payer]] if payer in self._reported else []
        return found + [claim for claim, _ in self._assumed.get(payer, ())]

    def payers(self) -> Iterable[Hashable]:
        """Return all payers that have anything."""
        return {**self._reported, **self._assumed}.keys()

    def paid(self, payer: Hashable, value: Value[Claim, Measure]) -> dict[Measure, int] | None:
        """Return what counts for a payer, None for nothing."""
        found: dict[Measure, int] | None = None
        for amounts in map(value, self.claims(payer)):
            if amounts is not None:
                found = found or {}
                found |= {name: max(amount, found.get(name, 0)) for name, amount in amounts.items()}
        return found

    def used(self, value: Value[Claim, Measure], *, without: Hashable = None) -> dict[Measure, int]:
        """Return what counts for all payers, except for one."""
        total: dict[Measure, int] = defaultdict(int)
        for payer in self.payers():
            if payer != without:
                for name, amount in (self.paid(payer, value) or {}).items():
                    total[name] += amount
        return total
