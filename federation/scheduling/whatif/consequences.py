"""Consequences of a change: replicas that are missing at worst while it is carried out, and prices. Pure.

Divided workloads change in steps within one budget for all clusters, copies in each cluster at the same time, or wave
after wave. The result is a bound: it assumes that members use all the room that their strategies give.
"""

from collections.abc import Iterable, Mapping, Sequence

from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import Resource
from federation.planning.cost.rates import from_nano
from federation.planning.rendering.memberobject import template_revision
from federation.planning.steps.strategy import has_strategy, strategy_of
from federation.scheduling.framework.costs import CARBON, PRICE, rates_of
from federation.scheduling.framework.types import Cluster
from federation.scheduling.podrequest import request_of
from federation.scheduling.whatif.planresult import Cost, MemberObject, MemberPlan


def lost_at_worst(
    resource: Resource, rows: Sequence[MemberPlan], waves: Iterable[tuple[str, Sequence[str]]], *, is_divided: bool
) -> int:
    """Return how many of the replicas before the change may be missing at worst until it is complete.

    Those that the change removes for good are missing, too. `is_divided`: before and afterwards, the number of replicas
    is that of all clusters together.
    """
    before = sum(map(_replicas, (row.before for row in rows)))
    after = sum(map(_replicas, (row.after for row in rows)))
    if not before or not after or not has_strategy(resource):
        return before if not after else sum(max(0, -row.delta) for row in rows)
    if not is_divided:
        gone = sum(max(0, -row.delta) for row in rows)
        updated = {row.cluster: _unavailable(resource, row) for row in rows if _is_updated(row)}
        in_waves = [sum(updated.pop(name, 0) for name in clusters) for _, clusters in waves]
        return min(before, gone + max((*in_waves, sum(updated.values())), default=0))
    manifest = next(row.after.manifest for row in rows if _replicas(row.after) and row.after is not None)
    strategy, floor = strategy_of(resource, manifest), min(before, after)
    if any(map(_is_updated, rows)):
        floor = after - strategy.limits(after).unavailable
    elif any(row.delta < 0 for row in rows) and any(row.delta > 0 for row in rows):
        floor = after - strategy.budget(after).unavailable
    return before - min(before, max(0, floor))


def _replicas(copy: MemberObject | None) -> int:
    return 0 if copy is None else copy.replicas or 0


def _is_updated(row: MemberPlan) -> bool:
    """Return whether the change replaces the pods of the cluster."""
    if row.before is None or row.after is None or not row.before.manifest or not row.after.manifest:
        return False
    return template_revision(row.before.manifest) != template_revision(row.after.manifest)


def _unavailable(resource: Resource, row: MemberPlan) -> int:
    assert row.after is not None
    count = _replicas(row.after)
    return min(count, strategy_of(resource, row.after.manifest).limits(count).unavailable) if count else 0


def costs_of(rows: Iterable[MemberPlan], clusters: Mapping[str, Cluster], type_: FederatedType) -> dict[str, Cost]:
    """Return what the replicas of an object cost per hour before and after, by measure; {} without rates."""
    counted = [
        (clusters[row.cluster], _billed(row.before, type_), _billed(row.after, type_))
        for row in rows
        if row.cluster in clusters
    ]
    found = {}
    for measure in (PRICE, CARBON):
        totals, unknown, is_known = [0, 0], set[str](), False
        for cluster, *sides in counted:
            for at, (count, request) in enumerate(sides):
                each = rates_of(cluster, measure).cost_of(request) if count else 0
                if each is None:
                    unknown.add(cluster.name)
                elif count:
                    is_known = True
                    totals[at] += count * each
        if is_known:
            found[measure] = Cost(from_nano(totals[0]), from_nano(totals[1]), tuple(sorted(unknown)))
    return found


def _billed(copy: MemberObject | None, type_: FederatedType) -> tuple[int, Mapping[str, int]]:
    """Return the replicas of a copy, and the request of each; a Pod is one."""
    if copy is None or copy.error:
        return 0, {}
    count = 1 if copy.manifest.get("kind") == "Pod" else copy.replicas or 0
    return (count, request_of(copy.manifest, type_)) if count else (0, {})
