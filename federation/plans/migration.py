"""Where a user wants workloads to be, and whether a plan does that. Pure.

`fedctl migrate` and the action Move of the web UI write the same annotations.
"""

import contextlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import STATEFUL_SETS, Object, Resource
from federation.planning.failover.tolerance import fixed_claims_of, fixed_volumes_of
from federation.scheduling.whatif.planresult import MemberPlan, ObjectPlan, Plan


@dataclass(frozen=True, slots=True)
class Wish:
    """Where workloads are to be: only in the clusters `to`, or not in the clusters `leaves` until a time."""

    to: frozenset[str] = frozenset()
    leaves: frozenset[str] = frozenset()
    until: datetime | None = None

    def to_patch(self) -> Object:
        """Return the merge patch of the object; without a wish it removes what an earlier one wrote."""
        written: dict[str, str | None] = dict.fromkeys((names.PLACEMENTS, names.MIGRATION_CONFIGURATION))
        if self.to:
            written = {names.PLACEMENTS: _to_json([{"cluster": name} for name in sorted(self.to)])}
        elif self.leaves and self.until is not None:
            until = to_rfc3339(self.until)
            avoided = [{"cluster": name, "validUntil": until} for name in sorted(self.leaves)]
            written = {names.MIGRATION_CONFIGURATION: _to_json({"workloadMigrations": avoided})}
        return {"metadata": {"annotations": written}}


def _to_json(value: Any) -> str:
    return orjson.dumps(value).decode()


def refusal(plan: Plan, wish: Wish, wished: Collection[tuple[Resource, str, str]]) -> str:
    """Return why the moves of a plan are not what was wished, "" if they are. Pure.

    `wished`: kinds, namespaces and names of the workloads to move. What follows them may stay elsewhere, too.
    """
    for obj in plan.objects:
        if obj.is_stuck or obj.unplaced > obj.unplaced_before:
            more = obj.unplaced - obj.unplaced_before
            lacking = f"{more} replicas would be without a cluster" if more > 0 else "no cluster can take it"
            return f"{obj.target}: {lacking}{_because(obj)}"
        stays = [row.cluster for row in obj.rows if row.after is not None and _is_unwanted(row, wish)]
        if stays and (obj.resource, obj.namespace, obj.name) in wished:
            return f"{obj.target}: it stays in {', '.join(stays)}{_because(obj)}"
    return ""


def _is_unwanted(row: MemberPlan, wish: Wish) -> bool:
    return row.cluster not in wish.to if wish.to else row.cluster in wish.leaves


def _because(obj: ObjectPlan) -> str:
    found = obj.reason or "; ".join(obj.problems)
    return f" ({found})" if found else ""


def volumes_left(objects: Iterable[Object]) -> list[str]:
    """Return a line for each workload with data in volumes that do not move with it."""
    return [
        f"{obj['kind'].lower()}/{obj['metadata']['name']} has {volumes}"
        for obj in objects
        if (volumes := fixed_volumes_of(obj, _once)) and not moves_with_volumes(obj)
    ]


def moves_with_volumes(obj: Object) -> bool:
    """Return whether the workload's volumes are copied before it leaves a cluster, because its user wants it."""
    return names.MOVE_VOLUMES in (obj["metadata"].get("annotations") or {}) and can_move_volumes(obj)


def can_move_volumes(obj: Object) -> bool:
    """Return whether its volumes can be copied: those of a StatefulSet's claim templates, and no others."""
    is_known = (obj.get("apiVersion"), obj.get("kind")) == (STATEFUL_SETS.api_version, STATEFUL_SETS.kind)
    has_templates = bool((obj.get("spec") or {}).get("volumeClaimTemplates"))
    return is_known and has_templates and not any(fixed_claims_of(obj, _once))


def copies_to_ask_for(obj: Object, now: datetime) -> dict[str, str | None]:
    """Return the annotation with which the volumes of a workload are copied before it leaves a cluster.

    What its user said about the way is kept; the time lets a move that failed be tried again.
    """
    if not can_move_volumes(obj):
        return {}
    stated: Any = None
    with contextlib.suppress(orjson.JSONDecodeError):
        stated = orjson.loads((obj["metadata"].get("annotations") or {}).get(names.MOVE_VOLUMES) or "{}")
    said = stated if isinstance(stated, dict) else {}
    return {names.MOVE_VOLUMES: _to_json({**said, "requested": to_rfc3339(now)})}


def _once(name: str) -> tuple[str, ...]:
    del name
    return ("ReadWriteOnce",)
