"""Scheduling profiles: enabled plugins, their order, weights and arguments (docs/reference/scheduling.md).

A `Profile` holds names only and is comparable; `Framework` (runner.py) holds its plugin instances. The order of filters
is significant: the first rejection counts. A SchedulingProfile object changes each extension point; unless it names
another, the replicas plugin follows from the policy's replicasStrategy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from federation.apimachinery.errors import PluginError

DEFAULT_NAME = "default-scheduler"
ALL = "*"
POINTS = ("filter", "score", "select", "replicas")
"""The extension points, in the order in which they run."""


@dataclass(frozen=True, slots=True)
class PluginRef:
    """One enabled plugin; `weight` multiplies its normalised scores."""

    name: str
    weight: int = 1


Refs = tuple[PluginRef, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """The enabled plugins per extension point, in order. `arguments` maps plugin names to their pluginConfig args."""

    name: str = DEFAULT_NAME
    filter: Refs = ()
    score: Refs = ()
    select: Refs = ()
    replicas: Refs = ()
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)


def refs(*names: str) -> Refs:
    """Return enabled plugins of weight 1."""
    return tuple(PluginRef(name) for name in names)


SPREAD_PLUGIN = "ClusterCapacityWeight"
BINPACK_PLUGIN = "PreferenceBinPack"

DEFAULT_PROFILE = Profile(
    filter=refs(
        "APIResources",
        "TaintToleration",
        "PlacementFilter",
        "ClusterAffinity",
        "ClusterReady",
        "ClusterTerminating",
        "ClusterEvicted",
        "ClusterNodesFit",
    ),
    score=refs(
        "TaintToleration",
        "ClusterResourcesBalancedAllocation",
        "ClusterResourcesLeastAllocated",
        "ClusterAffinity",
    ),
    select=refs("PrioritySort", "MaxCluster"),
    replicas=refs(SPREAD_PLUGIN),
)


def apply_profile(base: Profile, profile: Mapping[str, Any]) -> Profile:
    """Return `base` changed by a SchedulingProfile object.

    Per extension point, `disabled` plugins are removed ("*": all), then `enabled` ones are appended in order. Replicas
    plugins are prepended instead, because only the first one runs. KubeAdmiral spells the weight `wait` and
    ignores it; here `weight` and `wait` both work, a missing one is 1.
    """
    spec = profile.get("spec") or {}
    plugins = spec.get("plugins") or {}
    arguments = dict(base.arguments)
    for config in spec.get("pluginConfig") or ():
        arguments[str(config["name"])] = config.get("args") or {}
    return replace(
        base,
        name=str((profile.get("metadata") or {}).get("name") or base.name),
        filter=_merge(base.filter, plugins.get("filter")),
        score=_merge(base.score, plugins.get("score")),
        select=_merge(base.select, plugins.get("select")),
        replicas=_merge_replicas(base.replicas, plugins.get("replicas")),
        arguments=arguments,
    )


def with_strategy(profile: Profile, *, is_binpack: bool) -> Profile:
    """Return the profile with the replicas plugin for the policy's replicasStrategy."""
    if not is_binpack:
        return profile
    names = (BINPACK_PLUGIN if ref.name == SPREAD_PLUGIN else ref.name for ref in profile.replicas)
    return replace(profile, replicas=refs(*dict.fromkeys(names)))


def with_packing(profile: Profile) -> Profile:
    """Return the profile for objects of JobQueues: the fullest cluster with room is preferred instead of the emptiest.

    Small jobs that are spread over all clusters leave no cluster with room for a large one.
    """
    spread, packed = "ClusterResourcesLeastAllocated", "ClusterResourcesMostAllocated"
    if any(ref.name == packed for ref in profile.score) or all(ref.name != spread for ref in profile.score):
        return profile
    score = (replace(ref, name=packed) if ref.name == spread else ref for ref in profile.score)
    return replace(profile, score=tuple(score))


def _merge(base: Refs, changes: Mapping[str, Any] | None) -> Refs:
    if not changes:
        return base
    kept, added = _split(base, changes)
    return (*kept, *added)


def _merge_replicas(base: Refs, changes: Mapping[str, Any] | None) -> Refs:
    if not changes:
        return base
    kept, added = _split(base, changes)
    named = {ref.name for ref in added}
    return (*added, *(ref for ref in kept if ref.name not in named))


def _split(base: Refs, changes: Mapping[str, Any]) -> tuple[Refs, Refs]:
    """Return the remaining default plugins and the added ones."""
    disabled = {entry.get("name") for entry in changes.get("disabled") or ()}
    kept = () if ALL in disabled else tuple(ref for ref in base if ref.name not in disabled)
    added = (PluginRef(str(entry.get("name") or ""), _weight(entry)) for entry in changes.get("enabled") or ())
    return kept, tuple(added)


def _weight(entry: Mapping[str, Any]) -> int:
    return int(next((entry[key] for key in ("weight", "wait") if entry.get(key) is not None), 1))


def check_unique(point: str, enabled: Iterable[PluginRef]) -> None:
    """Raise PluginError when a plugin is enabled twice at one extension point."""
    seen: set[str] = set()
    for ref in enabled:
        if ref.name in seen:
            raise PluginError(f"plugin {ref.name!r} is enabled twice for {point}")
        seen.add(ref.name)
