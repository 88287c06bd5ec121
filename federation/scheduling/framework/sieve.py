"""Run the filters of a profile, and keep what they left for units of the same shape.

Filters run plugin by plugin over the clusters that are still in, so that a remote plugin gets all of them in one call.
When all of them are local and tell their shape, the outcome per cluster is kept (`memo.py`), twice where the unit may
already be: once for clusters that it is in, once for others. Which clusters are left then only has to be made out anew
when an outcome differs, not at every decision. `runner.py` is the one that asks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

from federation.scheduling.framework.cycle import Cycle, Filtered, PluginFailed
from federation.scheduling.framework.enabled import Enabled, check_answered, check_count, ignore, shapes_of, usable
from federation.scheduling.framework.instrument import Instrument
from federation.scheduling.framework.memo import Memo, Result, Roster
from federation.scheduling.framework.types import SUCCESS, Cluster, Code, Exchange, SchedulingUnit, Status

_VARIANTS_MAX = 64
"""How many different sets of clusters are kept for units of one shape that are in different places."""
Outcome = tuple[int, Status] | None
"""Which filter took a cluster out, and why; None when all let it pass."""


class _Left(NamedTuple):
    """The clusters that pass: their positions, how to pick them, and the others; whether most units have the same."""

    positions: tuple[int, ...]
    pick: Callable[[tuple[Cluster, ...]], tuple[Cluster, ...]]
    rejected: Mapping[str, Status]
    is_usual: bool


class _Outcomes(Result):
    """The outcome per cluster for units that are not there (`elsewhere`) and that are (`there`).

    `unasked` are the positions without an outcome of the second kind, `differs` those where the two are not the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.elsewhere: list[Outcome] = []
        self.there: list[Outcome] = []
        self.unasked: set[int] = set()
        self.differs: set[int] = set()
        self.left: dict[frozenset[int], _Left] = {}
        """By the positions that differ and that the unit is in."""


class Sieve:
    """The filters of one profile."""

    def __init__(self, filters: Sequence[Enabled], roster: Roster, instrument: Instrument) -> None:
        self.filters = filters
        self._instrument = instrument
        self._memo = Memo(roster, _Outcomes)
        self._minds_current = any(enabled.minds_current for enabled in filters)

    def run(self, cycle: Cycle) -> Exchange[Filtered]:
        """Return the clusters that every filter lets pass; PluginFailed when one could not answer."""
        cycle.point = "filter"
        shapes = shapes_of(self.filters, cycle.unit)
        if shapes is not None:
            try:
                left = self._look_up(cycle, shapes)
            except PluginFailed:
                left = None
            # What is lenient, or fails, looks at all clusters together.
            if left is not None and left.positions:
                return Filtered(left.pick(cycle.clusters), left.rejected, left.positions, left.is_usual)
        return (yield from self._ask_all(cycle))

    # -- all filters about all clusters

    def _ask_all(self, cycle: Cycle) -> Exchange[Filtered]:
        clusters, positions = cycle.clusters, list(range(len(cycle.clusters)))
        rejected: dict[str, Status] = {}
        for enabled in self.filters:
            if not positions:
                break
            try:
                statuses = yield from self._ask(cycle, enabled, positions)
            except PluginFailed as failed:
                ignore(cycle, enabled, failed)
                continue
            passed, refusals = _apart(enabled, positions, statuses)
            if passed or not enabled.is_lenient:
                positions = passed
                rejected |= {clusters[at].name: status for at, status in refusals}
        return Filtered(tuple([clusters[at] for at in positions]), rejected, tuple(positions))

    def _ask(self, cycle: Cycle, enabled: Enabled, positions: Sequence[int]) -> Exchange[Sequence[Status]]:
        """Return a filter's answers about the clusters at these positions."""
        cycle.plugin, started = enabled.name, self._instrument.now()
        if enabled.remote is not None:
            clusters = tuple([cycle.clusters[at] for at in positions])
            statuses = usable(enabled, (yield from enabled.remote(cycle.unit, clusters, cycle.state)))
            check_count(enabled, statuses, clusters)
        else:
            statuses = _ask_local(cycle, enabled, cycle.unit, positions)
        check_answered(enabled, statuses)
        self._instrument.plugin(cycle.point, enabled.name, started)
        return list(statuses)

    # -- what is kept

    def _look_up(self, cycle: Cycle, shapes: tuple[Any, ...]) -> _Left:
        """Return which clusters pass, asking only about those that are not known."""
        unit, clusters = cycle.unit, cycle.clusters
        known, stale = self._memo.find(shapes)
        if stale:
            away = replace(unit, current={}) if unit.current and self._minds_current else unit
            self._renew(known, stale, self._sift(cycle, unit, away, stale))
            known.clusters = clusters
        here: frozenset[int] = frozenset()
        if unit.current and self._minds_current:
            if known.unasked and (unasked := _positions_in(unit, clusters, known.unasked)):
                for at, outcome in zip(unasked, self._sift(cycle, unit, unit, unasked), strict=True):
                    known.there[at] = outcome
                    if outcome != known.elsewhere[at]:
                        known.differs.add(at)
                known.unasked.difference_update(unasked)
            if known.differs:
                here = frozenset(_positions_in(unit, clusters, known.differs))
        left = known.left.get(here)
        if left is None:
            if len(known.left) >= _VARIANTS_MAX:
                known.left.clear()
            left = known.left[here] = _to_left(clusters, known, here)
        return left

    def _renew(self, known: _Outcomes, stale: Sequence[int], outcomes: Sequence[Outcome]) -> None:
        if not known.clusters:
            known.elsewhere, known.there = list(outcomes), [None] * len(outcomes)
        elif any(known.elsewhere[at] != outcome for at, outcome in zip(stale, outcomes, strict=True)):
            known.left.clear()
            for at, outcome in zip(stale, outcomes, strict=True):
                known.elsewhere[at] = outcome
        elif not known.differs.isdisjoint(stale):
            known.left.clear()
        known.unasked.update(stale)
        known.differs.difference_update(stale)

    def _sift(
        self, cycle: Cycle, unit: SchedulingUnit, current: SchedulingUnit, positions: Sequence[int]
    ) -> Sequence[Outcome]:
        """Ask local filters about the clusters at these positions; `current` is the unit for those that mind."""
        outcomes: dict[int, Outcome] = dict.fromkeys(positions)
        for number, enabled in enumerate(self.filters):
            if not positions:
                break
            cycle.plugin, started = enabled.name, self._instrument.now()
            statuses = _ask_local(cycle, enabled, current if enabled.minds_current else unit, positions)
            check_answered(enabled, statuses)
            positions, refusals = _apart(enabled, positions, statuses)
            outcomes.update((at, (number, status)) for at, status in refusals)
            self._instrument.plugin(cycle.point, enabled.name, started)
        return list(outcomes.values())


def _ask_local(cycle: Cycle, enabled: Enabled, unit: SchedulingUnit, positions: Sequence[int]) -> list[Status]:
    ask, clusters, state = enabled.local, cycle.clusters, cycle.state
    assert ask is not None
    return [ask(unit, clusters[at], state) for at in positions]


def _apart(
    enabled: Enabled, positions: Sequence[int], statuses: Sequence[Status]
) -> tuple[list[int], list[tuple[int, Status]]]:
    """Return the positions that pass, and the others with their statuses, named after the filter."""
    if statuses.count(SUCCESS) == len(statuses):
        return list(positions), []
    passed: list[int] = []
    refusals: list[tuple[int, Status]] = []
    named: dict[int, Status] = {}
    for at, status in zip(positions, statuses, strict=True):
        if status.code is Code.SUCCESS:
            passed.append(at)
            continue
        refusal = named.get(id(status))  # most filters answer with the same few objects
        if refusal is None:
            refusal = named[id(status)] = Status(status.code, status.reasons, enabled.name)
        refusals.append((at, refusal))
    return passed, refusals


def _positions_in(unit: SchedulingUnit, clusters: Sequence[Cluster], positions: Iterable[int]) -> list[int]:
    """Return those of the positions whose clusters the unit is in."""
    return sorted([at for at in positions if clusters[at].name in unit.current])


def _to_left(clusters: tuple[Cluster, ...], known: _Outcomes, here: frozenset[int]) -> _Left:
    outcomes = [known.there[at] if at in here else outcome for at, outcome in enumerate(known.elsewhere)]
    positions = tuple([at for at, outcome in enumerate(outcomes) if outcome is None])
    out = [(outcome[0], at, outcome[1]) for at, outcome in enumerate(outcomes) if outcome is not None]
    out.sort(key=itemgetter(0))
    rejected = {clusters[at].name: status for _, at, status in out}
    if not out:
        return _Left(positions, tuple, rejected, not here)
    if len(positions) > 1:
        return _Left(positions, itemgetter(*positions), rejected, not here)
    return _Left(positions, lambda every: tuple([every[at] for at in positions]), rejected, not here)
