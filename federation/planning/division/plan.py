"""The scheduler's division of one object as patches per cluster, and what about it cannot be divided. Pure.

The number of replicas is enough for most kinds. StatefulSets, CloneSets and Jobs need more, see `ordinals.py` and
`jobs.py`. A division that cannot be done has a problem, which becomes the outcome of the decision: an object is never
run several times instead.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import KRUISE_GROUP
from federation.apimachinery import dotpaths
from federation.apimachinery.jsonpatch import to_pointer
from federation.planning.division.jobs import divide_job
from federation.planning.division.ordinals import (
    STARTS,
    STATEFUL_SETS,
    OrdinalError,
    count_reserved,
    divide_partition,
    parse_record,
    plan_ranges,
)
from federation.planning.federatedobject.placements import overrides_of, placement_of

Placements = Mapping[str, int | None]
_CLONE_SET = (KRUISE_GROUP, "CloneSet")
_JOB = ("batch", "Job")
_CRON_JOB = ("batch", "CronJob")
_PARTITION = ("spec", "updateStrategy", "rollingUpdate", "partition")
_CLONE_SET_PARTITION = ("spec", "updateStrategy", "partition")
_LEADER_WORKER_SET = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
_LEADER_WORKER_SET_PARTITION = ("spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition")
_PODS = frozenset(
    {("", "Pod"), ("apps", "ReplicaSet"), ("apps", "Deployment"), ("", "ReplicationController")}
    | {_CLONE_SET, *STATEFUL_SETS, _JOB, _CRON_JOB}
)
"""Kinds whose copies in several clusters would do the same work several times. DaemonSets run on every node anyway."""


@dataclass(frozen=True, slots=True)
class DivisionPlan:
    """Placements and patches by cluster, and the annotations to record; `problem` says why there is none."""

    placements: Placements
    patches: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    problem: str = ""


def is_planned_from_template(type_: FederatedType) -> bool:
    """Return whether the patches depend on fields of the template that are no reason to schedule the object again."""
    kinds = (_CLONE_SET, *STATEFUL_SETS, _CRON_JOB, _LEADER_WORKER_SET)
    return bool(type_.paths.replicas_spec) and (type_.resource.group, type_.resource.kind) in kinds


def copies_problem(type_: FederatedType, placements: Placements) -> str:
    """Return why an object that its policy divides, but whose type has no replicas, must not go there; "" if it may."""
    if len(placements) < 2 or (type_.resource.group, type_.resource.kind) not in _PODS:
        return ""
    remedy = "set schedulingMode to Duplicate to run it in each cluster, or maxClusters to 1"
    if type_.resource.kind == "Pod":
        return f"the policy says Divide, and a Pod cannot be divided: {remedy}"
    missing = f"FederatedTypeConfig {type_.name} has no pathDefinition.replicasSpec"
    return f"the policy says Divide, but {missing}: add it, or {remedy}"


def is_only_numbered(type_: FederatedType) -> bool:
    """Return whether a division of the kind is nothing but a number for each cluster."""
    kind = (type_.resource.group, type_.resource.kind)
    return kind not in STATEFUL_SETS and kind not in (_CLONE_SET, _JOB, _CRON_JOB)


def plan_division(federated: Mapping[str, Any], type_: FederatedType, placements: Placements) -> DivisionPlan:
    """Return the plan for a decision of the scheduler; clusters without a number get a copy of the template."""
    path = type_.paths.replicas_spec
    counts = {cluster: count for cluster, count in placements.items() if count is not None}
    kind = (type_.resource.group, type_.resource.kind)
    kept = _kept_ordinals(federated, placements.keys() - counts.keys()) if path and kind in STATEFUL_SETS else {}
    if not path or not counts:
        return DivisionPlan(placements, kept)
    if kind in STATEFUL_SETS:
        plan = _plan_stateful_set(federated, path, counts)
        return replace(plan, patches={**kept, **plan.patches})
    if kind == _CLONE_SET:
        return _plan_counted(federated, path, counts, _CLONE_SET_PARTITION)
    if kind == _LEADER_WORKER_SET:
        return _plan_counted(federated, path, counts, _LEADER_WORKER_SET_PARTITION)
    if kind in (_JOB, _CRON_JOB):
        return _plan_job(federated, path, counts, is_fixed=kind == _JOB)
    return DivisionPlan(placements, _numbers(path, counts))


def _numbers(path: dotpaths.Path, counts: Mapping[str, int]) -> dict[str, list[dict[str, Any]]]:
    pointer = to_pointer(path)  # once, not for each of a thousand clusters
    return {cluster: [{"op": "replace", "path": pointer, "value": count}] for cluster, count in counts.items()}


def _patch(path: dotpaths.Path, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": to_pointer(path), "value": value}


def _kept_ordinals(federated: Mapping[str, Any], copies: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the ordinals of clusters whose copies were shares before: other names of pods are empty volumes."""
    record = parse_record((federated["metadata"].get("annotations") or {}).get(names.ORDINAL_STARTS))
    base = dotpaths.get(federated["spec"]["template"], ("spec", "ordinals", "start")) or 0
    starts = {cluster: record.get(cluster, 0) for cluster in copies}
    return {name: [_patch(("spec", "ordinals"), {"start": base + start})] for name, start in starts.items() if start}


def _plan_stateful_set(federated: Mapping[str, Any], path: dotpaths.Path, counts: Mapping[str, int]) -> DivisionPlan:
    template = federated["spec"]["template"]
    text = (federated["metadata"].get("annotations") or {}).get(names.ORDINAL_STARTS)
    if text is None and overrides_of(federated, names.GLOBAL_SCHEDULER):
        # An earlier version divided it without ranges. New numbers for its pods would replace them and their volumes.
        return DivisionPlan(counts, _numbers(path, counts))
    base = dotpaths.get(template, ("spec", "ordinals", "start")) or 0
    # Any range may contain the reserved ordinals, and then its pods have higher ones instead.
    reserved = count_reserved(dotpaths.get(template, ("spec", "reserveOrdinals")))
    needed = {cluster: count + reserved for cluster, count in counts.items()}
    current = placement_of(federated, names.GLOBAL_SCHEDULER)
    try:
        starts = plan_ranges(needed, parse_record(text), base=base, first=current)
    except OrdinalError as error:
        return DivisionPlan(counts, problem=str(error))
    patches = _numbers(path, counts)
    for cluster in counts:
        if starts[cluster]:
            patches[cluster].append(_patch(("spec", "ordinals"), {"start": base + starts[cluster]}))
    _add_partitions(patches, template, _PARTITION, counts, starts)
    return DivisionPlan(counts, patches, {STARTS.name: STARTS.text(starts)})


def _plan_counted(
    federated: Mapping[str, Any], path: dotpaths.Path, counts: Mapping[str, int], partition: dotpaths.Path
) -> DivisionPlan:
    """Return the numbers, and the shares of an integer partition; a percentage of the pods holds in each cluster."""
    patches = _numbers(path, counts)
    order = {cluster: number for number, cluster in enumerate(sorted(counts))}
    _add_partitions(patches, federated["spec"]["template"], partition, counts, order)
    return DivisionPlan(counts, patches)


def _add_partitions(
    patches: Mapping[str, list[dict[str, Any]]],
    template: Mapping[str, Any],
    path: dotpaths.Path,
    counts: Mapping[str, int],
    order: Mapping[str, int],
) -> None:
    """Add each cluster's share of the template's partition, if it has one, to its patches."""
    partition = dotpaths.get(template, path)
    if type(partition) is int and partition > 0 and len(counts) > 1:
        for cluster, share in divide_partition(partition, counts, order).items():
            patches[cluster].append(_patch(path, share))


def _plan_job(
    federated: Mapping[str, Any], path: dotpaths.Path, counts: Mapping[str, int], *, is_fixed: bool
) -> DivisionPlan:
    spec_path = path[:-1]
    completions_path = (*spec_path, "completions")
    spec = dotpaths.get(federated["spec"]["template"], spec_path) or {}
    if is_fixed:
        current = placement_of(federated, names.GLOBAL_SCHEDULER)
        shares = divide_job(spec, counts, placed=_recorded(federated, completions_path), current=current)
    else:
        shares = divide_job(spec, counts)
    if shares.problem:
        return DivisionPlan(counts, problem=shares.problem)
    patches = _numbers(path, shares.parallelism)
    for cluster, count in shares.completions.items():
        patches[cluster].append(_patch(completions_path, count))
    return DivisionPlan(shares.parallelism, patches)


def _recorded(federated: Mapping[str, Any], path: dotpaths.Path) -> dict[str, int]:
    """Return the completions that the scheduler gave each cluster of the placement."""
    pointer = to_pointer(path)
    return {
        cluster: patch["value"]
        for cluster, patches in overrides_of(federated, names.GLOBAL_SCHEDULER).items()
        for patch in patches
        if patch.get("path") == pointer and type(patch.get("value")) is int
    }
