"""`Ledger`: how much is used of what is allowed, by one rule. Pure.

An *account* has a scope, a measure and a limit. A *payer* is an object; what it takes from accounts is its claim. A
claim counts from the decision on (`assume`), before the write is observed (`report`). While both are known, the larger
one counts for each account: a decision that gives something up frees nothing until it is reported. A payer that is
removed frees everything.

A limit that is not known is None: then nothing may grow in that account. Only `close` ends the limits of a scope.
Limits restrain growth and stop nothing that runs.

The form of claims belongs to the caller, who passes their value by measure with each question: prices change with time.

Decision: docs/decisions/0230-one-ledger.md
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Claim = TypeVar("Claim")
Value = Callable[[Claim, str], int]
"""Returns what a claim takes of a measure."""


@dataclass(frozen=True, slots=True)
class Excess:
    """An account that a claim exceeds."""

    scope: str
    measure: str
    hard: int | None
    """Its limit, None if that is not known."""
    others: int
    """The usage of the other payers."""


class Ledger(Generic[Claim]):
    """Accounts that are paid by the same payers."""

    def __init__(self) -> None:
        self.limits: dict[str, Mapping[str, int | None]] = {}
        """Limits by scope and measure; None where they are not known."""
        self._reported: dict[Hashable, Claim] = {}
        self._assumed: dict[Hashable, Claim] = {}

    # -- limits

    def open(self, scope: str, limits: Mapping[str, int | None]) -> None:
        """Set the limits of a scope."""
        self.limits[scope] = limits

    def close(self, scope: str) -> bool:
        """End the limits of a scope; return whether it had any."""
        return self.limits.pop(scope, None) is not None

    # -- claims

    def report(self, payer: Hashable, claim: Claim) -> bool:
        """Record what a payer has; return whether that changed."""
        is_changed = payer not in self._reported or self._reported[payer] != claim
        self._reported[payer] = claim
        return is_changed

    def assume(self, payer: Hashable, claim: Claim) -> None:
        """Count a decision before it is written, until `end_assumption`."""
        self._assumed[payer] = claim

    def assumed(self, payer: Hashable) -> Claim | None:
        """Return the decision of a payer that is not observed yet, None without one."""
        return self._assumed.get(payer)

    def end_assumption(self, payer: Hashable) -> None:
        """Forget a decision that was not written, or that is reported now."""
        self._assumed.pop(payer, None)

    def remove(self, payer: Hashable) -> bool:
        """Remove a payer that is gone; return whether it was known."""
        known = payer in self._reported or payer in self._assumed
        self._reported.pop(payer, None)
        self._assumed.pop(payer, None)
        return known

    def claims(self, payer: Hashable) -> list[Claim]:
        """Return what a payer has, and what is assumed of it."""
        return [each[payer] for each in (self._reported, self._assumed) if payer in each]

    # -- questions

    def paid(self, payer: Hashable, measure: str, value: Value[Claim]) -> int:
        """Return what counts for a payer."""
        return max((value(claim, measure) for claim in self.claims(payer)), default=0)

    def used(self, measure: str, value: Value[Claim], *, without: Hashable = None) -> int:
        """Return what counts for all payers, except for one."""
        payers = {**self._reported, **self._assumed}
        return sum(self.paid(payer, measure, value) for payer in payers if payer != without)

    def measures(self) -> list[str]:
        """Return the measures that have a limit."""
        return sorted({measure for limits in self.limits.values() for measure in limits})

    def payers(self) -> Iterable[Hashable]:
        """Return all payers."""
        return {**self._reported, **self._assumed}.keys()

    def find_excess(self, payer: Hashable, wanted: Mapping[str, int], value: Value[Claim]) -> Excess | None:
        """Return the account that a payer would exceed with what it wants by measure, None if it may have it.

        Only an amount that grows can exceed a limit.
        """
        used = {name: self.used(name, value, without=payer) for name in self.measures()}
        present = {name: self.paid(payer, name, value) for name in used}
        return find_excess(self.limits, used, present, wanted)


def find_excess(
    limits: Mapping[str, Mapping[str, int | None]],
    others: Mapping[str, int],
    present: Mapping[str, int],
    wanted: Mapping[str, int],
) -> Excess | None:
    """Return the first account that is exceeded, by scope and measure; `present` is what the payer has."""
    for scope in sorted(limits):
        for name, hard in limits[scope].items():
            amount, used = wanted.get(name, 0), others.get(name, 0)
            if amount > present.get(name, 0) and (hard is None or used + amount > hard):
                return Excess(scope, name, hard, used)
    return None
