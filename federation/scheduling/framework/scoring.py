"""The Score extension point of one profile, with scores reused between scheduling cycles.

When every score plugin is local and has a cache key, raw scores are cached per plugin, its key and cluster
(`resultcache.py`): after a member's report only its score is computed, once for all units with this key. Total scores
are cached per set of feasible clusters and keys of all plugins, and their order is updated (`Ranking`). Without that, a
decision about 500 clusters takes nearly twice as long. A failing plugin is handled on the uncached path, where all
clusters are scored together.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import add, is_not
from typing import Any, Protocol

from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cycle import (
    FilterResult,
    PluginFailed,
    PluginScores,
    SchedulingCycle,
    ScoreResult,
)
from federation.scheduling.framework.enabledplugin import (
    EnabledPlugin,
    cache_keys,
    check_count,
    check_raw_scores,
    check_scores,
    check_status,
    ignore_or_raise,
)
from federation.scheduling.framework.normalization import SCORE_MAX, Ranking, Totals
from federation.scheduling.framework.resultcache import CachedResult, ClusterList, ResultCache
from federation.scheduling.framework.schedulermetrics import SchedulerMetrics
from federation.scheduling.framework.shapekeys import ShapeKey
from federation.scheduling.framework.types import Cluster, Exchange


class _RawScores(CachedResult):
    """One plugin's raw scores by position; those at `unknown` have not been computed."""

    def __init__(self) -> None:
        super().__init__()
        self.each: list[Any] = []
        self.unknown: set[int] = set()
        self.as_tuple: tuple[Any, ...] | None = None
        """`each` as a tuple, the same object while no score changes."""


class _CachedTotals(CachedResult):
    """The total scores of one set of feasible clusters, and each plugin's part."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: tuple[PluginScores, ...] = ()
        self.ranking = Ranking(())


class Preference(Protocol):
    """A score of a feature, which counts in every profile. Explanations have its name."""

    @property
    def name(self) -> str: ...

    def score(self, cluster: Cluster) -> int: ...  # more for a better cluster, in any range


PREFERENCES: ShapeKey[tuple[Preference, ...]] = ShapeKey("preferred", ())


def with_preference(scored: ScoreResult, name: str, score: Callable[[Cluster], int]) -> ScoreResult:
    """Return the scores with a further one; the same if all clusters have an equal one."""
    totals = scored.totals
    raw = tuple(map(score, totals.clusters))
    least, most = min(raw, default=0), max(raw, default=0)
    if least == most:
        return scored
    normalised = tuple([(score - least) * SCORE_MAX // (most - least) for score in raw])
    sums = [total + own for total, own in zip(totals.scores, normalised, strict=True)]
    part = PluginScores(name, 1, raw, normalised)
    return ScoreResult(Totals(totals.clusters, Ranking(sums)), (*scored.parts, part))


class ScoreRunner:
    """Runs the score plugins of one profile."""

    def __init__(self, plugins: Sequence[EnabledPlugin], cluster_list: ClusterList, metrics: SchedulerMetrics) -> None:
        self._plugins = plugins
        self._metrics = metrics
        self._raw_scores = [ResultCache(cluster_list, _RawScores) for _ in plugins]
        self._totals = ResultCache(cluster_list, _CachedTotals)

    def run(self, cycle: SchedulingCycle, filtered: FilterResult) -> Exchange[ScoreResult]:
        """Return every feasible cluster's weighted sum of normalized scores."""
        cycle.point = "score"
        keys = cache_keys(self._plugins, cycle.unit)
        if keys is not None:
            try:
                return self._look_up(cycle, filtered, keys)
            except PluginFailed:
                pass
        parts: list[PluginScores] = []
        for enabled in self._plugins:
            try:
                raw = yield from self._run_plugin(cycle, enabled, filtered.feasible)
                parts.append(_normalize(cycle, enabled, tuple(raw)))
            except PluginFailed as failed:
                ignore_or_raise(cycle, enabled, failed)
        return ScoreResult(Totals(filtered.feasible, _rank(parts, len(filtered.feasible))), tuple(parts))

    def _run_plugin(
        self, cycle: SchedulingCycle, enabled: EnabledPlugin, clusters: Sequence[Cluster]
    ) -> Exchange[Sequence[Any]]:
        """Return a plugin's raw scores of the clusters."""
        if enabled.remote is None:
            return self._run_local(cycle, enabled, clusters)
        cycle.plugin, started = enabled.name, self._metrics.now()
        scores = check_status(enabled, (yield from enabled.remote(cycle.unit, clusters, cycle.state)))
        check_count(enabled, scores, clusters)
        scores = check_raw_scores(enabled, scores)
        self._metrics.plugin(cycle.point, enabled.name, started)
        return scores

    def _run_local(self, cycle: SchedulingCycle, enabled: EnabledPlugin, clusters: Sequence[Cluster]) -> Sequence[Any]:
        cycle.plugin, started = enabled.name, self._metrics.now()
        run, unit, state = enabled.local, cycle.unit, cycle.state
        assert run is not None
        if enabled.each is not None:
            scores = enabled.each(unit, clusters, state)
            check_count(enabled, scores, clusters)
        else:
            scores = [run(unit, cluster, state) for cluster in clusters]
        scores = check_raw_scores(enabled, scores)
        self._metrics.plugin(cycle.point, enabled.name, started)
        return scores

    def _look_up(self, cycle: SchedulingCycle, filtered: FilterResult, keys: tuple[Hashable, ...]) -> ScoreResult:
        """Return the scores; run the plugins only for clusters without cached scores."""
        if not filtered.ignores_current:
            # Hardly two units have the same current clusters: caching their totals would displace the shared ones.
            parts = self._parts(cycle, filtered, keys)
            return ScoreResult(Totals(filtered.feasible, _rank(parts, len(filtered.feasible))), parts)
        known, stale = self._totals.find((filtered.positions, keys), cycle.clusters)
        scored: ScoreResult | None = cycle.clusters.memo.get(known)
        if scored is None:
            if stale:
                parts = self._parts(cycle, filtered, keys, known.parts)
                if not known.parts:
                    known.ranking = _rank(parts, len(filtered.feasible))
                elif any(map(is_not, parts, known.parts)):
                    known.ranking = known.ranking.with_scores(_sums(parts, len(filtered.feasible)))
                known.parts = parts
            known.mark_valid(cycle.clusters)
            scored = ScoreResult(Totals(filtered.feasible, known.ranking), known.parts)
            cycle.clusters.memo[known] = scored
        return scored

    def _parts(
        self,
        cycle: SchedulingCycle,
        filtered: FilterResult,
        keys: tuple[Hashable, ...],
        earlier: Sequence[PluginScores] = (),
    ) -> tuple[PluginScores, ...]:
        """Return each plugin's scores; `earlier` ones whose raw scores are the same need no normalization."""
        pick = tuple if len(filtered.positions) == len(cycle.clusters) else filtered.feasible.pick
        parts: list[PluginScores] = []
        groups: dict[tuple[int, ...], ClusterGroup] = {}
        for index, enabled in enumerate(self._plugins):
            raw = pick(self._raw_scores_of(cycle, filtered, index, keys[index], groups))
            if earlier and (earlier[index].raw is raw or earlier[index].raw == raw):
                parts.append(earlier[index])
            else:
                parts.append(_normalize(cycle, enabled, raw))
        return tuple(parts)

    def _raw_scores_of(
        self,
        cycle: SchedulingCycle,
        filtered: FilterResult,
        index: int,
        key: Hashable,
        groups: dict[tuple[int, ...], ClusterGroup],
    ) -> tuple[Any, ...]:
        """Return a plugin's raw scores, complete for the feasible clusters; plugins share `groups` of clusters."""
        enabled, cache = self._plugins[index], self._raw_scores[index]
        find = cache.find if enabled.depends_on_resources else cache.find_lasting
        known, stale = find(key, cycle.clusters)
        if stale:
            known.each = known.each or [None] * len(cycle.clusters)
            known.unknown.update(stale)
            known.mark_valid(cycle.clusters)
        unknown = _feasible_among(filtered, known.unknown, cycle) if known.unknown else ()
        if unknown:
            group = groups.get(unknown)
            if group is None:
                group = groups[unknown] = _clusters_at(cycle, filtered, unknown)
            scores = self._run_local(cycle, enabled, group)
            known.as_tuple = None
            if len(unknown) == len(known.each):
                known.each[:] = scores
            else:
                for at, score in zip(unknown, scores, strict=True):
                    known.each[at] = score
            known.unknown.difference_update(unknown)
        if known.as_tuple is None:
            known.as_tuple = tuple(known.each)
        return known.as_tuple


def _clusters_at(cycle: SchedulingCycle, filtered: FilterResult, positions: Sequence[int]) -> ClusterGroup:
    """Return the clusters at these positions, all of which are feasible."""
    if len(positions) == len(filtered.positions):
        return filtered.feasible
    return cycle.clusters.subset(positions)


def _feasible_among(filtered: FilterResult, positions: set[int], cycle: SchedulingCycle) -> tuple[int, ...]:
    """Return the feasible ones of the positions, in order."""
    if len(filtered.positions) < len(cycle.clusters):
        positions = positions.intersection(filtered.positions)
    return tuple(sorted(positions))


def _rank(parts: Iterable[PluginScores], count: int) -> Ranking:
    return Ranking(_sums(parts, count))


def _sums(parts: Iterable[PluginScores], count: int) -> Sequence[int]:
    """Return the weighted sum of the parts for each of `count` clusters."""
    sums: Iterable[int] = [0] * count
    for part in parts:
        weighted = part.normalised if part.weight == 1 else [score * part.weight for score in part.normalised]
        sums = map(add, sums, weighted)
    return tuple(sums)


def _normalize(cycle: SchedulingCycle, enabled: EnabledPlugin, raw: tuple[Any, ...]) -> PluginScores:
    """Return a plugin's raw scores with their normalized form."""
    if enabled.normalise is None:
        return PluginScores(enabled.name, enabled.weight, raw, raw)
    cycle.plugin = enabled.name
    normalised = enabled.normalise(cycle.unit, raw, cycle.state)
    check_count(enabled, normalised, raw)
    check_scores(enabled, normalised)
    return PluginScores(enabled.name, enabled.weight, raw, tuple(normalised))
