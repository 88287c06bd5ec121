"""One plugin at one extension point of a profile: made, with its methods found, and its answers checked.

Whatever a plugin answers is judged here before anything depends on it: a plugin may be a stranger's.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.base.errors import PluginError
from federation.scheduling.framework.cycle import Cycle, Ignored, PluginFailed, Unselectable
from federation.scheduling.framework.interfaces import Awaiting
from federation.scheduling.framework.profile import PluginRef, Profile, check_unique
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.scores import SCORE_MAX
from federation.scheduling.framework.types import Change, Code, SchedulingUnit, Status

WEIGHT_MAX = 2**31 - 1
"""With it the sum over all plugins surely fits into the 64 bits of an explanation's numbers."""
_REMOTE = {
    "filter": "filter_clusters",
    "score": "score_clusters",
    "select": "select_clusters",
    "replicas": "replicas_of_clusters",
}


@dataclass(frozen=True, slots=True)
class Enabled:
    """A plugin, local or remote. Its `shape` is None when answers must never be used again."""

    name: str
    weight: int
    local: Callable[..., Any] | None
    remote: Callable[..., Any] | None
    normalise: Callable[..., Any] | None
    shape: Callable[[SchedulingUnit], Hashable] | None
    is_optional: bool
    """Whether decisions go on without it when it fails (`MayBeIgnored`)."""
    awaits: Change
    """Which changes of a cluster can turn its rejection there around (`Awaiting`)."""
    minds_current: bool
    """Whether its answers differ where the unit is (`MindsCurrent`)."""
    is_lenient: bool
    """Whether it takes out no cluster when it would take out all (`Lenient`)."""


def enable(profile: Profile, registry: PluginRegistry, made: dict[str, Any], point: str) -> tuple[Enabled, ...]:
    """Return the plugins of one extension point; each plugin is made once for all its points."""
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
        if local is None and remote is None:
            raise PluginError(f"plugin {ref.name!r} cannot be enabled for {point}: it has no {point}()")
        enabled.append(
            Enabled(
                name=ref.name,
                weight=ref.weight,
                local=local,
                remote=remote,
                normalise=getattr(plugin, "normalise", None),
                shape=_shape_of(plugin, point) if remote is None else None,
                is_optional=bool(getattr(plugin, "is_optional", False)),
                awaits=plugin.AWAITS if isinstance(plugin, Awaiting) else Change.ANY,
                minds_current=bool(getattr(plugin, "MINDS_CURRENT", False)),
                is_lenient=bool(getattr(plugin, "IS_LENIENT", False)),
            )
        )
    return tuple(enabled)


def _shape_of(plugin: Any, point: str) -> Callable[[SchedulingUnit], Hashable] | None:
    own = getattr(plugin, f"{point}_shape", None)
    return own if own is not None or point == "select" else getattr(plugin, "shape", None)


def shapes_of(plugins: Sequence[Enabled], unit: SchedulingUnit) -> tuple[Hashable, ...] | None:
    """Return what of the unit all the plugins' answers depend on; None when one of them cannot tell."""
    shapes: list[Hashable] = []
    for enabled in plugins:
        shape = None if enabled.shape is None else enabled.shape(unit)
        if shape is None:
            return None
        shapes.append(shape)
    return tuple(shapes)


def usable(enabled: Enabled, answer: Any) -> Any:
    """Return the answer unless it is a Status that says no."""
    if not isinstance(answer, Status):
        return answer
    named = Status(answer.code, answer.reasons, enabled.name)
    if answer.code is Code.UNSCHEDULABLE:
        raise Unselectable(named)
    raise PluginFailed(named)


def check_answered(enabled: Enabled, statuses: Sequence[Status]) -> None:
    """Raise PluginFailed when one of the statuses is an error."""
    for status in statuses:
        if status.code is Code.ERROR:
            raise PluginFailed(Status(status.code, status.reasons, enabled.name))


def check_raw(enabled: Enabled, answers: Sequence[Any]) -> Sequence[Any]:
    """Return a plugin's raw scores; those that are none, or beyond 0..100 for good, are failures."""
    if Status in set(map(type, answers)):
        answers = [usable(enabled, answer) for answer in answers]
    if enabled.normalise is None:
        check_scores(enabled, answers)
    return answers


def check_scores(enabled: Enabled, scores: Sequence[int]) -> None:
    """Raise PluginFailed unless all are integers from 0 to 100."""
    if scores and (set(map(type, scores)) != {int} or min(scores) < 0 or max(scores) > SCORE_MAX):
        raise PluginFailed(failure(enabled, f"its scores are not integers from 0 to {SCORE_MAX}: {list(scores)[:10]}"))


def check_count(enabled: Enabled, answers: Sequence[Any], asked: Sequence[Any]) -> None:
    """Raise PluginFailed unless there are as many answers as questions."""
    if len(answers) != len(asked):
        raise PluginFailed(failure(enabled, f"{len(answers)} answers for {len(asked)} clusters"))


def ignore(cycle: Cycle, enabled: Enabled, failed: PluginFailed) -> None:
    """Note that the decision goes on without a plugin; raise its failure when it must not."""
    if not enabled.is_optional:
        raise failed
    cycle.ignored.append(Ignored(cycle.point, enabled.name, failed.status.reasons))


def failure(enabled: Enabled, reason: str) -> Status:
    """Return the status of a plugin that broke the protocol."""
    return Status(Code.ERROR, (reason,), enabled.name)
