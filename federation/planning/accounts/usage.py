"""The amounts that are used of scopes with limits, what of them is free, and what exceeds a limit. Pure.

A scope may belong to a cohort. It may then use what other scopes of the cohort have and do not use, up to its own
borrowing limit and their lending limits. A scope without a cohort has its nominal amount, and borrows from nothing.

`Usage` is plain arithmetic over one moment: `accountledger.py` says what counts for each payer, and a caller may add
and subtract amounts of what is not decided yet.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

M = TypeVar("M", bound=Hashable)
"""A measure: the name of a resource, or a pair of a flavour and a resource."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What a scope may use of a measure. `borrowing` None: no other limit than that of the cohort."""

    nominal: int | None
    """None if it is not known: then nothing may grow."""
    borrowing: int | None = None
    lending: int | None = None

    @property
    def own(self) -> int:
        """The nominal amount, as far as it is known."""
        return self.nominal or 0

    @property
    def kept(self) -> int:
        """The part that is never lent."""
        return 0 if self.lending is None else max(0, self.own - self.lending)


_NONE = Limit(0, 0, 0)


@dataclass(frozen=True)
class Scope(Generic[M]):
    """Limits by measure, and the cohort that shares them."""

    name: str
    limits: Mapping[M, Limit]
    cohort: str = ""

    @cached_property
    def group(self) -> str:
        """The cohort, or the scope itself: what shares its limits."""
        return f"cohort {self.cohort}" if self.cohort else f"scope {self.name}"


@dataclass(frozen=True, slots=True)
class Excess(Generic[M]):
    """An account that a claim exceeds: a measure of a scope."""

    scope: str
    measure: M
    hard: int | None
    """The nominal limit, None if that is not known."""
    others: int
    """What the other payers use."""
    free: int
    """What they leave."""


class Usage(Generic[M]):
    """Amounts in use by scope. Every method costs a time that depends on the amounts of one claim only."""

    def __init__(self, scopes: Mapping[str, Scope[M]]) -> None:
        self._scopes = scopes
        self._used: dict[str, dict[M, int]] = {name: defaultdict(int) for name in scopes}
        self._lendable: dict[tuple[str, M], int] = defaultdict(int)
        self._taken: dict[tuple[str, M], int] = defaultdict(int)
        """Amounts that members of a group use beyond the part that they never lend."""
        for scope in scopes.values():
            for measure, limit in scope.limits.items():
                self._lendable[scope.group, measure] += limit.own - limit.kept

    def copy(self) -> "Usage[M]":
        """Return an equal one that counts on its own."""
        other = Usage[M]({})
        other._scopes, other._lendable = self._scopes, self._lendable
        other._used = {name: used.copy() for name, used in self._used.items()}
        other._taken = self._taken.copy()
        return other

    def add(self, name: str, amounts: Mapping[M, int], sign: int = 1) -> None:
        """Count amounts in a scope, or with -1 no longer; a scope that is not known has no limits."""
        if (scope := self._scopes.get(name)) is None:
            return
        used = self._used[name]
        for measure, amount in amounts.items():
            kept = scope.limits.get(measure, _NONE).kept
            before = used[measure]
            used[measure] = after = before + sign * amount
            self._taken[scope.group, measure] += max(0, after - kept) - max(0, before - kept)

    def used(self, name: str) -> Mapping[M, int]:
        """Return what is used of a scope."""
        return self._used[name]

    def find_excess(
        self, name: str, wanted: Mapping[M, int], present: Mapping[M, int] | None = None
    ) -> Excess[M] | None:
        """Return the first account of a scope that a payer would exceed, None if it may have what it wants.

        `present` is what the payer has already, which is not counted here: only an amount that grows exceeds a limit.
        """
        for measure, amount in wanted.items():
            if present is not None and amount <= present.get(measure, 0):
                continue
            if amount > (free := self.free(name, measure)):
                limit = self._scopes[name].limits.get(measure, _NONE)
                return Excess(name, measure, limit.nominal, self._used[name][measure], free)
        return None

    def free(self, name: str, measure: M) -> int:
        """Return how much more a scope may use now."""
        scope, used = self._scopes[name], self._used[name][measure]
        limit = scope.limits.get(measure, _NONE)
        unlent = max(0, limit.kept - used)
        shared = unlent + self._lendable[scope.group, measure] - self._taken[scope.group, measure]
        return shared if limit.borrowing is None else min(limit.own + limit.borrowing - used, shared)

    def most(self, name: str, measure: M) -> int:
        """Return how much a scope can have when nothing else is used."""
        scope = self._scopes[name]
        limit = scope.limits.get(measure, _NONE)
        shared = limit.kept + self._lendable[scope.group, measure]
        return shared if limit.borrowing is None else min(limit.own + limit.borrowing, shared)

    def is_borrowing(self, name: str, amounts: Mapping[M, int]) -> bool:
        """Return whether a scope would use more than its own limit with these amounts added."""
        limits, used = self._scopes[name].limits, self._used[name]
        return any(used[measure] + amount > limits.get(measure, _NONE).own for measure, amount in amounts.items())

    def borrows_any(self, name: str, measures: Iterable[M]) -> bool:
        """Return whether a scope uses more than its own limit of any of the measures."""
        limits, used = self._scopes[name].limits, self._used[name]
        return any(used[measure] > limits.get(measure, _NONE).own for measure in measures)
