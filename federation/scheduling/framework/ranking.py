"""Run the score plugins of a profile over the feasible clusters, and keep the scores for units of the same shape.

When every plugin is local and tells its shape, a decision asks only about clusters that are others since the last one
with these feasible clusters and shapes (`memo.py`), and their new totals mend the order that select plugins want
(`scores.py`). Whatever fails goes the long way over all clusters, where failures are judged. `runner.py` asks.
"""

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from operator import add
from typing import Any

from federation.scheduling.framework.cycle import Cycle, Exchange, Filtered, PluginFailed, PluginScores, Scored
from federation.scheduling.framework.enabled import (
    Enabled,
    check_count,
    check_raw,
    check_scores,
    ignore,
    shapes_of,
    usable,
)
from federation.scheduling.framework.instrument import Instrument
from federation.scheduling.framework.memo import Memo, Result, Roster
from federation.scheduling.framework.scores import Totals
from federation.scheduling.framework.types import Cluster, ClusterScore

_to_score = partial(tuple.__new__, ClusterScore)
"""Makes a ClusterScore of a pair without the detour through Python that its own constructor takes."""


class _Kept(Result):
    """The scores of the feasible clusters at `positions`."""

    def __init__(self) -> None:
        super().__init__()
        self.scored: Scored | None = None


class Ranking:
    """The score plugins of one profile."""

    def __init__(self, scores: Sequence[Enabled], roster: Roster, instrument: Instrument) -> None:
        self._scores = scores
        self._instrument = instrument
        self._memo = Memo(roster, _Kept)

    def run(self, cycle: Cycle, filtered: Filtered) -> Exchange[Scored]:
        """Return every feasible cluster's weighted sum of normalised scores."""
        cycle.point = "score"
        shapes = shapes_of(self._scores, cycle.unit)
        if shapes is not None:
            try:
                return self._look_up(cycle, filtered, shapes)
            except PluginFailed:
                pass
        parts: list[PluginScores] = []
        for enabled in self._scores:
            try:
                raw = yield from self._ask(cycle, enabled, filtered.feasible)
                parts.append(_to_part(cycle, enabled, tuple(raw)))
            except PluginFailed as failed:
                ignore(cycle, enabled, failed)
        return Scored(_sum_up(filtered.feasible, parts), tuple(parts))

    def _ask(self, cycle: Cycle, enabled: Enabled, clusters: Sequence[Cluster]) -> Exchange[Sequence[Any]]:
        """Return a plugin's raw scores of the clusters."""
        if enabled.remote is None:
            return self._ask_local(cycle, enabled, clusters)
        cycle.plugin, started = enabled.name, self._instrument.now()
        answers = usable(enabled, (yield from enabled.remote(cycle.unit, clusters, cycle.state)))
        check_count(enabled, answers, clusters)
        answers = check_raw(enabled, answers)
        self._instrument.plugin(cycle.point, enabled.name, started)
        return answers

    def _ask_local(self, cycle: Cycle, enabled: Enabled, clusters: Sequence[Cluster]) -> Sequence[Any]:
        cycle.plugin, started = enabled.name, self._instrument.now()
        ask, unit, state = enabled.local, cycle.unit, cycle.state
        assert ask is not None
        answers = check_raw(enabled, [ask(unit, cluster, state) for cluster in clusters])
        self._instrument.plugin(cycle.point, enabled.name, started)
        return answers

    def _look_up(self, cycle: Cycle, filtered: Filtered, shapes: tuple[Hashable, ...]) -> Scored:
        """Return the scores, asking only about clusters whose scores are not known."""
        known, stale = self._memo.find((filtered.positions, shapes))
        if known.scored is None:
            raws = [tuple(self._ask_local(cycle, enabled, filtered.feasible)) for enabled in self._scores]
            parts = [_to_part(cycle, enabled, raw) for enabled, raw in zip(self._scores, raws, strict=True)]
            known.scored = Scored(_sum_up(filtered.feasible, parts), tuple(parts))
        elif stale:
            known.scored = self._renewed(cycle, filtered, known.scored, stale)
        known.clusters = cycle.clusters
        return known.scored

    def _renewed(self, cycle: Cycle, filtered: Filtered, scored: Scored, stale: Sequence[int]) -> Scored:
        """Return the scores with those of other clusters at some positions."""
        if len(filtered.positions) < len(cycle.clusters):
            feasible = {at: index for index, at in enumerate(filtered.positions)}
            stale = [feasible[at] for at in stale if at in feasible]
            if not stale:
                return scored
        clusters = [filtered.feasible[at] for at in stale]
        is_elsewhere_the_same = True
        parts: list[PluginScores] = []
        for enabled, part in zip(self._scores, scored.parts, strict=True):
            raw = list(part.raw)
            for at, score in zip(stale, self._ask_local(cycle, enabled, clusters), strict=True):
                raw[at] = score
            if (new := tuple(raw)) == part.raw:
                parts.append(part)
            else:
                parts.append(_to_part(cycle, enabled, new))
                is_elsewhere_the_same = is_elsewhere_the_same and enabled.normalise is None
        if not is_elsewhere_the_same:
            return Scored(_sum_up(filtered.feasible, parts), tuple(parts))
        sums = [sum([part.normalised[at] * part.weight for part in parts]) for at in stale]
        changes = {at: ClusterScore(cluster, total) for at, cluster, total in zip(stale, clusters, sums, strict=True)}
        return Scored(scored.totals.replaced(changes), tuple(parts))


def _sum_up(feasible: Sequence[Cluster], parts: Iterable[PluginScores]) -> Totals:
    sums: Iterable[int] = [0] * len(feasible)
    for part in parts:
        weighted = part.normalised if part.weight == 1 else [score * part.weight for score in part.normalised]
        sums = map(add, sums, weighted)
    return Totals(map(_to_score, zip(feasible, sums, strict=True)))


def _to_part(cycle: Cycle, enabled: Enabled, raw: tuple[Any, ...]) -> PluginScores:
    """Return the plugin's raw scores with their normalised form."""
    if enabled.normalise is None:
        return PluginScores(enabled.name, enabled.weight, raw, raw)
    cycle.plugin = enabled.name
    normalised = enabled.normalise(cycle.unit, raw, cycle.state)
    check_count(enabled, normalised, raw)
    check_scores(enabled, normalised)
    return PluginScores(enabled.name, enabled.weight, raw, tuple(normalised))
