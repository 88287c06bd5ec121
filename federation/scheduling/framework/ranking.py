"""Run the score plugins of a profile over the feasible clusters, and keep the scores for units of the same shape.

When every plugin is local and tells its shape, it is asked only about clusters that are others since the last unit of
that shape (`memo.py`). The totals are kept per shape and feasible clusters: new ones mend the order that select plugins
want (`scores.py`). Whatever fails goes the long way over all clusters, where failures are judged. `runner.py` asks.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from operator import add
from typing import Any

from federation.scheduling.framework.cycle import Cycle, Filtered, PluginFailed, PluginScores, Scored
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
from federation.scheduling.framework.types import Cluster, ClusterScore, Exchange

_to_score = partial(tuple.__new__, ClusterScore)
"""Makes a ClusterScore of a pair without the detour through Python that its own constructor takes."""


class _Raws(Result):
    """What every plugin answered about each cluster; `unasked` are the positions without answers."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[list[Any]] = []
        self.unasked: set[int] = set()


class _Kept(Result):
    """The scores of the same feasible clusters."""

    def __init__(self) -> None:
        super().__init__()
        self.scored: Scored | None = None


class Ranking:
    """The score plugins of one profile."""

    def __init__(self, scores: Sequence[Enabled], roster: Roster, instrument: Instrument) -> None:
        self._scores = scores
        self._instrument = instrument
        self._raws = Memo(roster, _Raws)
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
        raws = self._ask_unknown(cycle, filtered, shapes)
        if not filtered.is_usual:
            return self._add_up(cycle, filtered, raws)
        known, stale = self._memo.find((filtered.positions, shapes))
        if known.scored is None:
            known.scored = self._add_up(cycle, filtered, raws)
        elif stale:
            known.scored = self._renewed(cycle, filtered, raws, known.scored, stale)
        known.clusters = cycle.clusters
        return known.scored

    def _ask_unknown(self, cycle: Cycle, filtered: Filtered, shapes: tuple[Hashable, ...]) -> _Raws:
        """Return the raw scores, in which those of all feasible clusters are known."""
        raws, stale = self._raws.find(shapes)
        if not raws.clusters:
            raws.answers = [[None] * len(cycle.clusters) for _ in self._scores]
        raws.unasked.update(stale)
        raws.clusters = cycle.clusters
        unknown = [at for _, at in _among(filtered, sorted(raws.unasked), cycle)]
        if unknown:
            clusters = [cycle.clusters[at] for at in unknown]
            found = [self._ask_local(cycle, enabled, clusters) for enabled in self._scores]
            for answers, scores in zip(raws.answers, found, strict=True):
                for at, score in zip(unknown, scores, strict=True):
                    answers[at] = score
            raws.unasked.difference_update(unknown)
        return raws

    def _add_up(self, cycle: Cycle, filtered: Filtered, raws: _Raws) -> Scored:
        every = [tuple([answers[at] for at in filtered.positions]) for answers in raws.answers]
        parts = [_to_part(cycle, enabled, raw) for enabled, raw in zip(self._scores, every, strict=True)]
        return Scored(_sum_up(filtered.feasible, parts), tuple(parts))

    def _renewed(self, cycle: Cycle, filtered: Filtered, raws: _Raws, scored: Scored, stale: Sequence[int]) -> Scored:
        """Return the scores with those of other clusters at some positions."""
        places = _among(filtered, stale, cycle)
        is_elsewhere_the_same = True
        parts: list[PluginScores] = []
        for enabled, part, answers in zip(self._scores, scored.parts, raws.answers, strict=True):
            raw = list(part.raw)
            for index, at in places:
                raw[index] = answers[at]
            if (new := tuple(raw)) == part.raw:
                parts.append(part)
            else:
                parts.append(_to_part(cycle, enabled, new))
                is_elsewhere_the_same = is_elsewhere_the_same and enabled.normalise is None
        if not is_elsewhere_the_same:
            return Scored(_sum_up(filtered.feasible, parts), tuple(parts))
        changes = {
            index: ClusterScore(cycle.clusters[at], sum([part.normalised[index] * part.weight for part in parts]))
            for index, at in places
        }
        return Scored(scored.totals.replaced(changes), tuple(parts))


def _among(filtered: Filtered, positions: Sequence[int], cycle: Cycle) -> list[tuple[int, int]]:
    """Return those of the positions that are feasible, each with its index among these."""
    feasible = filtered.positions
    if len(feasible) == len(cycle.clusters):
        return [(at, at) for at in positions]
    places = [(bisect_left(feasible, at), at) for at in positions]
    return [(index, at) for index, at in places if index < len(feasible) and feasible[index] == at]


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
