"""Read the state of a workload in one cluster for `steps.py`, and put a step into its member object. Pure.

Member objects are read as their API servers return them: counts that are missing or of a wrong type are 0.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from federation.api import names
from federation.apimachinery import dotpaths, wellknown
from federation.apimachinery.resources import DAEMON_SETS, Resource
from federation.planning.rendering.drift import is_subset
from federation.planning.rendering.memberobject import Rendered, finish
from federation.planning.steps.steps import Step, Target, Unobserved
from federation.planning.steps.strategy import (
    ORDERED,
    Limits,
    is_paused,
    old_pods_kept,
    strategy_of,
    with_limits,
    with_strategy_of,
)
from federation.planning.waves.rolloutpart import POD_TEMPLATE, RolloutPart

_REPLICAS = ("spec", "replicas")
_IDENTITY = ("uid", "generation", "deletionTimestamp")
_CONTENT = (names.TEMPLATE_REVISION, names.TEMPLATE_HASH)
"""Annotations that say what a member object was written with."""


def to_target(
    resource: Resource,
    cluster: str,
    rendered: Rendered | None,
    live: Mapping[str, Any] | None,
    *,
    approved: Mapping[str, str] | None = None,
    needs_approval: bool = False,
    is_steered: bool = True,
    is_written: bool = False,
    keeps_replicas: bool = False,
    is_answering: bool = True,
    is_obstructed: bool = False,
    unobserved: Unobserved | None = None,
) -> Target:
    """Return the state of the workload in a cluster.

    `rendered` is the wanted member object, None if the cluster has left the placement. `live` is the member object,
    None without one. `approved` are the revisions that clusters may get, None for any; one that has no object yet may
    get any without `needs_approval`. `is_steered` says that the
    scheduler decides the replicas, `keeps_replicas` that an autoscaler in the member does, `is_written` that the wanted
    content was written before, `is_obstructed` that an object that is not ours has its name.
    """
    wanted = None if rendered is None else rendered.object
    if live is None:
        return Target(
            cluster,
            0 if wanted is None else replicas_of(wanted),
            wanted_strategy=strategy_of(resource, wanted or {}),
            exists=False,
            is_held=wanted is not None and needs_approval and not _is_approved(cluster, wanted, approved),
            is_departing=wanted is None,
            is_steered=is_steered,
            is_answering=is_answering,
            is_obstructed=is_obstructed,
            unobserved=unobserved,
        )
    replicas, status = replicas_of(live), live.get("status") or {}
    if rendered is not None and not keeps_replicas and is_written:
        # Other replicas are drift, which is corrected at once.
        replicas = replicas_of(rendered.object)
    is_leaving = bool(live["metadata"].get("deletionTimestamp"))
    strategy = strategy_of(resource, live)
    keeps = keeps_replicas and not is_leaving
    return Target(
        cluster,
        0 if wanted is None else replicas if keeps else replicas_of(wanted),
        replicas=0 if is_leaving else replicas,
        pods=_count(status, "replicas"),
        available=0 if is_leaving else _available(resource, status),
        strategy=strategy,
        wanted_strategy=strategy if wanted is None else strategy_of(resource, wanted),
        is_departing=wanted is None,
        is_steered=is_steered and not keeps,
        is_answering=is_answering,
        is_updating=strategy.is_rolling and _is_updating(resource, live, unobserved),
        has_old_template=wanted is not None and has_old_template(wanted, live),
        is_held=wanted is not None and _is_held(resource, cluster, wanted, approved),
        is_ordered=resource in ORDERED,
        unobserved=unobserved,
    )


def is_status_change(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether nothing but the status of a member object differs that `to_target` reads."""
    before, after = old["metadata"], new["metadata"]
    if "generation" not in after or any(before.get(field) != after.get(field) for field in _IDENTITY):
        return False
    held, found = before.get("annotations") or {}, after.get("annotations") or {}
    return held is found or all(held.get(name) == found.get(name) for name in _CONTENT)


def with_status(target: Target, resource: Resource, live: Mapping[str, Any], unobserved: Unobserved | None) -> Target:
    """Return the target with a newer status of its member object, which `is_status_change` says is the only change."""
    status, is_leaving = live.get("status") or {}, bool(live["metadata"].get("deletionTimestamp"))
    return replace(
        target,
        pods=_count(status, "replicas"),
        available=0 if is_leaving else _available(resource, status),
        is_updating=target.strategy.is_rolling and _is_updating(resource, live, unobserved),
        unobserved=unobserved,
    )


def replicas_of(workload: Mapping[str, Any]) -> int:
    """Return the replicas of a workload; 1 without a number, as Kubernetes does."""
    value = dotpaths.get(workload, _REPLICAS)
    return max(0, value) if type(value) is int else 1


def is_observed(live: Mapping[str, Any]) -> bool:
    """Return whether the member's controller has observed the newest generation of the object."""
    generation = live["metadata"].get("generation")
    return type(generation) is not int or _count(live.get("status") or {}, "observedGeneration") >= generation


def has_old_template(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Return whether writing the pod template of `wanted` would change that of `live`."""
    return has_old_part(POD_TEMPLATE, wanted, live)


def has_old_part(part: RolloutPart, wanted: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Return whether writing what a rollout brings of `wanted` would change it in `live`."""
    revision = _revision(live)
    if revision is not None:
        return revision != _revision(wanted)
    return not is_subset(part.of(wanted), part.of(live), field="template" if part.is_pod_template else "")


def to_copy(
    part: RolloutPart,
    cluster: str,
    rendered: Rendered,
    live: Mapping[str, Any] | None,
    *,
    resource: Resource,
    approved: Mapping[str, str],
    needs_approval: bool,
) -> Target:
    """Return what waves hold of an object that is not divided: `is_held`, and `has_old_template` of one that exists."""
    wanted = rendered.object
    if live is None:
        is_held = needs_approval and not _is_approved(cluster, wanted, approved)
        return Target(cluster, replicas_of(wanted), exists=False, is_held=is_held)
    return Target(
        cluster,
        replicas_of(wanted),
        has_old_template=has_old_part(part, wanted, live),
        is_held=_is_held(resource, cluster, wanted, approved),
    )


def to_unobserved(
    resource: Resource, before: Unobserved | None, live: Mapping[str, Any] | None, sent: Mapping[str, Any]
) -> Unobserved:
    """Return what a member may act by once `sent` is on its way, together with what was not observed `before`."""
    counts = [replicas_of(sent)]
    limits = [strategy_of(resource, sent).limits(counts[0])]
    has_template = False
    if live is not None:
        counts.append(replicas_of(live))
        limits.append(strategy_of(resource, live).limits(counts[1]))
        has_template = has_old_template(sent, live)
    if before is not None:
        counts += [before.low, before.high]
        limits.append(before.limits)
    return Unobserved(
        min(counts),
        max(counts),
        Limits(max(limit.surge for limit in limits), max(limit.unavailable for limit in limits)),
        has_template or (before is not None and before.has_template),
    )


def to_stepped(resource: Resource, rendered: Rendered, live: Mapping[str, Any] | None, step: Step) -> Rendered:
    """Return the member object with the step's replicas, pod template and limits.

    A member object that keeps its pod template keeps its update strategy, too. It is written only for other changes.
    One that waits for its replicas and is otherwise as it was written is not written for a newer generation alone.
    """
    wanted = rendered.object
    is_scaled = step.scales_while_paused and wanted["spec"].get("paused") is True
    is_waiting = step.replicas != replicas_of(wanted)
    if step.gets_template and step.limits is None and not is_waiting and not is_scaled:
        return rendered
    counts = {} if resource == DAEMON_SETS else {"replicas": step.replicas}
    obj = {**wanted, "spec": {**wanted["spec"], **counts}}
    if is_scaled:
        del obj["spec"]["paused"]
    if step.limits is not None:
        obj = with_limits(resource, obj, step.limits)
    if live is None:
        return finish(obj, {})
    if not step.gets_template:
        return _with_template_of(resource, obj, live)
    if is_waiting:
        kept = finish(_with_annotations_of(obj, live, names.SOURCE_GENERATION), {})
        if kept.hash == _annotations(live).get(names.TEMPLATE_HASH):
            return kept
    return finish(obj, {})


def to_held(part: RolloutPart, rendered: Rendered, live: Mapping[str, Any]) -> Rendered:
    """Return the member object of a custom resource with the part that it has in the member."""
    return _unless_written(part.put(rendered.object, part.of(live)), live)


def _with_template_of(resource: Resource, obj: dict[str, Any], live: Mapping[str, Any]) -> Rendered:
    """Return the object with the pod template and update strategy of the member; as it is if nothing else differs."""
    obj = with_strategy_of(resource, obj, live)
    obj["spec"]["template"] = _spec(live).get("template")
    return _unless_written(obj, live)


def _unless_written(obj: Mapping[str, Any], live: Mapping[str, Any]) -> Rendered:
    """Return the object with the marks of the member's content; as it is there if nothing else differs."""
    obj = _with_annotations_of(obj, live, names.TEMPLATE_REVISION, names.SOURCE_GENERATION)
    annotations = obj["metadata"]["annotations"]
    annotations.pop(names.TEMPLATE_HASH, None)
    if is_subset(obj, live):
        digest = _annotations(live).get(names.TEMPLATE_HASH, "")
        annotations[names.TEMPLATE_HASH] = digest
        return Rendered(obj, digest)
    return finish(obj, {})


def _with_annotations_of(obj: Mapping[str, Any], live: Mapping[str, Any], *kept: str) -> dict[str, Any]:
    """Return the object with the member's values of these annotations."""
    annotations = {name: text for name, text in _annotations(obj).items() if name not in kept}
    annotations |= {name: text for name, text in _annotations(live).items() if name in kept}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _annotations(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return obj["metadata"].get("annotations") or {}


def to_departing(live: Mapping[str, Any], resource: Resource, replicas: int) -> Rendered:
    """Return the member object of a cluster that has left the placement: as it is, with other replicas."""
    metadata = live["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "labels") if metadata.get(key)}
    annotations = metadata.get("annotations") or {}
    kept["annotations"] = {key: text for key, text in annotations.items() if key != wellknown.DEPLOYMENT_REVISION}
    spec = {**_spec(live), "replicas": replicas}
    return finish({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": kept, "spec": spec}, {})


def _spec(workload: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = workload.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _revision(workload: Mapping[str, Any]) -> str | None:
    found = dotpaths.get(workload, ("metadata", "annotations", names.TEMPLATE_REVISION))
    return found if isinstance(found, str) else None


def _is_held(resource: Resource, cluster: str, wanted: Mapping[str, Any], approved: Mapping[str, str] | None) -> bool:
    return is_paused(resource, wanted) or not _is_approved(cluster, wanted, approved)


def _is_approved(cluster: str, wanted: Mapping[str, Any], approved: Mapping[str, str] | None) -> bool:
    return approved is None or approved.get(cluster) == _revision(wanted)


def _is_updating(resource: Resource, live: Mapping[str, Any], unobserved: Unobserved | None) -> bool:
    """Return whether the member may be replacing pods; yes if its controller has not observed an unknown change."""
    if unobserved is not None:
        if unobserved.has_template:
            return True
    elif not is_observed(live):
        return True
    status = live.get("status") or {}
    old = _count(status, "replicas") - _count(status, "updatedReplicas")
    return old > old_pods_kept(resource, live, replicas_of(live))


def _available(resource: Resource, status: Mapping[str, Any]) -> int:
    # Only old controllers of StatefulSets do not report available pods.
    is_reported = resource not in ORDERED or "availableReplicas" in status
    return _count(status, "availableReplicas" if is_reported else "readyReplicas")


def _count(status: Mapping[str, Any], field: str) -> int:
    value = status.get(field)
    return max(0, value) if type(value) is int else 0
