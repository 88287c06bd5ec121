"""The relations of a unit to other workloads, and the clusters that its partners have left. Pure.

As in Kubernetes, a rule holds both ways where that makes sense: nothing is placed beside a workload that has to be
apart from it, and preferences of placed workloads count for the one that is placed now. A workload that another one has
to be together with may go where it likes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from federation.apimachinery.amounts import first_of
from federation.scheduling.affinity.index import Workload, WorkloadIndex
from federation.scheduling.framework.moving import ENDED_TOLERATIONS
from federation.scheduling.framework.relations import Located, Relation, domain_of
from federation.scheduling.framework.types import Cluster, Effect, SchedulingUnit

_NAMED_MAX = 3
Clusters = Mapping[str, Cluster]


def partners_away(index: WorkloadIndex, workload: Workload, current: Iterable[str], clusters: Clusters) -> list[str]:
    """Return the clusters, sorted, that a placed workload has to leave because its required partners are elsewhere.

    While no partner is placed anywhere it stays.
    """
    present = [clusters[name] for name in current if name in clusters]
    found: set[str] = set()
    for rule in workload.rules:
        if rule.is_required_together:
            held = _count_domains(rule.topology_key, index.selected(rule, workload.key), clusters)
            if held:
                found.update(
                    cluster.name
                    for cluster in present
                    if domain_of(rule.topology_key, cluster.name, cluster.labels) not in held
                )
    return sorted(found)


def relations_of(
    index: WorkloadIndex, workload: Workload, unit: SchedulingUnit, clusters: Clusters
) -> tuple[Relation, ...]:
    """Return the unit's relations: those of its own rules, and those of the rules that others have about it."""
    usable = {name: cluster for name, cluster in clusters.items() if not _must_leave(unit, cluster)}
    found = []
    for rule in workload.rules:
        partners = list(index.selected(rule, workload.key))
        relation = _relation(rule.topology_key, partners, usable, clusters, is_apart=rule.is_apart, weight=rule.weight)
        is_first = rule.is_required_together and not relation.located and index.may_be_first(workload, rule)
        is_broken = _is_broken(relation, unit, clusters)
        found.append(replace(relation, text=rule.text, may_be_first=is_first, is_broken=is_broken))
    theirs: dict[tuple[str, bool, int], list[Workload]] = {}
    for rule, owners in index.rules_about(workload):
        # As in Kubernetes, being wanted is a slight reason to come, not a duty.
        weight = 1 if rule.is_required_together else rule.weight
        others = [owner for key, owner in owners.items() if key != workload.key and owner.labels is not None]
        if others:
            theirs.setdefault((rule.topology_key, rule.is_apart, weight), []).extend(others)
    for (topology_key, is_apart, weight), owners_of in sorted(theirs.items(), key=lambda each: each[0]):
        relation = _relation(topology_key, owners_of, usable, clusters, is_apart=is_apart, weight=weight)
        found.append(replace(relation, text=_named(unit.namespace, owners_of), is_theirs=True))
    return tuple(found)


def _relation(
    topology_key: str,
    partners: Sequence[Workload],
    usable: Clusters,
    clusters: Clusters,
    *,
    is_apart: bool,
    weight: int,
) -> Relation:
    located = _count_domains(topology_key, partners, clusters if is_apart else usable)
    return Relation(
        is_apart,
        weight,
        topology_key,
        "",
        tuple(Located(*each) for each in sorted(located.items())),
        frozenset(_count_domains(topology_key, partners, clusters)),
    )


def _count_domains(topology_key: str, partners: Iterable[Workload], clusters: Clusters) -> Counter[str]:
    """Return the number of partners in each domain that has any."""
    counts: Counter[str] = Counter()
    for partner in partners:
        domains = {
            domain_of(topology_key, name, clusters[name].labels) for name in partner.clusters if name in clusters
        }
        counts.update(domain for domain in domains if domain is not None)
    return counts


def _is_broken(relation: Relation, unit: SchedulingUnit, clusters: Clusters) -> bool:
    """Return whether the unit runs beside a workload that it should be apart from."""
    if relation.weight or not relation.is_apart:
        return False
    present = [clusters[name] for name in unit.current if name in clusters]
    return any(relation.count_in(domain_of(relation.topology_key, each.name, each.labels)) for each in present)


def _must_leave(unit: SchedulingUnit, cluster: Cluster) -> bool:
    """Return whether the unit could not run in the cluster, so that its partners there do not count."""
    if cluster.is_terminating or cluster.name in ENDED_TOLERATIONS.of(unit):
        return True
    return any(taint.effect == Effect.NO_EXECUTE and not unit.tolerates(taint) for taint in cluster.taints)


def _named(namespace: str, owners: Iterable[Workload]) -> str:
    """Return names for reasons that readers of the namespace see; workloads of other namespaces have none."""
    names = sorted({owner.name for owner in owners if owner.namespace == namespace})
    return first_of(names, _NAMED_MAX) if names else "workloads of other namespaces"
