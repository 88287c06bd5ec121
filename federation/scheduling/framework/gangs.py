"""The step after the filters for gangs: objects whose pods start together or not at all (docs/batch.md).

A cluster stays feasible if it has room for all pods at the same time (`gangfit.py`), beside the replicas of recent
decisions, or if the unit runs there: its own pods use room of the report. This is no plugin, because no profile may
switch it off by accident; a policy does, with `gang: Never`. No cluster is accepted for want of a better one: a gang
that fits nowhere waits, and nothing of it is in any member.
"""

from collections.abc import Mapping

from federation.scheduling.framework.cycle import FilterResult
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.gangfit import (
    Lack,
    Shortfall,
    amount_number,
    amount_text,
    find_shortfall,
    room_for,
    size_for,
    total_of,
)
from federation.scheduling.framework.types import Cluster, Code, Resources, SchedulingUnit, Status

STEP = "Gang"
"""The name of this step in explanations and rejections."""

_REJECTIONS = {
    lack: Status(Code.UNSCHEDULABLE, (reason,), STEP)
    for lack, reason in {
        Lack.NO_NODE: "cluster(s) had no node that could run a pod of the gang",
        Lack.SIZE: "cluster(s) were too small for the gang",
        Lack.ROOM: "cluster(s) had less free than the gang needs",
        Lack.NODES: "cluster(s) had no nodes with room for the whole gang",
        Lack.DECISIONS: "cluster(s) may need the room for recent decisions",
    }.items()
}
AWAITS_REPORT = _REJECTIONS[Lack.DECISIONS]


def is_too_small(status: Status) -> bool:
    """Return whether the gang would not fit into the cluster even if it was empty."""
    return status in (_REJECTIONS[Lack.NO_NODE], _REJECTIONS[Lack.SIZE])


def within_room(
    unit: SchedulingUnit, filtered: FilterResult, reported: Mapping[str, Cluster], state: CycleState
) -> tuple[FilterResult, str]:
    """Return the filter result without clusters that lack room for the gang, and why it waits, "" if it does not.

    `reported` are the clusters as their members report them.
    """
    if unit.pods.uncounted:
        status = Status(Code.UNSCHEDULABLE, ("cluster(s) were not considered",), STEP)
        return filtered.without(dict.fromkeys(filtered.feasible.names, status)), unit.pods.uncounted
    shortfalls = {
        name: shortfall
        for name in filtered.feasible.names
        if name not in unit.current
        and (shortfall := find_shortfall(unit.pods.sets, reported[name], unit.assumed.get(name))) is not None
    }
    if not shortfalls:
        return filtered, ""
    for name, shortfall in shortfalls.items():
        state.remark(STEP, name, shortfall.describe())
    result = filtered.without({name: _REJECTIONS[shortfall.lack] for name, shortfall in shortfalls.items()})
    return result, "" if result.feasible else _describe(unit, shortfalls, reported)


def _describe(unit: SchedulingUnit, shortfalls: Mapping[str, Shortfall], reported: Mapping[str, Cluster]) -> str:
    """Return why the gang waits: what no cluster has, or what the nearest one lacks."""
    needed = total_of(unit.pods.sets)
    clusters = [reported[name] for name in shortfalls]
    if all(each.lack is Lack.NO_NODE and each.resource for each in shortfalls.values()):
        best = max(shortfalls.values(), key=lambda each: each.found / each.needed)
        which = f"the best of {len(clusters)} clusters" if len(clusters) > 1 else f"cluster {clusters[0].name}"
        found = amount_number(best.resource, best.found)
        amount = amount_text(best.resource, best.needed)
        return f"each pod of {best.component} needs {amount} on one node, {which} has {found}"
    if text := _scarcest(needed, [size_for(unit.pods.sets, cluster) for cluster in clusters]):
        resource, most = text
        which = f"the largest of {len(clusters)} clusters" if len(clusters) > 1 else f"cluster {clusters[0].name}"
        return f"needs {amount_text(resource, needed[resource])}, {which} has {amount_number(resource, most)}"
    if text := _scarcest(needed, [room_for(unit.pods.sets, cluster) for cluster in clusters]):
        resource, most = text
        which = f"the freest of {len(clusters)} clusters" if len(clusters) > 1 else f"cluster {clusters[0].name}"
        return f"needs {amount_text(resource, needed[resource])}, {which} has {amount_number(resource, most)} free"
    order = list(Lack)
    name, nearest = max(shortfalls.items(), key=lambda item: (order.index(item[1].lack), item[1].found))
    return f"needs room for all of its pods at once, which no cluster has; cluster {name}: {nearest.describe()}"


def _scarcest(needed: Resources, amounts: list[Resources]) -> tuple[str, int] | None:
    """Return the resource of which every cluster lacks most, and the largest amount of it; None if there is none."""
    most = {name: max(max(0, each.get(name, 0)) for each in amounts) for name in needed}
    lacking = [(amount / max(1, most[name]), name) for name, amount in needed.items() if amount > most[name]]
    return (max(lacking)[1], most[max(lacking)[1]]) if lacking else None
