"""Probable mistakes in policies, and parts of a SchedulingProfile that make decisions fail.

Policies stay in force, because KubeAdmiral accepts them and stricter rules would break existing manifests. A warning
names the field and its effect. Admission returns warnings, and refuses profiles with problems; the schedule controller
emits both as events, because objects may have been stored without admission. Pure.
"""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from federation.api.selectors import compile_cluster_terms
from federation.apimachinery.errors import PluginError
from federation.scheduling.framework.enabledplugin import runs_at
from federation.scheduling.framework.profile import (
    BINPACK_PLUGIN,
    DEFAULT_PROFILE,
    POINTS,
    SPREAD_PLUGIN,
    Profile,
    apply_profile,
)
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
    problems = (f"{field}: {text}" for field, text in profile_problems(source, installed))
    running = {SPREAD_PLUGIN, BINPACK_PLUGIN}.union(*({ref.name for ref in getattr(profile, at)} for at in POINTS))
    configs = enumerate((source.get("spec") or {}).get("pluginConfig") or ())
    unused = (
        f"spec.pluginConfig[{index}]: {config.get('name')} does not run in this profile"
        for index, config in configs
        if config.get("name") not in running
    )
    return [*problems, *unused]


def profile_problems(source: Mapping[str, Any], installed: PluginRegistry) -> Iterator[tuple[str, str]]:
    """Yield field and text of what makes each decision with a SchedulingProfile fail.

    Names that are not installed are not among it: `missing_plugins`.
    """
    spec = source.get("spec") or {}
    plugins: dict[str, Any] = {}
    configured = {str(config.get("name")) for config in spec.get("pluginConfig") or ()}
    for index, config in enumerate(spec.get("pluginConfig") or ()):
        arguments, at = config.get("args"), f"spec.pluginConfig[{index}].args"
        if arguments is not None and not isinstance(arguments, Mapping):
            yield at, "write an object"
        else:
            yield from _make(plugins, installed, str(config.get("name")), dict(arguments or {}), at)
    for point, at, entry in _enabled(spec):
        name = str(entry.get("name") or "")
        if name not in configured and name not in plugins:
            yield from _make(plugins, installed, name, {}, f"{at}.name")
        if name in plugins and not runs_at(plugins[name], point):
            points = ", ".join(each for each in POINTS if runs_at(plugins[name], each))
            yield f"{at}.name", f"{name} does not run here; enable it in {points}"
    for point in POINTS:
        changes = (spec.get("plugins") or {}).get(point)
        names = [ref.name for ref in getattr(apply_profile(DEFAULT_PROFILE, source), point)] if changes else []
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"spec.plugins.{point}.enabled", f"{name} runs there already; disable it to change its place"


def missing_plugins(
    source: Mapping[str, Any], installed: PluginRegistry, webhooks: Collection[str]
) -> Iterator[tuple[str, str, bool]]:
    """Yield field, text and whether it is called a webhook, of each enabled plugin that nothing provides."""
    known = {*installed.names, *webhooks}
    for _, at, entry in _enabled(source.get("spec") or {}):
        name, is_webhook = str(entry.get("name") or ""), entry.get("type") == "Webhook"
        if name in known:
            continue
        if is_webhook:
            text = "no SchedulerPluginWebhookConfiguration has this name yet; until then each decision with it fails"
        else:
            nearest = difflib.get_close_matches(name, installed.names, 1, 0.5)
            meant = f"did you mean {nearest[0]}?" if nearest else f"installed are {', '.join(installed.names)}."
            text = f"there is no plugin {name!r}; {meant} A plugin that is reached over HTTP has type: Webhook"
        yield f"{at}.name", text, is_webhook


def _make(
    plugins: dict[str, Any], installed: PluginRegistry, name: str, arguments: dict[str, Any], at: str
) -> Iterator[tuple[str, str]]:
    """Add an installed plugin to `plugins`, or yield why it cannot be made."""
    if name in installed.names:
        try:
            plugins[name] = installed.make(name, arguments)
        except PluginError as problem:
            yield at, str(problem)


def _enabled(spec: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield extension point, field and entry of each plugin that a profile enables."""
    for point in POINTS:
        for index, entry in enumerate(((spec.get("plugins") or {}).get(point) or {}).get("enabled") or ()):
            yield point, f"spec.plugins.{point}.enabled[{index}]", entry


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
        if operator == "Exists" and toleration.get("value"):
            yield f"{at}.value: with operator Exists every value is tolerated; leave it out, as Kubernetes demands"
        if (effect := toleration.get("effect") or "") not in _EFFECTS:
            yield f"{at}.effect: {effect!r} is none of {', '.join(Effect)}, so it tolerates nothing"
        elif toleration.get("tolerationSeconds") is not None and effect not in ("", Effect.NO_EXECUTE):
            yield f"{at}.tolerationSeconds: it counts for NoExecute alone; leave it out for {effect}"


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
