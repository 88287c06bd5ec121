"""The consequences of another world: moves, missing replicas, use and cost, by hour and namespace. Pure.

An object counts from its first decision in the period to the end of it. Nothing is known of objects that were not
decided.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from federation.planning.guard.ledger import GuardOptions
from federation.scheduling.engine import Outcome, Placements
from federation.scheduling.replay.logentries import Key
from federation.scheduling.replay.otherworld import HOUR_US, Twofold, replicas_in

K = TypeVar("K", int, str)
_MINUTE_US = 60_000_000
_NAMED_MAX = 20
"""Objects that are named for the worst minute."""


@dataclass(slots=True)
class Side:
    """One world in an hour and a namespace, or in all of them."""

    moves: int = 0
    """Replicas that left a cluster."""
    missing_minutes: float = 0.0
    """Replicas that have no cluster, times minutes."""
    cost: float = 0.0
    """Billionths."""
    emissions: float = 0.0
    """Billionths of a gram."""
    cpu_hours: float = 0.0
    capacity_hours: float = 0.0
    """Allocatable CPU hours of all clusters; of sums over all namespaces only."""
    quota_hits: int = 0
    """Decisions that a quota has limited to nothing."""
    guard_hits: int = 0
    """Moves that the guard would have held with its default limits."""

    def add(self, other: "Side") -> None:
        """Add the numbers of another side."""
        self.moves += other.moves
        self.missing_minutes += other.missing_minutes
        self.cost += other.cost
        self.emissions += other.emissions
        self.cpu_hours += other.cpu_hours
        self.capacity_hours += other.capacity_hours
        self.quota_hits += other.quota_hits
        self.guard_hits += other.guard_hits

    @property
    def utilisation(self) -> float | None:
        """The share of all CPUs that replicas request; None without a report of CPUs."""
        return self.cpu_hours / self.capacity_hours if self.capacity_hours else None


@dataclass(slots=True)
class Pair:
    """Both worlds."""

    recorded: Side = field(default_factory=Side)
    other: Side = field(default_factory=Side)


@dataclass(frozen=True, slots=True)
class Peak:
    """The time at which the other world misses the most replicas beyond the recorded one, and the objects."""

    at_us: int
    since_us: int
    """When it began to miss more."""
    recorded: int
    other: int
    objects: tuple[tuple[str, str, str, int], ...]
    """Namespace, kind, name and missing replicas."""


@dataclass(frozen=True, slots=True)
class _Running:
    """The state of an object until its next decision, in both worlds."""

    since_us: int
    kind: str
    name: str
    missing: tuple[int, int]
    cost: tuple[int, int]
    emissions: tuple[int, int]
    cpu: tuple[int, int]


class Comparison:
    """Adds decisions in the order of their times; `finish` ends the period."""

    def __init__(self, guard: GuardOptions | None = None) -> None:
        self._guard = guard or GuardOptions()
        self.decisions = 0
        self.different: list[Twofold] = []
        """Decisions with other placements."""
        self.cells: dict[tuple[int, str], Pair] = {}
        """By the hour, as microseconds, and the namespace."""
        self.peak: Peak | None = None
        self.teams: dict[str, str] = {}
        """The Project of each namespace that has one, as of its last decision."""
        self._capacity: dict[int, tuple[int, int]] = {}
        self._running: dict[Key, _Running] = {}
        self._missing = [0, 0]
        self._excess_since_us = 0
        self._moved: dict[tuple[str, bool], deque[tuple[int, Key]]] = {}
        self._of_policy: dict[str, set[Key]] = {}
        self._end_us = 0

    def add(self, decision: Twofold) -> None:
        """Count a decision."""
        self.decisions += 1
        self._end_us = max(self._end_us, decision.at_us)
        if decision.team:
            self.teams[decision.key[0]] = decision.team
        if decision.recorded_after != decision.other_after:
            self.different.append(decision)
        cell = self._cell(decision.at_us, decision.key[0])
        hour = decision.at_us // HOUR_US * HOUR_US
        self._capacity.setdefault(hour, (decision.recorded_capacity, decision.other_capacity))
        self._of_policy.setdefault(decision.policy, set()).add(decision.key)
        sides = (
            (cell.recorded, decision.recorded_before, decision.recorded_after, decision.recorded.outcome),
            (cell.other, decision.other_before, decision.other_after, decision.other.outcome),
        )
        for side, before, after, outcome in sides:
            left = left_replicas(before, after, decision.replicas)
            side.moves += left
            side.quota_hits += outcome == Outcome.QUOTA_EXCEEDED
            if left:
                side.guard_hits += self._is_held(decision, is_other=side is cell.other)
        self._follow(decision)

    def finish(self, until_us: int) -> None:
        """Count what holds at the end until then; at most until the last decision's hour is over."""
        end_us = min(until_us, (self._end_us // HOUR_US + 1) * HOUR_US)
        for key, running in self._running.items():
            self._count(key, running, end_us)
        self._running.clear()

    def by_hour(self) -> dict[int, Pair]:
        """Return the sums of all namespaces by hour, with the capacity of all clusters."""
        found = _sums((hour, pair) for (hour, _), pair in self.cells.items())
        for hour, pair in found.items():
            capacity = self._capacity.get(hour) or next(iter(self._capacity.values()), (0, 0))
            pair.recorded.capacity_hours, pair.other.capacity_hours = (each / 1000 for each in capacity)
        return dict(sorted(found.items()))

    def by_namespace(self) -> dict[str, Pair]:
        """Return the sums of all hours by namespace."""
        return dict(sorted(_sums((namespace, pair) for (_, namespace), pair in self.cells.items()).items()))

    def by_team(self) -> dict[str, Pair]:
        """Return the sums of all hours by Project, "" for namespaces without one; {} without any Project."""
        if not self.teams:
            return {}
        found = ((self.teams.get(namespace, ""), pair) for (_, namespace), pair in self.cells.items())
        return dict(sorted(_sums(found).items()))

    def total(self) -> Pair:
        """Return the sums of everything."""
        return _sums((0, pair) for pair in self.by_hour().values()).get(0, Pair())

    def _cell(self, at_us: int, namespace: str) -> Pair:
        return self.cells.setdefault((at_us // HOUR_US * HOUR_US, namespace), Pair())

    def _is_held(self, decision: Twofold, *, is_other: bool) -> bool:
        moved = self._moved.setdefault((decision.policy, is_other), deque())
        moved.append((decision.at_us, decision.key))
        while moved[0][0] < decision.at_us - self._guard.window_s * 1_000_000:
            moved.popleft()
        return len({key for _, key in moved}) > self._guard.allowed(len(self._of_policy[decision.policy]))

    def _follow(self, decision: Twofold) -> None:
        before = self._running.get(decision.key)
        if before is not None:
            self._count(decision.key, before, decision.at_us)
        template, cpu = decision.projected["template"], decision.request.get("cpu", 0)
        both = (decision.recorded_after, decision.other_after)
        first, second = (missing_replicas(placed, decision.replicas) for placed in both)
        used = [_replicas(placed, decision.replicas) * cpu for placed in both]
        self._running[decision.key] = _Running(
            decision.at_us,
            str(template.get("kind") or ""),
            str((template.get("metadata") or {}).get("name") or ""),
            (first, second),
            (decision.recorded_cost, decision.other_cost),
            (decision.recorded_emissions, decision.other_emissions),
            (used[0], used[1]),
        )
        was = before.missing if before is not None else (0, 0)
        excess_before = self._missing[1] - self._missing[0]
        self._missing[0] += first - was[0]
        self._missing[1] += second - was[1]
        excess = self._missing[1] - self._missing[0]
        if excess_before <= 0 < excess:
            self._excess_since_us = decision.at_us
        if excess > 0 and (self.peak is None or excess > self.peak.other - self.peak.recorded):
            self.peak = Peak(
                decision.at_us, self._excess_since_us, self._missing[0], self._missing[1], tuple(self._excess())
            )

    def _excess(self) -> Iterator[tuple[str, str, str, int]]:
        found = [
            (running.missing[1] - running.missing[0], key[0], running.kind, running.name)
            for key, running in self._running.items()
            if running.missing[1] > running.missing[0]
        ]
        for count, namespace, kind, name in sorted(found, key=lambda each: (-each[0], each[1:]))[:_NAMED_MAX]:
            yield namespace, kind, name, count

    def _count(self, key: Key, running: _Running, until_us: int) -> None:
        """Add what held from a decision to the next one, hour by hour."""
        at_us = running.since_us
        while at_us < until_us:
            end_us = min(until_us, (at_us // HOUR_US + 1) * HOUR_US)
            cell, took_us = self._cell(at_us, key[0]), end_us - at_us
            for index, side in enumerate((cell.recorded, cell.other)):
                side.missing_minutes += running.missing[index] * took_us / _MINUTE_US
                side.cost += running.cost[index] * took_us / HOUR_US
                side.emissions += running.emissions[index] * took_us / HOUR_US
                side.cpu_hours += running.cpu[index] / 1000 * took_us / HOUR_US
            at_us = end_us


def left_replicas(before: Placements, after: Placements, replicas: int) -> int:
    """Return how many replicas leave clusters; those that are removed by scaling down are no moves."""
    changes = [replicas_in(after, name, replicas) - replicas_in(before, name, replicas) for name in {*before, *after}]
    left = sum(-change for change in changes if change < 0)
    gained = sum(change for change in changes if change > 0)
    return min(left, gained)


def missing_replicas(placed: Placements, replicas: int) -> int:
    """Return how many wanted replicas have no cluster; an object that is copied misses all or none."""
    if any(count is None for count in placed.values()):
        return 0
    return max(0, replicas - _replicas(placed, replicas))


def _replicas(placed: Placements, replicas: int) -> int:
    return sum(replicas if count is None else count for count in placed.values())


def _sums(pairs: Iterable[tuple[K, Pair]]) -> dict[K, Pair]:
    found: dict[K, Pair] = {}
    for key, pair in pairs:
        known = found.setdefault(key, Pair())
        known.recorded.add(pair.recorded)
        known.other.add(pair.other)
    return found
