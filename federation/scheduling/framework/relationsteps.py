"""The steps of a scheduling cycle that regard other workloads (`RELATIONS.of(unit)`): a filter and a score. Pure.

They run after the plugins of the profile and in every profile, because a policy's rule about other workloads holds
whatever the profile prefers. Units without relations do not get here. Explanations call both `WorkloadAffinity`.

Filter: a cluster must be in a domain with a partner of each required relation, and in none with a workload that must
be apart. What runs stays beside a workload that it should be apart from, unless the unit chooses anew. It leaves a
domain that its required partners have left, and stays while no partner is placed anywhere. Score: the sum of the
weights of all partners in the cluster's domains, those that the unit avoids counted negatively.

Decision: docs/decisions/0104-workloads-follow-and-avoid-each-other.md
"""

from dataclasses import replace
from functools import partial

from federation.scheduling.framework.cycle import FilterResult, ScoreResult
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.moving import CHOOSES_ANEW
from federation.scheduling.framework.relations import RELATIONS, Relation, domain_of
from federation.scheduling.framework.scoring import with_preference
from federation.scheduling.framework.types import Cluster, ClusterChange, SchedulingUnit, Status, unschedulable

NAME = "WorkloadAffinity"
REQUEUE_ON = ClusterChange.LABELS | ClusterChange.TAINTS | ClusterChange.READINESS | ClusterChange.TERMINATION
"""Changes of a cluster that can make it feasible. Workloads that move wake the unit in another way."""


def within_relations(unit: SchedulingUnit, filtered: FilterResult, state: CycleState) -> FilterResult:
    """Return the filter result without clusters that a required relation rules out; remark on those it tolerates."""
    statuses: dict[str, Status] = {}
    rejected: dict[str, Status] = {}
    for cluster in filtered.feasible:
        if reason := rejection(unit, cluster):
            rejected[cluster.name] = statuses.setdefault(reason, replace(unschedulable(reason), plugin=NAME))
        elif remarks := tolerated(unit, cluster):
            state.remark(NAME, cluster.name, *remarks)
    return filtered.without(rejected)


def with_relation_scores(unit: SchedulingUnit, scored: ScoreResult) -> ScoreResult:
    """Return the scores with those of the unit's preferences."""
    if not any(relation.weight for relation in RELATIONS.of(unit)):
        return scored
    return with_preference(scored, NAME, partial(score_of, unit))


def rejection(unit: SchedulingUnit, cluster: Cluster) -> str:
    """Return the first required relation that rules out a cluster, as a reason; "" for none."""
    is_current = cluster.name in unit.current
    for relation in RELATIONS.of(unit):
        if relation.weight:
            continue
        domain = domain_of(relation.topology_key, cluster.name, cluster.labels)
        if relation.is_apart:
            if relation.count_in(domain) and not (is_current and not CHOOSES_ANEW.of(unit)):
                return _reason_apart(relation)
        elif not _is_together(relation, domain, is_current=is_current):
            return _reason_together(relation, domain)
    return ""


def tolerated(unit: SchedulingUnit, cluster: Cluster) -> list[str]:
    """Return which workloads the unit runs beside although it should be apart from them: what runs stays."""
    if cluster.name not in unit.current or CHOOSES_ANEW.of(unit):
        return []
    return [
        f"it runs beside {relation.text}, from which it should be apart; what runs stays"
        for relation in RELATIONS.of(unit)
        if relation.is_apart
        and not relation.weight
        and relation.count_in(domain_of(relation.topology_key, cluster.name, cluster.labels))
    ]


def score_of(unit: SchedulingUnit, cluster: Cluster) -> int:
    """Return the weighted number of partners in the cluster's domains."""
    total = 0
    for relation in RELATIONS.of(unit):
        if relation.weight:
            domain = domain_of(relation.topology_key, cluster.name, cluster.labels)
            total += relation.count_in(domain) * (-relation.weight if relation.is_apart else relation.weight)
    return total


def _is_together(relation: Relation, domain: str | None, *, is_current: bool) -> bool:
    if is_current:
        return not relation.held or domain in relation.held
    if relation.located:
        return relation.count_in(domain) > 0
    return relation.may_be_first


def _reason_apart(relation: Relation) -> str:
    by = _by(relation)
    if relation.is_theirs:
        return f"cluster(s) had {relation.text}, which must be apart from it{by}"
    return f"cluster(s) had workloads with {relation.text}, from which it must be apart{by}"


def _reason_together(relation: Relation, domain: str | None) -> str:
    if relation.topology_key and domain is None:
        return f"cluster(s) had no label {relation.topology_key}, by which it must be together with {relation.text}"
    if not relation.located:
        return f"cluster(s) had to wait for a workload with {relation.text}, which it must be together with"
    return f"cluster(s) had no workload with {relation.text}, which it must be together with{_by(relation)}"


def _by(relation: Relation) -> str:
    return f" by {relation.topology_key}" if relation.topology_key else ""
