"""The WorkloadSpreads of the host, as the scheduler uses them (docs/reference/workloadspread.md).

A WorkloadSpread applies to the federated workload that its `targetRef` names, whatever the version. The index compiles
each of them once; an object without one costs one look-up. Percentages are taken of the replicas of the federated
workload. The quotas of a decision are stored with the placement, in an annotation of the federated object. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import Requirement, SelectorError
from federation.planning.followers.leaderplan import identity_of
from federation.planning.followers.references import Identity
from federation.planning.workloadspread.clusterterms import cluster_requirements, covers
from federation.planning.workloadspread.hub import to_hub
from federation.planning.workloadspread.quotas import (
    Counts,
    Quotas,
    SubsetClusters,
    SubsetSpread,
    attribute_replicas,
    by_cluster,
)
from federation.planning.workloadspread.references import group_of
from federation.planning.workloadspread.specvalidation import exceeded_limit
from federation.planning.workloadspread.subsets import name_of, resolve_limit, subsets_of, target_of
from federation.planning.workloadspread.totals import UNKNOWN, filter_of, total_replicas
from federation.scheduling.framework.types import Toleration
from federation.scheduling.policyspec import hash_of, to_tolerations
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.usermigration import to_counts


@dataclass(frozen=True, slots=True)
class CompiledSpread:
    """A WorkloadSpread in the v1beta1 form, the requirements of each subset on clusters, and what divides."""

    source: Object
    requirements: tuple[tuple[Requirement, ...], ...]
    content: Mapping[str, Any]
    tolerations: tuple[Toleration, ...]
    """Those of all subsets."""

    @property
    def name(self) -> str:
        """Return the name of the object."""
        return str(self.source["metadata"]["name"])

    def hash(self, template: Mapping[str, Any], replicas: int, snapshot: Snapshot) -> str:
        """Return a hash of everything that a division depends on, besides the replicas and the policy.

        A cluster counts from the first time that it is ready: before that, its kinds are unknown.
        """
        known = [cluster for cluster in snapshot.clusters if cluster.api_types]
        covered = [[c.name for c in known if covers(own, c.name, c.labels)] for own in self.requirements if own]
        total = self.total(template, replicas) if filter_of(self.source).get("replicasPathList") else None
        return hash_of({**self.content, "clusters": covered, "total": total})

    def subsets(self, template: Mapping[str, Any], replicas: int, snapshot: Snapshot) -> tuple[SubsetClusters, ...]:
        """Return the subsets with their caps and their clusters; `replicas` are those of the workload."""
        total = self.total(template, replicas)
        return tuple(
            SubsetClusters(
                name_of(subset),
                resolve_limit(subset.get("maxReplicas"), total),
                frozenset(c.name for c in snapshot.clusters if covers(requirements, c.name, c.labels)),
            )
            for subset, requirements in zip(subsets_of(self.source), self.requirements, strict=True)
        )

    def total(self, template: Mapping[str, Any], replicas: int) -> int:
        """Return the replicas that percentages are taken of: at the paths of the filter, or `replicas`."""
        try:
            total = total_replicas(self.source, template) if filter_of(self.source).get("replicasPathList") else UNKNOWN
        except InvalidInput:
            total = UNKNOWN
        return replicas if total == UNKNOWN else total


def compile_spread(spread: Object) -> CompiledSpread:
    """Return the compiled form of either version; SelectorError or InvalidInput for a malformed or too large one."""
    source = to_hub(spread)
    field, text = exceeded_limit(source)
    if text:
        raise InvalidInput(f"{field}: {text}")
    subsets = subsets_of(source)
    for subset in subsets:
        resolve_limit(subset.get("maxReplicas"), 0)
    requirements = tuple(map(cluster_requirements, subsets))
    divides = [
        (name_of(subset), subset.get("maxReplicas"), [(r.key, r.operator, sorted(r.values), r.bound) for r in own])
        for subset, own in zip(subsets, requirements, strict=True)
    ]
    paths = filter_of(source).get("replicasPathList") or ()
    entries = [entry for subset in subsets for entry in subset.get("tolerations") or ()]
    content = {"name": source["metadata"]["name"], "subsets": divides, "paths": list(paths), "tolerations": entries}
    tolerations = tuple(toleration._replace(seconds=None) for toleration in to_tolerations(entries))
    return CompiledSpread(source, requirements, content, tolerations)


class SpreadIndex:
    """The WorkloadSpreads by the workload that they target. One per workload is in force: the first by name."""

    def __init__(self) -> None:
        self._by_target: dict[Identity, dict[str, CompiledSpread]] = {}

    def put(self, spread: Object) -> str:
        """Add a new WorkloadSpread; return why it has no effect, "" when it has one."""
        try:
            compiled = compile_spread(spread)
        except (SelectorError, InvalidInput) as error:
            return str(error)
        self._by_target.setdefault(target_key(spread), {})[compiled.name] = compiled
        return ""

    def remove(self, spread: Object) -> None:
        """Remove a WorkloadSpread in the state in which it was added."""
        target = target_key(spread)
        held = self._by_target.get(target, {})
        held.pop(spread["metadata"]["name"], None)
        if not held:
            self._by_target.pop(target, None)

    def find(self, federated: Mapping[str, Any]) -> CompiledSpread | None:
        """Return the WorkloadSpread of a federated workload, None when it has none."""
        if not self._by_target:
            return None
        held = self._by_target.get(identity_of(federated))
        return held[min(held)] if held else None


def target_key(spread: Mapping[str, Any]) -> Identity:
    """Return the workload that a WorkloadSpread targets."""
    target, namespace = target_of(spread), spread["metadata"].get("namespace") or ""
    return Identity(group_of(target), str(target.get("kind") or ""), str(namespace), str(target.get("name") or ""))


def spread_of_unit(
    compiled: CompiledSpread, federated: Mapping[str, Any], replicas: int, snapshot: Snapshot
) -> SubsetSpread:
    """Return the subsets of a unit, with the quotas of its last decision."""
    return SubsetSpread(
        compiled.name,
        compiled.subsets(federated["spec"]["template"], replicas, snapshot),
        stored_quotas(federated),
        frozenset(cluster.name for cluster in snapshot.clusters if cluster.is_silent),
        stored_running(federated),
    )


def stored_quotas(federated: Mapping[str, Any]) -> Quotas:
    """Return the quotas of the last decision by subset and cluster; {} without any."""
    turned: Quotas = {}
    for cluster, own in (_stored(federated).get("quotas") or {}).items():
        for subset, count in to_counts(own).items():
            turned.setdefault(subset, {})[cluster] = count
    return turned


def stored_caps(federated: Mapping[str, Any]) -> dict[str, int]:
    """Return the caps of the last decision by subset, without unlimited subsets."""
    return to_counts(_stored(federated).get("caps"))


def stored_running(federated: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return by cluster and subset the replicas with a node, where a subset also has replicas without one."""
    annotations = federated["metadata"].get("annotations") or {}
    stored = parse_object(annotations.get(names.UNSCHEDULABLE_SUBSETS, "")) or {}
    counts = {cluster: to_counts(own) for cluster, own in stored.items()}
    return {cluster: {name: max(0, count) for name, count in own.items()} for cluster, own in counts.items()}


def stored_name(federated: Mapping[str, Any]) -> str:
    """Return the name of the WorkloadSpread of the last decision, "" without one."""
    return str(_stored(federated).get("name") or "")


def to_annotation(spread: SubsetSpread | None, placements: Counts, planned: Mapping[str, Counts]) -> str | None:
    """Return the annotation for a placement: the quotas that were planned, as far as the placement has them."""
    if spread is None:
        return None
    quotas = attribute_replicas(spread.subsets, placements, planned or spread.held)
    value = {"name": spread.name, "caps": spread.caps(), "quotas": by_cluster(quotas)}
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _stored(federated: Mapping[str, Any]) -> Mapping[str, Any]:
    value = parse_object((federated["metadata"].get("annotations") or {}).get(names.WORKLOAD_SPREAD, "")) or {}
    return value if isinstance(value.get("quotas") or {}, Mapping) else {}
