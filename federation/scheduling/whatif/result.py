"""What a plan says: per object and cluster what would be there before and after, and what clusters have free then.

A `Row` is one object in one cluster, with the manifests that sync would send. `to_json` is the form that `-o json`
prints and that a plan file keeps; its keys are stable: add, do not rename.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from federation.api.resources import Object, Resource


class Action(StrEnum):
    """What happens to an object of the user."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    WITHDRAW = "withdraw"
    """It stays, and leaves every cluster."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Copy:
    """The object in one cluster: what sync sends there, or the `error` that keeps it from it.

    `digest` is the manifest's; `hash` is the one that the member's object carries as an annotation, which also covers
    the federation's bookkeeping. `replicas` is None for kinds without.
    """

    manifest: Object
    digest: str
    hash: str
    replicas: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One object in one cluster; None where it is not. `note` says what else is to be known about it."""

    cluster: str
    before: Copy | None
    after: Copy | None
    note: str = ""

    @property
    def is_changed(self) -> bool:
        """Whether the member gets anything else than it has."""
        if self.before is None or self.after is None:
            return self.before is not self.after
        return (self.before.digest, self.before.error) != (self.after.digest, self.after.error)

    @property
    def delta(self) -> int:
        """Replicas more (or fewer, below 0) than before."""
        return ((self.after.replicas if self.after else 0) or 0) - ((self.before.replicas if self.before else 0) or 0)


@dataclass(frozen=True, slots=True)
class ObjectPlan:
    """One object of the user. `unplaced` replicas find no place afterwards, `unplaced_before` have none now; `waiting`
    ones have a place, and no node there that they fit on.
    """

    resource: Resource
    namespace: str
    name: str
    action: Action
    rows: Sequence[Row] = ()
    unplaced: int = 0
    unplaced_before: int = 0
    waiting: int = 0
    is_stuck: bool = False
    """Whether no decision about it is possible, so that it stays as it is."""
    reason: str = ""
    problems: Sequence[str] = ()
    federated_name: str = ""
    explanation: Mapping[str, Any] | None = None
    based_on: Sequence[tuple[Resource, str, str]] = ()
    """The policies and the profile behind it: kind, namespace, name; whether they exist or not."""

    @property
    def target(self) -> str:
        """`deployment/web`."""
        return f"{self.resource.kind.lower()}/{self.name}"

    @property
    def is_placed_otherwise(self) -> bool:
        """Whether clusters or replicas change, and not only the content."""
        return any(row.delta or (row.before is None) != (row.after is None) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Room:
    """One resource of one cluster; cpu in thousandths, the rest in whole units."""

    cluster: str
    resource: str
    allocatable: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Stranded:
    """What stays assigned to a cluster that does not answer."""

    cluster: str
    objects: int
    replicas: int


@dataclass(frozen=True, slots=True)
class Plan:
    """All of it. `objects` have something to tell; of the `looked_at` others nothing changes and nothing is amiss."""

    objects: Sequence[ObjectPlan]
    looked_at: int = 0
    rooms: Sequence[Room] = ()
    stranded: Sequence[Stranded] = ()
    problems: Sequence[str] = ()

    @property
    def changed(self) -> list[ObjectPlan]:
        """The objects of which any member gets something else."""
        return [obj for obj in self.objects if obj.action is not Action.NONE]

    @property
    def unchanged(self) -> list[ObjectPlan]:
        """The objects that stay as they are, and why that is worth telling."""
        return [obj for obj in self.objects if obj.action is Action.NONE]

    def summary(self) -> dict[str, int]:
        """Return the counts: objects by what happens to them, replicas that move, start and stop, unplaced ones."""
        moved = started = stopped = 0
        for obj in self.changed:
            more = sum(row.delta for row in obj.rows if row.delta > 0)
            less = -sum(row.delta for row in obj.rows if row.delta < 0)
            moved += min(more, less)
            started += more - min(more, less)
            stopped += less - min(more, less)
        actions = [obj.action for obj in self.changed]
        return {
            "created": actions.count(Action.CREATE),
            "deleted": actions.count(Action.DELETE),
            "withdrawn": actions.count(Action.WITHDRAW),
            "placedOtherwise": sum(obj.action is Action.CHANGE and obj.is_placed_otherwise for obj in self.changed),
            "contentOnly": sum(obj.action is Action.CHANGE and not obj.is_placed_otherwise for obj in self.changed),
            "replicasMoved": moved,
            "replicasStarted": started,
            "replicasStopped": stopped,
            "unplaced": sum(obj.unplaced for obj in self.objects),
            "waiting": sum(obj.waiting for obj in self.objects),
            "stuck": sum(obj.is_stuck for obj in self.objects),
            "lookedAt": self.looked_at,
        }


def to_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON values."""
    return {
        "summary": plan.summary(),
        "objects": [_object(obj) for obj in plan.objects],
        "clusters": _rooms(plan.rooms),
        "stranded": [
            {"cluster": entry.cluster, "objects": entry.objects, "replicas": entry.replicas} for entry in plan.stranded
        ],
        "problems": list(plan.problems),
    }


def _object(obj: ObjectPlan) -> dict[str, Any]:
    found: dict[str, Any] = {
        "apiVersion": obj.resource.api_version,
        "kind": obj.resource.kind,
        "namespace": obj.namespace,
        "name": obj.name,
        "action": obj.action,
        "reason": obj.reason,
        "problems": list(obj.problems),
        "unplaced": obj.unplaced,
        "unplacedBefore": obj.unplaced_before,
        "waiting": obj.waiting,
        "clusters": [_row(row) for row in obj.rows],
    }
    if obj.explanation is not None:
        found["explanation"] = obj.explanation
    return found


def _row(row: Row) -> dict[str, Any]:
    return {
        "cluster": row.cluster,
        "isChanged": row.is_changed,
        "before": _copy(row.before),
        "after": _copy(row.after),
        "note": row.note,
    }


def _copy(copy: Copy | None) -> dict[str, Any] | None:
    if copy is None:
        return None
    error = {"error": copy.error} if copy.error else {}
    return {"replicas": copy.replicas, "hash": copy.hash, "manifest": copy.manifest, **error}


def _rooms(rooms: Iterable[Room]) -> list[dict[str, Any]]:
    clusters: dict[str, dict[str, Any]] = {}
    for room in rooms:
        entry = clusters.setdefault(room.cluster, {"cluster": room.cluster, "resources": {}})
        entry["resources"][room.resource] = {
            "allocatable": room.allocatable,
            "availableBefore": room.before,
            "availableAfter": room.after,
        }
    return list(clusters.values())
