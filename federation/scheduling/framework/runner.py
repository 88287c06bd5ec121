"""Run the plugins of one profile, extension point by extension point, and check what they answer.

A `Framework` is a profile with its plugins made; it lives as long as the profile does not change. Every run is a
generator: it yields what remote plugins want to ask and returns the outcome, so the engine never waits (STYLE 31).
Filters are `sieve.py`'s, scores `ranking.py`'s: both keep what they found for units of the same shape (`memo.py`). It
decides nothing: `engine.py` does.
"""

from collections.abc import Sequence
from operator import attrgetter, itemgetter
from typing import Any

from federation.scheduling.framework.cycle import (
    Cycle,
    Filtered,
    PluginFailed,
    Scored,
    Selection,
)
from federation.scheduling.framework.enabled import Enabled, enable, failure, ignore, shapes_of, usable
from federation.scheduling.framework.instrument import Instrument
from federation.scheduling.framework.limits import find_breach
from federation.scheduling.framework.memo import Roster
from federation.scheduling.framework.profile import POINTS, Profile
from federation.scheduling.framework.ranking import Ranking
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.scores import BestFirst, Totals
from federation.scheduling.framework.sieve import Sieve
from federation.scheduling.framework.types import Change, Cluster, ClusterScore, Division, Exchange, error

_CLUSTER, _NAME = itemgetter(0), attrgetter("name")
_SELECTIONS_MAX = 64
"""Shapes of units that the selection is kept for of the same scores; when there are more they are all made anew."""


class Framework:
    """The plugins of one profile, ready to run; PluginError at once when the profile cannot work."""

    def __init__(self, profile: Profile, registry: PluginRegistry, instrument: Instrument | None = None) -> None:
        self.profile = profile
        self._instrument = instrument or Instrument()
        self._roster = Roster()
        made: dict[str, Any] = {}
        filters, scores, self._selects, self._replicas = (enable(profile, registry, made, point) for point in POINTS)
        self._sieve = Sieve(filters, self._roster, self._instrument)
        self._ranking = Ranking(scores, self._roster, self._instrument)

    def awaits(self, plugin: str) -> Change:
        """Return which changes of a cluster can turn the filter's rejection there around."""
        return next((enabled.awaits for enabled in self._sieve.filters if enabled.name == plugin), Change.ANY)

    def run_filters(self, cycle: Cycle) -> Exchange[Filtered]:
        """Return the clusters that every filter let pass; PluginFailed when one could not answer."""
        self._roster.move_to(cycle.clusters)
        return self._sieve.run(cycle)

    def run_scores(self, cycle: Cycle, filtered: Filtered) -> Exchange[Scored]:
        """Return every feasible cluster's weighted sum of normalised scores."""
        self._roster.move_to(cycle.clusters)
        return self._ranking.run(cycle, filtered)

    def run_select(self, cycle: Cycle, scored: Scored) -> Exchange[tuple[Cluster, ...]]:
        """Return the clusters that the chain of select plugins takes, in order."""
        cycle.point = "select"
        shapes = shapes_of(self._selects, cycle.unit)
        if shapes is not None and (known := scored.selected.get(shapes)) is not None:
            clusters, selections = known
            cycle.selections += selections
            return clusters
        entries: Sequence[ClusterScore] = scored.totals
        for enabled in self._selects:
            try:
                entries = yield from self._ask_select(cycle, enabled, entries)
            except PluginFailed as failed:
                ignore(cycle, enabled, failed)
                shapes = None
        clusters = entries.clusters if isinstance(entries, BestFirst) else tuple([entry.cluster for entry in entries])
        if shapes is not None:
            if len(scored.selected) >= _SELECTIONS_MAX:
                scored.selected.clear()
            scored.selected[shapes] = clusters, tuple(cycle.selections)
        return clusters

    def _ask_select(
        self, cycle: Cycle, enabled: Enabled, entries: Sequence[ClusterScore]
    ) -> Exchange[Sequence[ClusterScore]]:
        cycle.plugin, started = enabled.name, self._instrument.now()
        if enabled.remote is not None:
            answer = yield from enabled.remote(cycle.unit, entries, cycle.state)
        else:
            assert enabled.local is not None
            answer = enabled.local(cycle.unit, entries, cycle.state)
        selected: Sequence[ClusterScore] = usable(enabled, answer)
        if isinstance(selected, BestFirst) and (
            selected is entries or (isinstance(entries, Totals) and selected is entries.order)
        ):
            names = selected.names  # these are the same clusters
        else:
            clusters = list(map(_CLUSTER, selected))
            names, taken = tuple(map(_NAME, clusters)), set(clusters)
            if len(taken) != len(names) or not taken.issubset(map(_CLUSTER, entries)):
                raise PluginFailed(failure(enabled, "it selected a cluster twice, or one that was not offered"))
        cycle.selections.append(Selection(enabled.name, names))
        self._instrument.plugin("select", enabled.name, started)
        return selected

    def run_replicas(self, cycle: Cycle, clusters: Sequence[Cluster]) -> Exchange[Division]:
        """Return the division by the first replicas plugin, or by the next one when that is ignored."""
        cycle.point = "replicas"
        for enabled in self._replicas:
            try:
                return (yield from self._ask_replicas(cycle, enabled, clusters))
            except PluginFailed as failed:
                ignore(cycle, enabled, failed)
        cycle.plugin = ""
        raise PluginFailed(error(f"profile {self.profile.name!r} has no replicas plugin"))

    def _ask_replicas(self, cycle: Cycle, enabled: Enabled, clusters: Sequence[Cluster]) -> Exchange[Division]:
        cycle.plugin, started = enabled.name, self._instrument.now()
        if enabled.remote is not None:
            answer = yield from enabled.remote(cycle.unit, clusters, cycle.state)
        else:
            assert enabled.local is not None
            answer = enabled.local(cycle.unit, clusters, cycle.state)
        division: Division = usable(enabled, answer)
        if breach := find_breach(cycle.unit, clusters, division.replicas):
            raise PluginFailed(failure(enabled, breach))
        self._instrument.plugin("replicas", enabled.name, started)
        return division
