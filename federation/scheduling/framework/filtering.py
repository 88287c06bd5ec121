"""The Filter extension point of one profile, with results reused between scheduling cycles.

Filters run plugin by plugin over the clusters that passed so far, so that a remote plugin gets all of them in one call.
When every filter is local and has a cache key, results are cached per cluster (`resultcache.py`), separately for
clusters that already run the unit where a filter depends on that (`DEPENDS_ON_CURRENT`). The tuple of feasible clusters
is cached as well, because building it is the largest cost of a cycle with hundreds of clusters.

Filters that depend on resources, and judge all clusters at once (`filter_each`), are not cached: they read columns, and
run in each cycle after the others, whose results no report changes.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

from federation.scheduling.framework.clustergroup import ClusterGroup, Pick, picker
from federation.scheduling.framework.cycle import FilterResult, PluginFailed, SchedulingCycle
from federation.scheduling.framework.enabledplugin import (
    EnabledPlugin,
    cache_keys,
    check_count,
    check_no_error,
    check_status,
    ignore_or_raise,
)
from federation.scheduling.framework.resultcache import CachedResult, ClusterList, ResultCache
from federation.scheduling.framework.schedulermetrics import SchedulerMetrics
from federation.scheduling.framework.types import SUCCESS, Code, Exchange, SchedulingUnit, Status

_VARIANTS_MAX = 64
"""Sets of feasible clusters that are cached per key, one for each set of current clusters that makes a difference."""
Rejection = tuple[int, Status] | None
"""The index of the filter that rejected a cluster and its status; None when all filters passed it."""


class _FeasibleClusters(NamedTuple):
    """Positions of the feasible clusters, a function that picks them, and the statuses of the others."""

    positions: tuple[int, ...]
    pick: Pick
    rejected: Mapping[str, Status]
    ignores_current: bool
    """Whether the unit's current clusters made no difference, so that most units of the key share this result."""


_Rejected = list[tuple[int, int, Status]]
"""Indexes of filters, the positions of the clusters that they reject, and statuses as the filters return them."""


class _Rejections:
    """Rejections by position, and those of the leading filters alone, which a report of resources cannot change."""

    def __init__(self, count: int) -> None:
        self.each: list[Rejection] = [None] * count
        self.leading: list[Rejection] = [None] * count


class _FilterResults(CachedResult):
    """Results by position: `for_new` for clusters without the unit, `for_current` for clusters that run it.

    `unknown_current` are the positions without a result for current clusters, `unknown_leading` those without one of
    the leading filters; at `differing` the results for new and current clusters are not equal.
    """

    def __init__(self) -> None:
        super().__init__()
        self.for_new = _Rejections(0)
        self.for_current = _Rejections(0)
        self.unknown_current: set[int] = set()
        self.unknown_leading: set[int] = set()
        self.differing: set[int] = set()
        self.feasible: dict[frozenset[int], _FeasibleClusters] = {}
        """By the differing positions that are current clusters of the unit."""
        self.narrowed: dict[Hashable, tuple[_FeasibleClusters, _Rejected, _FeasibleClusters]] = {}
        """By the keys of filters that are not cached: what they rejected last of which clusters, and the rest."""


class FilterRunner:
    """Runs the filters of one profile."""

    def __init__(self, filters: Sequence[EnabledPlugin], cluster_list: ClusterList, metrics: SchedulerMetrics) -> None:
        self.filters = filters
        self._metrics = metrics
        self._cache = ResultCache(cluster_list, _FilterResults)
        self._depends_on_current = any(enabled.depends_on_current for enabled in filters)
        self._leading = next((at for at, enabled in enumerate(filters) if enabled.depends_on_resources), len(filters))
        """The number of filters before the first one that depends on resources: these are not run after a report."""
        judge_all = all(enabled.each is not None for enabled in filters[self._leading :])
        self._cached = self._leading if judge_all else len(filters)
        """The number of filters whose results are cached; those after them judge all clusters at once."""

    def run(self, cycle: SchedulingCycle) -> Exchange[FilterResult]:
        """Return the feasible clusters; PluginFailed when a filter failed that must not be ignored."""
        cycle.point = "filter"
        keys = cache_keys(self.filters, cycle.unit)
        if keys is not None:
            try:
                feasible: _FeasibleClusters | None = self._look_up(cycle, keys)
            except PluginFailed:
                feasible = None
            # Lenient and ignorable filters need the statuses of all clusters together, which the cache does not have.
            if feasible is not None and feasible.positions:
                is_all = len(feasible.positions) == len(cycle.clusters)
                return FilterResult(
                    cycle.clusters if is_all else cycle.clusters.subset(feasible.positions, feasible.pick),
                    feasible.rejected,
                    feasible.positions,
                    feasible.ignores_current,
                )
        return (yield from self._run_all(cycle))

    # -- without the cache

    def _run_all(self, cycle: SchedulingCycle) -> Exchange[FilterResult]:
        clusters, positions = cycle.clusters, list(range(len(cycle.clusters)))
        rejected: dict[str, Status] = {}
        for enabled in self.filters:
            if not positions:
                break
            try:
                statuses = yield from self._run_plugin(cycle, enabled, positions)
            except PluginFailed as failed:
                ignore_or_raise(cycle, enabled, failed)
                continue
            passed, rejections = _split_by_status(enabled, positions, statuses)
            if passed or not enabled.is_lenient:
                positions = passed
                rejected |= {clusters[at].name: status for at, status in rejections}
        return FilterResult(clusters.subset(positions), rejected, tuple(positions))

    def _run_plugin(
        self, cycle: SchedulingCycle, enabled: EnabledPlugin, positions: Sequence[int]
    ) -> Exchange[Sequence[Status]]:
        cycle.plugin, started = enabled.name, self._metrics.now()
        if enabled.remote is not None:
            clusters = cycle.clusters.subset(positions)
            statuses = check_status(enabled, (yield from enabled.remote(cycle.unit, clusters, cycle.state)))
            check_count(enabled, statuses, clusters)
        else:
            statuses = _run_local(cycle, enabled, cycle.unit, positions)
        check_no_error(enabled, statuses)
        self._metrics.plugin(cycle.point, enabled.name, started)
        return list(statuses)

    # -- with the cache

    def _look_up(self, cycle: SchedulingCycle, keys: tuple[Any, ...]) -> _FeasibleClusters:
        """Return the feasible clusters; run the filters only for clusters without a cached result."""
        unit, clusters = cycle.unit, cycle.clusters
        if self._cached < len(self.filters):
            known, stale = self._cache.find_lasting(keys[: self._cached], clusters)
        else:
            known, stale = self._cache.find(keys, clusters)
        if stale:
            elsewhere = replace(unit, current={}) if unit.current and self._depends_on_current else unit
            self._update(cycle, unit, elsewhere, known, stale)
            known.mark_valid(clusters)
        current: frozenset[int] = frozenset()
        if unit.current and self._depends_on_current:
            if known.unknown_current and (unknown := _current_positions(unit, clusters, known.unknown_current)):
                self._judge(cycle, unit, unit, known.for_current, unknown, known.unknown_leading.intersection(unknown))
                now, new = known.for_current.each, known.for_new.each
                known.differing.update([at for at in unknown if now[at] != new[at]])
                known.unknown_current.difference_update(unknown)
                known.unknown_leading.difference_update(unknown)
            if known.differing:
                current = frozenset(_current_positions(unit, clusters, known.differing))
        feasible = known.feasible.get(current)
        if feasible is None:
            if len(known.feasible) >= _VARIANTS_MAX:
                known.feasible.clear()
            feasible = known.feasible[current] = _to_feasible(clusters, known, current)
        if self._cached == len(self.filters) or not feasible.positions:
            return feasible
        return self._narrow(cycle, known, feasible, keys[self._cached :])

    def _narrow(
        self, cycle: SchedulingCycle, known: _FilterResults, feasible: _FeasibleClusters, keys: tuple[Hashable, ...]
    ) -> _FeasibleClusters:
        """Return the clusters that also pass the filters which are not cached."""
        unit = cycle.unit
        rejected = self._reject(cycle, unit, feasible)
        if not rejected and (not unit.current or not self._depends_on_current):
            return feasible
        earlier = known.narrowed.get(keys)
        if earlier is None or earlier[0] is not feasible or earlier[1] != rejected:
            # Without its current clusters the result is that of most units with these keys.
            most = self._reject(cycle, replace(unit, current={}), feasible) if unit.current else rejected
            earlier = feasible, most, self._without(cycle.clusters, feasible, most)
            if len(known.narrowed) >= _VARIANTS_MAX:
                known.narrowed.clear()
            known.narrowed[keys] = earlier
        if earlier[1] == rejected:
            return earlier[2]
        return self._without(cycle.clusters, feasible, rejected)._replace(ignores_current=False)

    def _reject(self, cycle: SchedulingCycle, unit: SchedulingUnit, feasible: _FeasibleClusters) -> _Rejected:
        """Return what the filters which are not cached reject of feasible clusters."""
        is_all = len(feasible.positions) == len(cycle.clusters)
        positions: Sequence[int] = feasible.positions
        found: _Rejected = []
        for index, enabled in enumerate(self.filters[self._cached :], self._cached):
            clusters = cycle.clusters if is_all else cycle.clusters.subset(positions)
            assert enabled.each is not None
            cycle.plugin, started = enabled.name, self._metrics.now()
            statuses = enabled.each(unit, clusters, cycle.state)
            check_count(enabled, statuses, clusters)
            check_no_error(enabled, statuses)
            if statuses.count(SUCCESS) < len(statuses):
                judged = list(zip(positions, statuses, strict=True))
                found += [(index, at, status) for at, status in judged if status.code is not Code.SUCCESS]
                positions, is_all = [at for at, status in judged if status.code is Code.SUCCESS], False
            self._metrics.plugin(cycle.point, enabled.name, started)
        return found

    def _without(self, clusters: ClusterGroup, feasible: _FeasibleClusters, rejected: _Rejected) -> _FeasibleClusters:
        """Return the feasible clusters without the rejected ones."""
        if not rejected:
            return feasible
        gone = {at for _, at, _ in rejected}
        positions = tuple([at for at in feasible.positions if at not in gone])
        statuses = dict(feasible.rejected)
        for index, at, status in rejected:
            statuses[clusters[at].name] = Status(status.code, status.reasons, self.filters[index].name)
        return _FeasibleClusters(positions, picker(positions), statuses, feasible.ignores_current)

    def _update(
        self,
        cycle: SchedulingCycle,
        unit: SchedulingUnit,
        elsewhere: SchedulingUnit,
        known: _FilterResults,
        stale: Sequence[int],
    ) -> None:
        """Update the results for changed clusters; those for current clusters are updated when they are used."""
        if not known.versions:
            known.for_new, known.for_current = _Rejections(len(stale)), _Rejections(len(stale))
        before = [known.for_new.each[at] for at in stale]
        changed = known.more_than_resources(cycle.clusters, stale)
        self._judge(cycle, unit, elsewhere, known.for_new, stale, changed)
        if [known.for_new.each[at] for at in stale] != before or not known.differing.isdisjoint(stale):
            known.feasible.clear()
        known.unknown_current.update(stale)
        known.unknown_leading.update(changed)
        known.differing.difference_update(stale)

    def _judge(
        self,
        cycle: SchedulingCycle,
        unit: SchedulingUnit,
        current: SchedulingUnit,
        known: _Rejections,
        positions: Sequence[int],
        changed: Iterable[int],
    ) -> None:
        """Run the filters for clusters at these positions: the leading ones only where more than resources changed.

        Filters that depend on current clusters get the unit `current`. When a filter fails, nothing is updated.
        """
        leading = known.leading
        if changed := sorted(changed):
            leading = leading.copy()
            rejections = self._run_local_filters(cycle, unit, current, changed, range(self._leading))
            for at, rejection in zip(changed, rejections, strict=True):
                leading[at] = rejection
        passed = [at for at in positions if leading[at] is None]
        rejections = self._run_local_filters(cycle, unit, current, passed, range(self._leading, self._cached))
        known.leading = leading
        if len(passed) < len(positions):
            for at in positions:
                known.each[at] = leading[at]
        for at, rejection in zip(passed, rejections, strict=True):
            known.each[at] = rejection

    def _run_local_filters(
        self,
        cycle: SchedulingCycle,
        unit: SchedulingUnit,
        current: SchedulingUnit,
        positions: Sequence[int],
        indexes: Iterable[int],
    ) -> Iterable[Rejection]:
        """Return the rejections by the filters with these indexes; filters that depend on `current` get that unit."""
        rejections: dict[int, Rejection] = dict.fromkeys(positions)
        for index in indexes:
            if not positions:
                break
            enabled = self.filters[index]
            cycle.plugin, started = enabled.name, self._metrics.now()
            statuses = _run_local(cycle, enabled, current if enabled.depends_on_current else unit, positions)
            check_no_error(enabled, statuses)
            positions, rejected = _split_by_status(enabled, positions, statuses)
            rejections.update((at, (index, status)) for at, status in rejected)
            self._metrics.plugin(cycle.point, enabled.name, started)
        return rejections.values()


def _run_local(
    cycle: SchedulingCycle, enabled: EnabledPlugin, unit: SchedulingUnit, positions: Sequence[int]
) -> Sequence[Status]:
    run, clusters, state = enabled.local, cycle.clusters, cycle.state
    assert run is not None
    if enabled.each is not None and len(positions) == len(clusters):
        statuses: Sequence[Status] = enabled.each(unit, clusters, state)
        check_count(enabled, statuses, clusters)
        return statuses
    return [run(unit, clusters[at], state) for at in positions]


def _split_by_status(
    enabled: EnabledPlugin, positions: Sequence[int], statuses: Sequence[Status]
) -> tuple[list[int], list[tuple[int, Status]]]:
    """Return the positions that passed, and the rejected ones with statuses that name the filter."""
    if statuses.count(SUCCESS) == len(statuses):
        return list(positions), []
    passed: list[int] = []
    rejected: list[tuple[int, Status]] = []
    named: dict[int, Status] = {}
    for at, status in zip(positions, statuses, strict=True):
        if status.code is Code.SUCCESS:
            passed.append(at)
            continue
        rejection = named.get(id(status))  # Most filters return the same few objects.
        if rejection is None:
            rejection = named[id(status)] = Status(status.code, status.reasons, enabled.name)
        rejected.append((at, rejection))
    return passed, rejected


def _current_positions(unit: SchedulingUnit, clusters: ClusterGroup, positions: set[int]) -> list[int]:
    """Return the positions whose clusters run the unit."""
    if len(positions) < len(unit.current):
        return sorted([at for at in positions if clusters[at].name in unit.current])
    return sorted(positions.intersection(map(clusters.positions.get, unit.current)))


def _to_feasible(clusters: ClusterGroup, known: _FilterResults, current: frozenset[int]) -> _FeasibleClusters:
    rejections = [known.for_current.each[at] if at in current else each for at, each in enumerate(known.for_new.each)]
    positions = tuple([at for at, rejection in enumerate(rejections) if rejection is None])
    ordered = [(rejection[0], at, rejection[1]) for at, rejection in enumerate(rejections) if rejection is not None]
    ordered.sort(key=itemgetter(0))
    rejected = {clusters[at].name: status for _, at, status in ordered}
    pick = picker(positions) if ordered else tuple
    return _FeasibleClusters(positions, pick, rejected, not current)
