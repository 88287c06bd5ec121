"""Run the plugins of one profile at each extension point and validate their results.

A `Framework` is a profile with its plugin instances; it lives until the profile changes. Every run is a generator that
yields the requests of remote plugins and returns the result, so that the engine never waits. Filter and Score are in
`filtering.py` and `scoring.py`, which reuse results between cycles. The order of the steps is `engine.py`'s.
"""

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any

from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cycle import (
    FilterResult,
    PluginFailed,
    SchedulingCycle,
    ScoreResult,
    SelectResult,
    UnschedulableError,
)
from federation.scheduling.framework.enabledplugin import (
    EnabledPlugin,
    cache_keys,
    check_status,
    enable_plugins,
    failure_of,
    ignore_or_raise,
)
from federation.scheduling.framework.filtering import FilterRunner
from federation.scheduling.framework.groupcounts import NAME as GROUP_COUNTS
from federation.scheduling.framework.groupcounts import missing_groups, with_needed, within_group_counts
from federation.scheduling.framework.limits import find_violation
from federation.scheduling.framework.normalization import BestFirst, Scored, Totals
from federation.scheduling.framework.profile import POINTS, Profile
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.resultcache import ClusterList
from federation.scheduling.framework.schedulermetrics import SchedulerMetrics
from federation.scheduling.framework.scoring import ScoreRunner
from federation.scheduling.framework.steady import keep_clusters, prefer_room
from federation.scheduling.framework.types import (
    Cluster,
    ClusterChange,
    ClusterScore,
    Division,
    Exchange,
    error,
    unschedulable,
)

_CLUSTER, _NAME = itemgetter(0), attrgetter("name")
_SELECTIONS_MAX = 64
"""Cache size. When selections for more cache keys are kept with one set of scores, they are cleared."""


class Framework:
    """The plugins of one profile; PluginError at once when the profile cannot work."""

    def __init__(self, profile: Profile, registry: PluginRegistry, metrics: SchedulerMetrics | None = None) -> None:
        self.profile = profile
        self._metrics = metrics or SchedulerMetrics()
        self._cluster_list = ClusterList()
        made: dict[str, Any] = {}
        filters, scores, self._selects, self._replicas = (
            enable_plugins(profile, registry, made, point) for point in POINTS
        )
        enabled = (*filters, *scores, *self._selects, *self._replicas)
        self.is_local = all(each.remote is None for each in enabled)
        """Whether it makes no requests."""
        self._filter_runner = FilterRunner(filters, self._cluster_list, self._metrics)
        self._score_runner = ScoreRunner(scores, self._cluster_list, self._metrics)

    def requeue_on(self, plugin: str) -> ClusterChange:
        """Return the cluster changes that can make a cluster feasible that the filter rejected."""
        filters = self._filter_runner.filters
        return next((enabled.requeue_on for enabled in filters if enabled.name == plugin), ClusterChange.ANY)

    def run_filters(self, cycle: SchedulingCycle) -> Exchange[FilterResult]:
        """Return the clusters that pass every filter; PluginFailed when a filter failed that must not be ignored."""
        self._cluster_list.update(cycle.clusters)
        return self._filter_runner.run(cycle)

    def run_scores(self, cycle: SchedulingCycle, filtered: FilterResult) -> Exchange[ScoreResult]:
        """Return every feasible cluster's weighted sum of normalized scores."""
        # Cycles with remote plugins interleave: another one may have switched to a newer snapshot in between.
        self._cluster_list.update(cycle.clusters)
        return self._score_runner.run(cycle, filtered)

    def run_select(self, cycle: SchedulingCycle, scored: ScoreResult) -> Exchange[ClusterGroup]:
        """Return the clusters that the chain of select plugins selects, in order, and clusters that stay selected."""
        selected = yield from self._select(cycle, scored)
        kept = prefer_room(cycle, scored.totals, keep_clusters(cycle, scored.totals, selected))
        return within_group_counts(cycle, scored.totals, kept)

    def _select(self, cycle: SchedulingCycle, scored: ScoreResult) -> Exchange[ClusterGroup]:
        cycle.point = "select"
        keys = cache_keys(self._selects, cycle.unit)
        if keys is not None and (known := scored.selected.get(keys)) is not None:
            clusters, selections = known
            cycle.selections += selections
            return clusters
        entries: Sequence[ClusterScore] = scored.totals
        for enabled in self._selects:
            try:
                entries = yield from self._run_select_plugin(cycle, enabled, entries)
            except PluginFailed as failed:
                ignore_or_raise(cycle, enabled, failed)
                keys = None
        clusters = ClusterGroup.of(_clusters_of(entries))
        if keys is not None:
            if len(scored.selected) >= _SELECTIONS_MAX:
                scored.selected.clear()
            scored.selected[keys] = clusters, tuple(cycle.selections)
        return clusters

    def _run_select_plugin(
        self, cycle: SchedulingCycle, enabled: EnabledPlugin, entries: Sequence[ClusterScore]
    ) -> Exchange[Sequence[ClusterScore]]:
        cycle.plugin, started = enabled.name, self._metrics.now()
        if enabled.remote is not None:
            answer = yield from enabled.remote(cycle.unit, entries, cycle.state)
        else:
            assert enabled.local is not None
            answer = enabled.local(cycle.unit, entries, cycle.state)
        selected: Sequence[ClusterScore] = check_status(enabled, answer)
        if isinstance(selected, BestFirst) and (
            selected is entries or (isinstance(entries, Totals) and selected is entries.in_order)
        ):
            names = selected.names  # The same clusters: checking hundreds of names again would show in the rate.
        else:
            clusters = _clusters_of(selected)
            names, unique = tuple(map(_NAME, clusters)), set(clusters)
            if len(unique) != len(names) or not unique.issubset(_clusters_of(entries)):
                raise PluginFailed(failure_of(enabled, "it selected a cluster twice, or one that was not offered"))
        cycle.selections.append(SelectResult(enabled.name, names))
        self._metrics.plugin("select", enabled.name, started)
        return selected

    def run_replicas(self, cycle: SchedulingCycle, clusters: Sequence[Cluster]) -> Exchange[Division]:
        """Return the division by the first replicas plugin, or by the next one when that is ignored."""
        unit, cycle.point = cycle.unit, "replicas"
        cycle.unit = with_needed(unit, clusters)
        try:
            division = yield from self._run_replicas(cycle, clusters)
        finally:
            cycle.unit = unit
        if missing := missing_groups(unit, clusters, [name for name, count in division.replicas.items() if count]):
            raise UnschedulableError(replace(unschedulable(f"its replicas are not in {missing}"), plugin=GROUP_COUNTS))
        return division

    def _run_replicas(self, cycle: SchedulingCycle, clusters: Sequence[Cluster]) -> Exchange[Division]:
        for enabled in self._replicas:
            try:
                return (yield from self._run_replicas_plugin(cycle, enabled, clusters))
            except PluginFailed as failed:
                ignore_or_raise(cycle, enabled, failed)
        cycle.plugin = ""
        raise PluginFailed(error(f"profile {self.profile.name!r} has no replicas plugin"))

    def _run_replicas_plugin(
        self, cycle: SchedulingCycle, enabled: EnabledPlugin, clusters: Sequence[Cluster]
    ) -> Exchange[Division]:
        cycle.plugin, started = enabled.name, self._metrics.now()
        if enabled.remote is not None:
            answer = yield from enabled.remote(cycle.unit, clusters, cycle.state)
        else:
            assert enabled.local is not None
            answer = enabled.local(cycle.unit, clusters, cycle.state)
        division: Division = check_status(enabled, answer)
        if violation := find_violation(cycle.unit, clusters, division.replicas):
            raise PluginFailed(failure_of(enabled, violation))
        self._metrics.plugin("replicas", enabled.name, started)
        return division


def _clusters_of(entries: Sequence[ClusterScore]) -> Sequence[Cluster]:
    return entries.clusters if isinstance(entries, Scored) else list(map(_CLUSTER, entries))
