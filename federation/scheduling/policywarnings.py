"""Warnings about policies and profiles that are valid but probably mistaken.

They stay in force, because KubeAdmiral accepts them and stricter rules would break existing manifests. A warning names
the field and its effect. Pure; the schedule controller emits the warnings as events.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from federation.api.selectors import compile_cluster_terms
from federation.apimachinery.errors import PluginError
from federation.scheduling.framework.profile import BINPACK_PLUGIN, POINTS, SPREAD_PLUGIN, Profile
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.types import Effect, SchedulingMode

_OPERATORS = ("", "Exists", "Equal")
_EFFECTS = ("", *Effect)


def policy_warnings(policy: Mapping[str, Any]) -> list[str]:
    """Return warnings about a PropagationPolicy or ClusterPropagationPolicy, one sentence each."""
    spec = policy.get("spec") or {}
    return [*_about_affinity(spec), *_about_tolerations(spec), *_about_placement(spec), *_about_limits(spec)]


def profile_warnings(source: Mapping[str, Any], profile: Profile, installed: PluginRegistry) -> list[str]:
    """Return warnings about a SchedulingProfile; `profile` is its compiled form.

    Plugins that are not installed are allowed: they may be webhooks that are configured later.
    """
    points = {point: [ref.name for ref in getattr(profile, point)] for point in POINTS}
    configs = (source.get("spec") or {}).get("pluginConfig") or ()
    return [*_about_points(points), *_about_arguments(configs, points, installed)]


def _about_points(points: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for point, running in points.items():
        for name in sorted({name for name in running if running.count(name) > 1}):
            yield f"spec.plugins.{point}.enabled: {name} runs there already; disable it to change its place"


def _about_arguments(
    configs: Sequence[Mapping[str, Any]], points: Mapping[str, Sequence[str]], installed: PluginRegistry
) -> Iterator[str]:
    able_to_run = {SPREAD_PLUGIN, BINPACK_PLUGIN}.union(*points.values())
    for index, config in enumerate(configs):
        at, name, arguments = f"spec.pluginConfig[{index}]", str(config.get("name")), config.get("args")
        if name not in able_to_run:
            yield f"{at}: {name} does not run in this profile"
        elif arguments is not None and not isinstance(arguments, Mapping):
            yield f"{at}.args: write an object"
        elif name in installed.names:
            try:
                installed.make(name, dict(arguments or {}))
            except PluginError as problem:
                yield f"{at}.args: {problem}"


def _about_affinity(spec: Mapping[str, Any]) -> Iterator[str]:
    yield from _about_terms("spec.clusterAffinity", spec.get("clusterAffinity"))
    for place, group in enumerate(spec.get("clusterGroups") or ()):
        at = f"spec.clusterGroups[{place}]"
        yield from _about_terms(f"{at}.clusterAffinity", group.get("clusterAffinity"))
        if place == 0 and (group.get("when") == "Overflow" or group.get("returnPolicy") == "WhenRoom"):
            yield f"{at}: when and returnPolicy have no effect in the first group; leave them out"


def _about_terms(at: str, terms: Iterable[Mapping[str, Any]] | None) -> Iterator[str]:
    for index, term in enumerate(compile_cluster_terms(terms).terms):
        if term.error:
            yield f"{at}[{index}] matches no cluster: {term.error}"
        elif not (term.labels or term.name_in or term.name_not_in):
            yield f"{at}[{index}] matches no cluster: it has no expression"


def _about_tolerations(spec: Mapping[str, Any]) -> Iterator[str]:
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        at, operator = f"spec.tolerations[{index}]", toleration.get("operator") or ""
        if operator not in _OPERATORS:
            yield f"{at}.operator: {operator!r} is neither Exists nor Equal, so it tolerates nothing"
        elif not toleration.get("key") and operator != "Exists":
            yield f"{at}.key is empty: it tolerates every taint with its value; write operator Exists or a key"
        if (effect := toleration.get("effect") or "") not in _EFFECTS:
            yield f"{at}.effect: {effect!r} is none of {', '.join(Effect)}, so it tolerates nothing"


def _about_placement(spec: Mapping[str, Any]) -> Iterator[str]:
    listed: set[str] = set()
    entries = spec.get("placement") or ()
    for index, entry in enumerate(entries):
        at, cluster, preferences = f"spec.placement[{index}]", entry.get("cluster"), entry.get("preferences") or {}
        if cluster in listed:
            yield f"{at}.cluster: {cluster} is listed twice, and the later preferences count"
        listed.add(cluster)
        least, most = preferences.get("minReplicas") or 0, preferences.get("maxReplicas")
        if most is not None and least > most:
            yield f"{at}.preferences: minReplicas {least} is more than maxReplicas {most}"
    weights = [weight for entry in entries if (weight := (entry.get("preferences") or {}).get("weight")) is not None]
    is_weighed = spec.get("schedulingMode") == SchedulingMode.DIVIDE and spec.get("replicasStrategy") != "Binpack"
    if is_weighed and weights and not any(weights):
        yield "spec.placement: every weight is 0, so clusters get their minReplicas and no more; leave the weights out"


def _about_limits(spec: Mapping[str, Any]) -> Iterator[str]:
    if spec.get("maxClusters") == 0:
        yield "spec.maxClusters: 0 lets nothing be placed; leave it out for no limit"
    if spec.get("replicasStrategy") == "Binpack" and spec.get("schedulingMode") == SchedulingMode.DUPLICATE:
        yield "spec.replicasStrategy: Binpack divides replicas, and schedulingMode Duplicate divides none"
