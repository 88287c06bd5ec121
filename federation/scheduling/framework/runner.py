"""Run the plugins of one profile, extension point by extension point, and check what they answer.

A `Framework` is a profile with its plugins made; it lives as long as the profile does not change. Filters run plugin by
plugin over the clusters that are still in, so that a remote plugin gets all of them in one call. Every run is a
generator: it yields what remote plugins want to ask and returns the outcome, so the engine never waits (STYLE 31).

Results of filter and score are kept per snapshot for units of the same shape: a thousand Deployments under one policy
ask the same questions. It decides nothing: `engine.py` does.
"""

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from federation.base.errors import PluginError
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.instrument import Instrument
from federation.scheduling.framework.profile import PluginRef, Profile, check_unique
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.types import (
    SUCCESS,
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

SCORE_MAX = 100
_CACHED_SHAPES_MAX = 512


@dataclass(frozen=True, slots=True)
class Enabled:
    """One plugin at one extension point: made, with its method found, local or remote."""

    name: str
    weight: int
    plugin: Any
    local: Callable[..., Any] | None
    remote: Callable[..., Any] | None
    is_optional: bool
    """Whether decisions go on without it when it fails (`MayBeIgnored`)."""


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
    generation: int
    state: CycleState
    point: str = ""
    plugin: str = ""
    filter_key: Hashable = None
    selections: list[Selection] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)


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
        self._filters = _enable(profile, registry, made, "filter")
        self._scores = _enable(profile, registry, made, "score")
        self._selects = _enable(profile, registry, made, "select")
        self._replicas = _enable(profile, registry, made, "replicas")
        self._generation = -1
        self._filtered: dict[Hashable, Filtered] = {}
        self._scored: dict[Hashable, Scored] = {}

    def run_filters(self, cycle: Cycle) -> Exchange[Filtered]:
        """Return the clusters that every filter let pass; PluginFailed when one could not answer."""
        cycle.filter_key = self._shape(self._filters, cycle)
        if cycle.filter_key is not None and (known := self._filtered.get(cycle.filter_key)) is not None:
            return known
        cycle.point = "filter"
        feasible: Sequence[Cluster] = cycle.clusters
        rejected: dict[str, Status] = {}
        for enabled in self._filters:
            if not feasible:
                break
            try:
                statuses = yield from self._ask_filter(cycle, enabled, feasible)
                if statuses.count(SUCCESS) == len(statuses):
                    continue
                _check_answered(enabled, statuses)
            except PluginFailed as failure:
                _ignore(cycle, enabled, failure)
                continue
            passed = []
            for cluster, status in zip(feasible, statuses, strict=True):
                if status.code is Code.SUCCESS:
                    passed.append(cluster)
                else:
                    rejected[cluster.name] = Status(status.code, status.reasons, enabled.name)
            feasible = passed
        outcome = Filtered(tuple(feasible), rejected)
        if cycle.filter_key is not None:
            _keep(self._filtered, cycle.filter_key, outcome)
        return outcome

    def _ask_filter(self, cycle: Cycle, enabled: Enabled, clusters: Sequence[Cluster]) -> Exchange[Sequence[Status]]:
        cycle.plugin, started = enabled.name, self._instrument.now()
        if enabled.remote is not None:
            statuses: Sequence[Status] = yield from enabled.remote(cycle.unit, clusters, cycle.state)
            _check_count(enabled, statuses, clusters)
        else:
            ask, unit, state = enabled.local, cycle.unit, cycle.state
            assert ask is not None
            statuses = [ask(unit, cluster, state) for cluster in clusters]
        self._instrument.plugin("filter", enabled.name, started)
        return statuses

    def run_scores(self, cycle: Cycle, feasible: tuple[Cluster, ...]) -> Exchange[Scored]:
        """Return every feasible cluster's weighted sum of normalised scores."""
        shape = self._shape(self._scores, cycle) if cycle.filter_key is not None else None
        key = None if shape is None else (cycle.filter_key, shape)
        if key is not None and (known := self._scored.get(key)) is not None:
            return known
        cycle.point = "score"
        parts = []
        for enabled in self._scores:
            try:
                parts.append((yield from self._ask_score(cycle, enabled, feasible)))
            except PluginFailed as failure:
                _ignore(cycle, enabled, failure)
        sums = [0] * len(feasible)
        for part in parts:
            sums = [total + score * part.weight for total, score in zip(sums, part.normalised, strict=True)]
        outcome = Scored(tuple(map(ClusterScore, feasible, sums)), tuple(parts))
        if key is not None:
            _keep(self._scored, key, outcome)
        return outcome

    def _ask_score(self, cycle: Cycle, enabled: Enabled, clusters: Sequence[Cluster]) -> Exchange[PluginScores]:
        cycle.plugin, started, unit, state = enabled.name, self._instrument.now(), cycle.unit, cycle.state
        if enabled.remote is not None:
            answer = yield from enabled.remote(unit, clusters, state)
            raw = _usable(enabled, answer)
            _check_count(enabled, raw, clusters)
        else:
            ask = enabled.local
            assert ask is not None
            raw = [ask(unit, cluster, state) for cluster in clusters]
            if Status in map(type, raw):
                raw = [_usable(enabled, answer) for answer in raw]
        normalise = getattr(enabled.plugin, "normalise", None)
        normalised = raw if normalise is None else normalise(unit, raw, state)
        _check_count(enabled, normalised, clusters)
        _check_scores(enabled, normalised)
        self._instrument.plugin("score", enabled.name, started)
        return PluginScores(enabled.name, enabled.weight, tuple(raw), tuple(normalised))

    def run_select(self, cycle: Cycle, scored: Sequence[ClusterScore]) -> Exchange[Sequence[ClusterScore]]:
        """Return the clusters that the chain of select plugins takes, in order."""
        cycle.point = "select"
        for enabled in self._selects:
            try:
                scored = yield from self._ask_select(cycle, enabled, scored)
            except PluginFailed as failure:
                _ignore(cycle, enabled, failure)
        return scored

    def _ask_select(
        self, cycle: Cycle, enabled: Enabled, scored: Sequence[ClusterScore]
    ) -> Exchange[Sequence[ClusterScore]]:
        cycle.plugin, started = enabled.name, self._instrument.now()
        if enabled.remote is not None:
            answer = yield from enabled.remote(cycle.unit, scored, cycle.state)
        else:
            assert enabled.local is not None
            answer = enabled.local(cycle.unit, scored, cycle.state)
        before = {entry.cluster.name for entry in scored}
        selected: Sequence[ClusterScore] = _usable(enabled, answer)
        names = tuple(entry.cluster.name for entry in selected)
        if len(set(names)) != len(names) or not before.issuperset(names):
            raise PluginFailed(_failure(enabled, "it selected a cluster twice, or one that was not offered"))
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

    def _shape(self, plugins: Sequence[Enabled], cycle: Cycle) -> Hashable:
        """Return all of the unit that these plugins look at, None when one of them does not say."""
        if cycle.generation != self._generation:
            self._generation = cycle.generation
            self._filtered.clear()
            self._scored.clear()
        shape = []
        for enabled in plugins:
            ask = getattr(enabled.plugin, "shape", None)
            part = None if ask is None else ask(cycle.unit)
            if part is None:
                return None
            shape.append(part)
        return tuple(shape)


_REMOTE = {
    "filter": "filter_clusters",
    "score": "score_clusters",
    "select": "select_clusters",
    "replicas": "replicas_of_clusters",
}


def _enable(profile: Profile, registry: PluginRegistry, made: dict[str, Any], point: str) -> tuple[Enabled, ...]:
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
        enabled.append(Enabled(ref.name, ref.weight, plugin, local, remote, is_optional))
    return tuple(enabled)


def _keep(cache: dict[Hashable, T], key: Hashable, value: T) -> None:
    """Remember a result; the oldest goes when there are too many shapes."""
    if len(cache) >= _CACHED_SHAPES_MAX:
        del cache[next(iter(cache))]
    cache[key] = value


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


def _check_count(enabled: Enabled, answers: Sequence[Any], clusters: Sequence[Cluster]) -> None:
    if len(answers) != len(clusters):
        raise PluginFailed(_failure(enabled, f"{len(answers)} answers for {len(clusters)} clusters"))
