"""Run the plugins of one profile, extension point by extension point, and check what they answer.

A `Framework` is a profile with its plugins made; it lives as long as the profile does not change. Filters run plugin by
plugin over the clusters that are still in, so that a remote plugin gets all of them in one call. Every run is a
generator: it yields what remote plugins want to ask and returns the outcome, so the engine never waits (STYLE 31).

What local filters and scores answered is kept for units of the same shape (`memo.py`). It decides nothing: `engine.py`
does.
"""

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import add, attrgetter, itemgetter
from typing import Any, TypeVar

from federation.base.errors import PluginError
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.instrument import Instrument
from federation.scheduling.framework.interfaces import Awaiting
from federation.scheduling.framework.memo import Memo, Moves
from federation.scheduling.framework.profile import PluginRef, Profile, check_unique
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.scores import SCORE_MAX
from federation.scheduling.framework.types import (
    SUCCESS,
    Change,
    Cluster,
    ClusterScore,
    Code,
    Division,
    PluginRequest,
    PluginResponse,
    SchedulingUnit,
    Status,
    error,
)

T = TypeVar("T")
Exchange = Generator[Sequence[PluginRequest], Sequence[PluginResponse], T]
"""A run that may ask remote plugins on the way to its result."""

_CLUSTER, _NAME = itemgetter(0), attrgetter("name")
_to_score = partial(tuple.__new__, ClusterScore)
"""Makes a ClusterScore of a pair without the detour through Python that its own constructor takes."""


@dataclass(frozen=True, slots=True)
class Enabled:
    """One plugin at one extension point: made, with its methods found, local or remote."""

    name: str
    weight: int
    local: Callable[..., Any] | None
    remote: Callable[..., Any] | None
    normalise: Callable[..., Any] | None
    shape: Callable[..., Hashable] | None
    is_optional: bool
    """Whether decisions go on without it when it fails (`MayBeIgnored`)."""
    awaits: Change
    """Which changes of a cluster can turn its rejection there around (`Awaiting`)."""
    memo: Memo


@dataclass(frozen=True, slots=True)
class Ignored:
    """A plugin that failed and that the decision went on without, where and why."""

    point: str
    plugin: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Filtered:
    """What the filters left, and who took out which cluster why."""

    feasible: tuple[Cluster, ...]
    rejected: Mapping[str, Status]


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores, in the order of the feasible clusters."""

    plugin: str
    weight: int
    raw: tuple[int, ...]
    normalised: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    """The feasible clusters with their totals, and how these came about."""

    totals: tuple[ClusterScore, ...]
    parts: tuple[PluginScores, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """The answer of one select plugin: cluster names in order."""

    plugin: str
    clusters: tuple[str, ...]


@dataclass(slots=True)
class Cycle:
    """One decision's bookkeeping: the question, the plugins' state, and who is being asked right now."""

    unit: SchedulingUnit
    clusters: tuple[Cluster, ...]
    state: CycleState
    point: str = ""
    plugin: str = ""
    feasible: Sequence[int] | None = None
    """Positions of the clusters that are still in; None for all."""
    pick: Callable[[Sequence[Any]], tuple[Any, ...]] = tuple
    """Returns of one value per cluster those of the clusters that are still in."""
    selections: list[Selection] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)

    def clusters_left(self) -> tuple[Cluster, ...]:
        """Return the clusters that are still in."""
        return self.pick(self.clusters)

    def keep_only(self, feasible: Sequence[int]) -> None:
        """Let only the clusters at these positions go on."""
        self.feasible = feasible
        several = itemgetter(*feasible) if len(feasible) > 1 else None
        self.pick = several or (lambda values: tuple([values[at] for at in feasible]))


class PluginFailed(PluginError):
    """A plugin answered ERROR, or something that the protocol forbids; `status` names it."""

    def __init__(self, status: Status) -> None:
        super().__init__(f"{status.plugin}: {'; '.join(status.reasons)}")
        self.status = status


class Unselectable(PluginError):
    """A plugin behind the filters answered UNSCHEDULABLE: no cluster can be taken."""

    def __init__(self, status: Status) -> None:
        super().__init__("; ".join(status.reasons))
        self.status = status


class Framework:
    """The plugins of one profile, ready to run; PluginError at once when the profile cannot work."""

    def __init__(self, profile: Profile, registry: PluginRegistry, instrument: Instrument | None = None) -> None:
        self.profile = profile
        self._instrument = instrument or Instrument()
        made: dict[str, Any] = {}
        moves = Moves()
        self._filters = _enable(profile, registry, made, moves, "filter")
        self._scores = _enable(profile, registry, made, moves, "score")
        self._selects = _enable(profile, registry, made, moves, "select")
        self._replicas = _enable(profile, registry, made, moves, "replicas")

    def awaits(self, plugin: str) -> Change:
        """Return which changes of a cluster can turn the filter's rejection there around."""
        return next((enabled.awaits for enabled in self._filters if enabled.name == plugin), Change.ANY)

    def run_filters(self, cycle: Cycle) -> Exchange[Filtered]:
        """Return the clusters that every filter let pass; PluginFailed when one could not answer."""
        cycle.point = "filter"
        rejected: dict[str, Status] = {}
        for enabled in self._filters:
            if cycle.feasible is not None and not cycle.feasible:
                break
            try:
                statuses = yield from self._ask(cycle, enabled)
                if statuses.count(SUCCESS) == len(statuses):
                    continue
                _check_answered(enabled, statuses)
            except PluginFailed as failure:
                _ignore(cycle, enabled, failure)
                continue
            passed: list[int] = []
            named: dict[int, Status] = {}
            positions = range(len(cycle.clusters)) if cycle.feasible is None else cycle.feasible
            for at, status in zip(positions, statuses, strict=True):
                if status.code is Code.SUCCESS:
                    passed.append(at)
                else:
                    refusal = named.get(id(status))  # most plugins answer with the same few objects
                    if refusal is None:
                        refusal = named[id(status)] = Status(status.code, status.reasons, enabled.name)
                    rejected[cycle.clusters[at].name] = refusal
            cycle.keep_only(passed)
        return Filtered(cycle.clusters_left(), rejected)

    def run_scores(self, cycle: Cycle, feasible: tuple[Cluster, ...]) -> Exchange[Scored]:
        """Return every feasible cluster's weighted sum of normalised scores."""
        cycle.point = "score"
        parts: list[PluginScores] = []
        for enabled in self._scores:
            try:
                parts.append(_to_scores(cycle, enabled, (yield from self._ask(cycle, enabled))))
            except PluginFailed as failure:
                _ignore(cycle, enabled, failure)
        sums: Iterable[int] = [0] * len(feasible)
        for part in parts:
            weighted = part.normalised if part.weight == 1 else [score * part.weight for score in part.normalised]
            sums = map(add, sums, weighted)
        return Scored(tuple(map(_to_score, zip(feasible, sums, strict=True))), tuple(parts))

    def _ask(self, cycle: Cycle, enabled: Enabled) -> Exchange[Any]:
        """Return a filter's or score's answers for the clusters that are still in, in order."""
        cycle.plugin, started = enabled.name, self._instrument.now()
        if enabled.remote is not None:
            clusters = cycle.clusters_left()
            answers = _usable(enabled, (yield from enabled.remote(cycle.unit, clusters, cycle.state)))
            _check_count(enabled, answers, clusters)
            answers = _checked(cycle, enabled, answers)
        else:
            answers = _ask_local(cycle, enabled)
        self._instrument.plugin(cycle.point, enabled.name, started)
        return answers

    def run_select(self, cycle: Cycle, scored: Sequence[ClusterScore]) -> Exchange[Sequence[ClusterScore]]:
        """Return the clusters that the chain of select plugins takes, in order."""
        cycle.point = "select"
        offered = set(map(_CLUSTER, scored))
        for enabled in self._selects:
            try:
                scored = yield from self._ask_select(cycle, enabled, scored, offered)
            except PluginFailed as failure:
                _ignore(cycle, enabled, failure)
        return scored

    def _ask_select(
        self, cycle: Cycle, enabled: Enabled, scored: Sequence[ClusterScore], offered: set[Cluster]
    ) -> Exchange[Sequence[ClusterScore]]:
        """Return what a plugin selects, and leave only that in `offered`."""
        cycle.plugin, started = enabled.name, self._instrument.now()
        if enabled.remote is not None:
            answer = yield from enabled.remote(cycle.unit, scored, cycle.state)
        else:
            assert enabled.local is not None
            answer = enabled.local(cycle.unit, scored, cycle.state)
        selected: Sequence[ClusterScore] = _usable(enabled, answer)
        if selected is scored and cycle.selections:
            names = cycle.selections[-1].clusters
        else:
            clusters = list(map(_CLUSTER, selected))
            names, taken = tuple(map(_NAME, clusters)), set(clusters)
            if len(taken) != len(names) or not offered >= taken:
                raise PluginFailed(_failure(enabled, "it selected a cluster twice, or one that was not offered"))
            offered &= taken
        cycle.selections.append(Selection(enabled.name, names))
        self._instrument.plugin("select", enabled.name, started)
        return selected

    def run_replicas(self, cycle: Cycle, clusters: Sequence[Cluster]) -> Exchange[Division]:
        """Return the division by the first replicas plugin, or by the next one when that is ignored."""
        cycle.point = "replicas"
        for enabled in self._replicas:
            try:
                return (yield from self._ask_replicas(cycle, enabled, clusters))
            except PluginFailed as failure:
                _ignore(cycle, enabled, failure)
        cycle.plugin = ""
        raise PluginFailed(error(f"profile {self.profile.name!r} has no replicas plugin"))

    def _ask_replicas(self, cycle: Cycle, enabled: Enabled, clusters: Sequence[Cluster]) -> Exchange[Division]:
        cycle.plugin, started = enabled.name, self._instrument.now()
        if enabled.remote is not None:
            answer = yield from enabled.remote(cycle.unit, clusters, cycle.state)
        else:
            assert enabled.local is not None
            answer = enabled.local(cycle.unit, clusters, cycle.state)
        division: Division = _usable(enabled, answer)
        offered = {cluster.name for cluster in clusters}
        for name, replicas in division.replicas.items():
            if name not in offered or not isinstance(replicas, int) or replicas < 0:
                raise PluginFailed(_failure(enabled, f"it gave {replicas!r} replicas to {name!r}"))
        self._instrument.plugin("replicas", enabled.name, started)
        return division


def _ask_local(cycle: Cycle, enabled: Enabled) -> Sequence[Any]:
    """Return a local plugin's answers, asking only about clusters that it has not been asked about for such units."""
    ask, unit, state, clusters, feasible = enabled.local, cycle.unit, cycle.state, cycle.clusters, cycle.feasible
    assert ask is not None
    shape = None if enabled.shape is None else enabled.shape(unit)
    if shape is None:
        return _checked(cycle, enabled, [ask(unit, cluster, state) for cluster in cycle.clusters_left()])
    known = enabled.memo.answers(shape, clusters)
    if positions := known.to_ask(feasible):
        known.fill_in(positions, _checked(cycle, enabled, [ask(unit, clusters[at], state) for at in positions]))
    return cycle.pick(known.values)


def _checked(cycle: Cycle, enabled: Enabled, answers: Sequence[Any]) -> Sequence[Any]:
    """Return a plugin's answers about clusters; scores that are none, or beyond 0..100 for good, are failures."""
    if cycle.point == "score":
        if Status in set(map(type, answers)):
            answers = [_usable(enabled, answer) for answer in answers]
        if enabled.normalise is None:
            _check_scores(enabled, answers)
    return answers


_REMOTE = {
    "filter": "filter_clusters",
    "score": "score_clusters",
    "select": "select_clusters",
    "replicas": "replicas_of_clusters",
}


def _enable(
    profile: Profile, registry: PluginRegistry, made: dict[str, Any], moves: Moves, point: str
) -> tuple[Enabled, ...]:
    """Return the plugins of one extension point; each plugin is made once for all its points."""
    refs: tuple[PluginRef, ...] = getattr(profile, point)
    check_unique(point, refs)
    enabled = []
    for ref in refs:
        if ref.name not in made:
            arguments = profile.arguments.get(ref.name) or {}
            if not isinstance(arguments, Mapping):
                raise PluginError(f"pluginConfig of {ref.name!r}: args must be an object")
            made[ref.name] = registry.make(ref.name, dict(arguments))
        plugin = made[ref.name]
        local, remote = getattr(plugin, point, None), getattr(plugin, _REMOTE[point], None)
        if local is None and remote is None:
            raise PluginError(f"plugin {ref.name!r} cannot be enabled for {point}: it has no {point}()")
        is_optional = bool(getattr(plugin, "is_optional", False))
        normalise = getattr(plugin, "normalise", None)
        shape = getattr(plugin, f"{point}_shape", None) or getattr(plugin, "shape", None)
        awaits = plugin.AWAITS if isinstance(plugin, Awaiting) else Change.ANY
        memo = Memo(moves)
        enabled.append(Enabled(ref.name, ref.weight, local, remote, normalise, shape, is_optional, awaits, memo))
    return tuple(enabled)


def _to_scores(cycle: Cycle, enabled: Enabled, raw: Sequence[Any]) -> PluginScores:
    """Return the plugin's raw scores with their normalised form."""
    if enabled.normalise is None:
        return PluginScores(enabled.name, enabled.weight, tuple(raw), tuple(raw))
    normalised = enabled.normalise(cycle.unit, raw, cycle.state)
    _check_count(enabled, normalised, raw)
    _check_scores(enabled, normalised)
    return PluginScores(enabled.name, enabled.weight, tuple(raw), tuple(normalised))


def _usable(enabled: Enabled, answer: Any) -> Any:
    """Return the answer unless it is a Status that says no."""
    if not isinstance(answer, Status):
        return answer
    named = Status(answer.code, answer.reasons, enabled.name)
    if answer.code is Code.UNSCHEDULABLE:
        raise Unselectable(named)
    raise PluginFailed(named)


def _check_answered(enabled: Enabled, statuses: Sequence[Status]) -> None:
    for status in statuses:
        if status.code is Code.ERROR:
            raise PluginFailed(Status(status.code, status.reasons, enabled.name))


def _ignore(cycle: Cycle, enabled: Enabled, failure: PluginFailed) -> None:
    """Note that the decision goes on without a plugin; raise its failure when it must not."""
    if not enabled.is_optional:
        raise failure
    cycle.ignored.append(Ignored(cycle.point, enabled.name, failure.status.reasons))


def _failure(enabled: Enabled, reason: str) -> Status:
    return Status(Code.ERROR, (reason,), enabled.name)


def _check_scores(enabled: Enabled, scores: Sequence[int]) -> None:
    if scores and (set(map(type, scores)) != {int} or min(scores) < 0 or max(scores) > SCORE_MAX):
        raise PluginFailed(_failure(enabled, f"its scores are not integers from 0 to {SCORE_MAX}: {list(scores)[:10]}"))


def _check_count(enabled: Enabled, answers: Sequence[Any], asked: Sequence[Any]) -> None:
    if len(answers) != len(asked):
        raise PluginFailed(_failure(enabled, f"{len(answers)} answers for {len(asked)} clusters"))
