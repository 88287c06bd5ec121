"""One plugin at one extension point of a profile, and the checks of its results.

Plugins may be third-party code: every result is validated here before anything depends on it.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.errors import PluginError
from federation.scheduling.framework.cycle import IgnoredPlugin, PluginFailed, SchedulingCycle, UnschedulableError
from federation.scheduling.framework.normalization import SCORE_MAX
from federation.scheduling.framework.profile import PluginRef, Profile, check_unique
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.types import SUCCESS, ClusterChange, Code, SchedulingUnit, Status

WEIGHT_MAX = 2**31 - 1
"""Keeps the sum over all plugins within the 64 bit integers of an explanation."""
_REMOTE = {
    "filter": "filter_clusters",
    "score": "score_clusters",
    "select": "select_clusters",
    "replicas": "replicas_of_clusters",
}


@dataclass(frozen=True, slots=True)
class EnabledPlugin:
    """A plugin, local or remote. `cache_key` is None when its answers must not be reused."""

    name: str
    weight: int
    local: Callable[..., Any] | None
    each: Callable[..., Any] | None
    """`filter_each` or `score_each`: the same as `local` for all clusters at once."""
    remote: Callable[..., Any] | None
    normalise: Callable[..., Any] | None
    cache_key: Callable[[SchedulingUnit], Hashable] | None
    is_ignorable: bool
    """Whether the cycle continues without the plugin when it fails."""
    requeue_on: ClusterChange
    """Cluster changes that can make a rejected cluster feasible (`REQUEUE_ON`)."""
    depends_on_current: bool
    """Whether its result differs for clusters that run the unit (`DEPENDS_ON_CURRENT`)."""
    depends_on_resources: bool
    """Whether its result may change with a report of resources (`DEPENDS_ON_RESOURCES`)."""
    is_lenient: bool
    """Whether it rejects no cluster when it would reject all (`IS_LENIENT`)."""


def enable_plugins(
    profile: Profile, registry: PluginRegistry, made: dict[str, Any], point: str
) -> tuple[EnabledPlugin, ...]:
    """Return the plugins of one extension point. `made` holds the instances, one per plugin for all its points."""
    refs: tuple[PluginRef, ...] = getattr(profile, point)
    check_unique(point, refs)
    enabled = []
    for ref in refs:
        if ref.weight > WEIGHT_MAX:
            raise PluginError(f"plugin {ref.name!r}: weight {ref.weight} is more than {WEIGHT_MAX}")
        if ref.name not in made:
            arguments = profile.arguments.get(ref.name) or {}
            if not isinstance(arguments, Mapping):
                raise PluginError(f"pluginConfig of {ref.name!r}: args must be an object")
            made[ref.name] = registry.make(ref.name, dict(arguments))
        plugin = made[ref.name]
        local, remote = getattr(plugin, point, None), getattr(plugin, _REMOTE[point], None)
        if not runs_at(plugin, point):
            raise PluginError(f"plugin {ref.name!r} cannot be enabled for {point}: it has no {point}()")
        enabled.append(
            EnabledPlugin(
                name=ref.name,
                weight=ref.weight,
                local=local,
                each=getattr(plugin, f"{point}_each", None) if remote is None else None,
                remote=remote,
                normalise=getattr(plugin, "normalise", None),
                cache_key=_cache_key_of(plugin, point) if remote is None else None,
                is_ignorable=bool(getattr(plugin, "is_ignorable", False)),
                requeue_on=getattr(plugin, "REQUEUE_ON", ClusterChange.ANY),
                depends_on_current=bool(getattr(plugin, "DEPENDS_ON_CURRENT", False)),
                depends_on_resources=bool(getattr(plugin, "DEPENDS_ON_RESOURCES", True)),
                is_lenient=bool(getattr(plugin, "IS_LENIENT", False)),
            )
        )
    return tuple(enabled)


def runs_at(plugin: object, point: str) -> bool:
    """Return whether a plugin can be enabled at an extension point."""
    return any(getattr(plugin, method, None) is not None for method in (point, _REMOTE[point]))


def _cache_key_of(plugin: Any, point: str) -> Callable[[SchedulingUnit], Hashable] | None:
    own = getattr(plugin, f"{point}_cache_key", None)
    return own if own is not None or point == "select" else getattr(plugin, "cache_key", None)


def cache_keys(plugins: Sequence[EnabledPlugin], unit: SchedulingUnit) -> tuple[Hashable, ...] | None:
    """Return the cache keys of all plugins for the unit; None when one of them has none."""
    keys: list[Hashable] = []
    for enabled in plugins:
        key = None if enabled.cache_key is None else enabled.cache_key(unit)
        if key is None:
            return None
        keys.append(key)
    return tuple(keys)


def check_status(enabled: EnabledPlugin, answer: Any) -> Any:
    """Return the result, or raise the error for a Status that is no success."""
    if not isinstance(answer, Status):
        return answer
    named = Status(answer.code, answer.reasons, enabled.name)
    if answer.code is Code.UNSCHEDULABLE:
        raise UnschedulableError(named)
    raise PluginFailed(named)


def check_no_error(enabled: EnabledPlugin, statuses: Sequence[Status]) -> None:
    """Raise PluginFailed when one of the statuses is an error."""
    if statuses.count(SUCCESS) == len(statuses):
        return
    for status in statuses:
        if status.code is Code.ERROR:
            raise PluginFailed(Status(status.code, status.reasons, enabled.name))


def check_raw_scores(enabled: EnabledPlugin, answers: Sequence[Any]) -> Sequence[Any]:
    """Return a plugin's raw scores. Without `normalise` they must be 0..100."""
    if Status in set(map(type, answers)):
        answers = [check_status(enabled, answer) for answer in answers]
    if enabled.normalise is None:
        check_scores(enabled, answers)
    return answers


def check_scores(enabled: EnabledPlugin, scores: Sequence[int]) -> None:
    """Raise PluginFailed unless all are integers from 0 to 100."""
    if scores and (set(map(type, scores)) != {int} or min(scores) < 0 or max(scores) > SCORE_MAX):
        raise PluginFailed(
            failure_of(enabled, f"its scores are not integers from 0 to {SCORE_MAX}: {list(scores)[:10]}")
        )


def check_count(enabled: EnabledPlugin, answers: Sequence[Any], asked: Sequence[Any]) -> None:
    """Raise PluginFailed unless there is one answer per cluster."""
    if len(answers) != len(asked):
        raise PluginFailed(failure_of(enabled, f"{len(answers)} answers for {len(asked)} clusters"))


def ignore_or_raise(cycle: SchedulingCycle, enabled: EnabledPlugin, failed: PluginFailed) -> None:
    """Record that the cycle continues without a plugin; raise its failure when the plugin is not ignorable."""
    if not enabled.is_ignorable:
        raise failed
    cycle.ignored.append(IgnoredPlugin(cycle.point, enabled.name, failed.status.reasons))


def failure_of(enabled: EnabledPlugin, reason: str) -> Status:
    """Return the ERROR status of a plugin whose result is invalid."""
    return Status(Code.ERROR, (reason,), enabled.name)
