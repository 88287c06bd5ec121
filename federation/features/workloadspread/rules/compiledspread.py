"""WorkloadSpreads as the scheduler needs them: a `SpreadIndex`. Pure.

Percentages are taken of the replicas of the federated workload, or of the sum at the paths of the target filter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import Requirement
from federation.features.workloadspread.rules.clusterterms import cluster_requirements, covers
from federation.features.workloadspread.rules.hub import to_hub
from federation.features.workloadspread.rules.references import group_of
from federation.features.workloadspread.rules.specvalidation import exceeded_limit
from federation.features.workloadspread.rules.subsets import name_of, resolve_limit, subsets_of, target_of
from federation.features.workloadspread.rules.totals import UNKNOWN, filter_of, total_replicas
from federation.planning.followers.references import Identity
from federation.planning.placement.subsetquotas import SubsetClusters
from federation.scheduling.framework.types import Toleration
from federation.scheduling.policyspec import hash_of, to_tolerations
from federation.scheduling.snapshot import Snapshot


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


def target_key(spread: Mapping[str, Any]) -> Identity:
    """Return the workload that a WorkloadSpread targets."""
    target, namespace = target_of(spread), spread["metadata"].get("namespace") or ""
    return Identity(group_of(target), str(target.get("kind") or ""), str(namespace), str(target.get("name") or ""))
