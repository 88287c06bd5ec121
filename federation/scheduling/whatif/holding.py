"""Changes of a plan that freezes and suspensions hold now: their clusters, and until when. Pure.

A plan shows what is decided without them, as that is what happens once they end.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.api.resources import (
    CHANGE_FREEZES,
    CLUSTER_DELIVERY_SUSPENSIONS,
    CLUSTER_DISRUPTION_BUDGETS,
    CLUSTER_TAINT_POLICIES,
    DELIVERY_SUSPENSIONS,
    REMEDIES,
)
from federation.apimachinery.dotpaths import Path
from federation.apimachinery.resources import Object, Resource
from federation.planning.federatedobject.heldback import UPDATE_WAITS, held_back, is_held
from federation.planning.freezes.changefreeze import Change
from federation.planning.freezes.freezeindex import FreezeIndex
from federation.planning.freezes.suspension import Suspension, compile_suspension, find_suspended
from federation.planning.rendering.imposed import changes_imposed
from federation.scheduling.whatif.planresult import MemberObject, MemberPlan

SUSPENSIONS = (DELIVERY_SUSPENSIONS, CLUSTER_DELIVERY_SUSPENSIONS)
HOLDING = (CHANGE_FREEZES, *SUSPENSIONS, CLUSTER_DISRUPTION_BUDGETS)
"""The kinds that hold changes. Where they hold nothing, decisions do not depend on them."""
FORESEEN = (CLUSTER_TAINT_POLICIES, REMEDIES)
"""The kinds whose changes lead to others after a while."""


class Holding:
    """The freezes and suspensions of the host, and its clusters by name."""

    def __init__(self, objects: Mapping[Resource, Iterable[Object]], clusters: Mapping[str, Mapping[str, Any]]) -> None:
        self.freezes = FreezeIndex()
        for each in objects.get(CHANGE_FREEZES, ()):
            self.freezes.put(each)
        self._suspensions: list[Suspension] = [
            compile_suspension(each) for resource in SUSPENSIONS for each in objects.get(resource, ())
        ]
        self._clusters = clusters

    def annotate(
        self,
        rows: Sequence[MemberPlan],
        before: Mapping[str, Any] | None,
        after: Mapping[str, Any] | None,
        type_: FederatedType,
        now: datetime,
        *,
        held: Mapping[str, str],
        meanwhile: Mapping[str, int | None],
    ) -> list[MemberPlan]:
        """Return the rows of a federated object before and after, with the reason where a change waits.

        `held` is what permits say, by cluster, and `meanwhile` the replicas that they let through.
        """
        if not (self.freezes or self._suspensions or held):
            return list(rows)
        either: Mapping[str, Any] = after or before or {}
        template, namespace = either["spec"]["template"], str(either["metadata"].get("namespace") or "")
        annotated = []
        for row in rows:
            passes = row.after is None or _is_imposed(row.cluster, before, after)
            reason = self._suspended(row.cluster, template, namespace, now, passes=passes) if row.is_changed else ""
            count = None
            if not reason and (reason := held.get(row.cluster, "")):
                count = meanwhile.get(row.cluster)
            if not reason and _is_update(row, type_.paths.replicas_spec):
                frozen = self.freezes.find(either, self._labels(row.cluster), Change.UPDATES, now)
                reason = "" if frozen is None else frozen.message
                count = row.after.replicas if row.after is not None and reason else None
            if reason:
                annotated.append(_held(row, reason, count))
            else:
                annotated.append(row)
        return _with_waiting_departures(annotated)

    def held_before(self, federated: Mapping[str, Any], now: datetime) -> tuple[frozenset[str], frozenset[str]]:
        """Return the clusters that are held back by these freezes, suspensions or a quota, and those that wait."""
        entries = held_back(federated)
        own = {name for name, entry in entries.items() if is_held(entry)}
        for name in entries.keys() - own if self.freezes else ():
            is_update = entries[name]["status"] == UPDATE_WAITS
            if is_update and self.freezes.find(federated, self._labels(name), Change.UPDATES, now) is not None:
                own.add(name)
        return frozenset(own), frozenset(entries.keys() - own if own else ())

    def _suspended(
        self, cluster: str, template: Mapping[str, Any], namespace: str, now: datetime, *, passes: bool
    ) -> str:
        """Return the message of the suspension that holds; `passes` for a change that no user of a namespace holds."""
        labels = self._labels(cluster)
        found = find_suspended(self._suspensions, template, namespace, cluster, labels, now, only_cluster_wide=passes)
        return "" if found is None else found.message

    def _labels(self, cluster: str) -> Mapping[str, str]:
        return ((self._clusters.get(cluster) or {}).get("metadata") or {}).get("labels") or {}


def released(
    rows: Sequence[MemberPlan], own: frozenset[str], others: frozenset[str], same: Collection[str]
) -> list[MemberPlan]:
    """Return the rows without the clusters that stay held back.

    `own` were held before, and `others` waited for these. In `same` nothing else is decided than before.
    """
    waiting = [row for row in rows if row.cluster in own and row.held]
    is_released = any(row.cluster in own and not row.held for row in rows)
    kept = []
    for row in rows:
        if row.cluster not in same or not row.is_changed:
            kept.append(row)
        elif row.cluster in others and waiting and is_released:
            kept.append(_departing(row, waiting))
        elif not row.held and not (row.cluster in others and waiting):
            kept.append(replace(row, note="; ".join(filter(None, (row.note, "it was held back")))))
    return kept


def _held(row: MemberPlan, reason: str, count: int | None) -> MemberPlan:
    """Return the row with the reason why it waits, and the replicas that it has meanwhile, None for those it has."""
    if row.before is None or count == row.before.replicas:
        count = None
    text = "" if count is None else f"meanwhile its replicas there are {count}"
    return replace(row, note="; ".join(filter(None, (row.note, reason, text))), held=reason, meanwhile=count)


def _departing(row: MemberPlan, awaited: Sequence[MemberPlan]) -> MemberPlan:
    clusters = ", ".join(each.cluster for each in awaited)
    text = f"replicas stay until others run in {clusters}: {awaited[0].held}"
    return replace(row, note="; ".join(filter(None, (row.note, text))), held=text)


def _with_waiting_departures(rows: Sequence[MemberPlan]) -> list[MemberPlan]:
    """Return the rows, also held where replicas leave whose successors are held: they stay until these run."""
    arriving = [row for row in rows if row.held and row.delta > 0]
    return [_departing(row, arriving) if arriving and row.delta < 0 and not row.held else row for row in rows]


def _is_update(row: MemberPlan, replicas: Path) -> bool:
    """Return whether an object that exists gets other content than other replicas."""
    if row.before is None or row.after is None or not row.is_changed:
        return False
    if replicas and row.before.replicas == 0:
        return False  # no pod is replaced
    if not row.before.digest:
        return True  # its content there is not known, as something held it back
    return _without(row.before, replicas) != _without(row.after, replicas)


def _without(member: MemberObject, path: Path) -> Mapping[str, Any]:
    if len(path) != 2:
        return member.manifest
    outer, inner = path
    part = member.manifest.get(outer) or {}
    return {**member.manifest, outer: {key: value for key, value in part.items() if key != inner}}


def _is_imposed(cluster: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> bool:
    """Return whether the overrides of an object change, and a ClusterOverridePolicy is among them."""
    return before is not None and after is not None and changes_imposed(before, after, cluster)
