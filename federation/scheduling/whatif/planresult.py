"""The result of `fedctl plan`: each object per cluster before and after, and the clusters' free resources.

A `MemberPlan` is one object in one cluster, with the manifests that sync would send. `to_json` is the form that
`-o json` prints and that a plan file keeps; its keys are stable: add, do not rename.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from federation.apimachinery.resources import Object, Resource
from federation.planning.failover.evictionrecord import Stay


class Action(StrEnum):
    """The effect on one source object."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    WITHDRAW = "withdraw"
    """The source object stays and is removed from every cluster."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MemberObject:
    """The object in one cluster: the manifest that sync sends, or the `error` that prevents it.

    `digest` is the manifest's hash. `hash` is the hash in the member object's annotation, which also covers the
    federation's own annotations. `replicas` is None for kinds without replicas.
    """

    manifest: Object
    digest: str
    hash: str
    replicas: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """One object in one cluster; `before` or `after` is None when it is not there. `note` is shown to the user.

    `held` says what holds the change for now, "" if nothing does; the note has it, too.
    """

    cluster: str
    before: MemberObject | None
    after: MemberObject | None
    note: str = ""
    held: str = ""
    meanwhile: int | None = None
    """The replicas there while the change is held, None for those before it."""

    @property
    def is_changed(self) -> bool:
        """Whether the member object changes."""
        if self.before is None or self.after is None:
            return self.before is not self.after
        return (self.before.digest, self.before.error) != (self.after.digest, self.after.error)

    @property
    def delta(self) -> int:
        """The difference in replicas."""
        return ((self.after.replicas if self.after else 0) or 0) - ((self.before.replicas if self.before else 0) or 0)


@dataclass(frozen=True, slots=True)
class Cost:
    """An amount per hour before and after: a price, or grams of CO2e. `unknown` are clusters without a rate."""

    before: float
    after: float
    unknown: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ObjectPlan:
    """One source object. `unplaced` and `unplaced_before` are replicas without a cluster after and before the changes.

    `waiting` is the number of replicas that have a cluster but fit on none of its nodes.
    """

    resource: Resource
    namespace: str
    name: str
    action: Action
    rows: Sequence[MemberPlan] = ()
    unplaced: int = 0
    unplaced_before: int = 0
    waiting: int = 0
    is_stuck: bool = False
    """Whether it is unschedulable and keeps its placement."""
    waits: str = ""
    """The reason why no decision is made now, "" if one is made."""
    reason: str = ""
    problems: Sequence[str] = ()
    federated_name: str = ""
    waves: Sequence[tuple[str, Sequence[str]]] = ()
    """The waves in which clusters get the new pod template, with their clusters; empty if its policies have none."""
    explanation: Mapping[str, Any] | None = None
    based_on: Sequence[tuple[Resource, str, str]] = ()
    """Policies and profile that the result depends on (kind, namespace, name), including missing ones."""
    lost: int = 0
    """Replicas that may be missing at worst while the change is carried out, and those that it removes for good."""
    costs: Mapping[str, Cost] = field(default_factory=dict)
    """The costs of its replicas per hour, by measure."""
    approvals: Sequence[str] = ()
    """The waves that wait for an approval before they start."""
    alternatives: Sequence[Mapping[str, Any]] = ()
    """The clusters that its queue would compare for its deadline, the best one first."""
    stays: Mapping[str, Stay] = field(default_factory=dict)
    """Why replicas stay in clusters that they have to leave."""

    @property
    def target(self) -> str:
        """`deployment/web`."""
        return f"{self.resource.kind.lower()}/{self.name}"

    @property
    def is_placed_otherwise(self) -> bool:
        """Whether clusters or replicas change, not only the content."""
        return any(row.delta or (row.before is None) != (row.after is None) for row in self.rows)


@dataclass(frozen=True, slots=True)
class ClusterResource:
    """One resource of one cluster; cpu in thousandths, the rest in whole units."""

    cluster: str
    resource: str
    allocatable: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class StrandedCluster:
    """The objects and replicas that stay assigned to an unreachable cluster."""

    cluster: str
    objects: int
    replicas: int


@dataclass(frozen=True, slots=True)
class PlannedHold:
    """Moves that the guard would hold until an approval: federated objects (namespace, name) that move for one cause.

    `counted` of the cause's `size` objects move within the window, and `allowed` may. `volumes` do not move with the
    objects, which are held for that alone; "" without any.
    """

    cause: str
    objects: Sequence[tuple[str, str]]
    volumes: str = ""
    counted: int = 0
    size: int = 0
    allowed: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole result. `objects` are those with a change or a problem; `examined` counts all that were computed.

    `holds` is empty when the guard's limits are not known.
    """

    objects: Sequence[ObjectPlan]
    examined: int = 0
    cluster_resources: Sequence[ClusterResource] = ()
    stranded: Sequence[StrandedCluster] = ()
    problems: Sequence[str] = ()
    holds: Sequence[PlannedHold] = ()

    @property
    def changed(self) -> list[ObjectPlan]:
        """The objects that change in a member."""
        return [obj for obj in self.objects if obj.action is not Action.NONE]

    @property
    def unchanged(self) -> list[ObjectPlan]:
        """The reported objects that do not change."""
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
            "lookedAt": self.examined,
        }


def to_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON values."""
    return {
        "summary": plan.summary(),
        "objects": [_object(obj) for obj in plan.objects],
        "clusters": _cluster_resources(plan.cluster_resources),
        "stranded": [
            {"cluster": entry.cluster, "objects": entry.objects, "replicas": entry.replicas} for entry in plan.stranded
        ],
        "problems": list(plan.problems),
        "holds": [_hold(hold) for hold in plan.holds],
    }


def from_json(document: Mapping[str, Any]) -> Plan:
    """Return the plan of `to_json`, without what it does not have: digests of manifests, and what it is based on."""
    return Plan(
        [_to_object(obj) for obj in document["objects"]],
        examined=int(document["summary"]["lookedAt"]),
        problems=list(document["problems"]),
        holds=[_to_hold(hold) for hold in document.get("holds") or ()],
    )


def _to_object(obj: Mapping[str, Any]) -> ObjectPlan:
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    return ObjectPlan(
        Resource(group, version, str(obj["kind"]), "", bool(obj["namespace"])),
        str(obj["namespace"]),
        str(obj["name"]),
        Action(obj["action"]),
        [_to_row(row) for row in obj["clusters"]],
        unplaced=int(obj["unplaced"]),
        unplaced_before=int(obj["unplacedBefore"]),
        waiting=int(obj["waiting"]),
        is_stuck=bool(obj.get("isStuck")),
        reason=str(obj["reason"]),
        problems=list(obj["problems"]),
        federated_name=str(obj.get("federatedName") or ""),
        waves=[(wave["name"], wave["clusters"]) for wave in obj.get("waves") or ()],
        explanation=obj.get("explanation"),
        lost=int(obj.get("lostAtWorst") or 0),
        costs={
            measure: Cost(cost["before"], cost["after"], cost.get("unknown") or ())
            for measure, cost in (obj.get("costs") or {}).items()
        },
        approvals=obj.get("approvals") or (),
        alternatives=obj.get("alternatives") or (),
    )


def _to_hold(hold: Mapping[str, Any]) -> PlannedHold:
    objects = [(str(each["namespace"]), str(each["federatedName"])) for each in hold["objects"]]
    counts = (int(hold[key]) for key in ("counted", "size", "allowed"))
    return PlannedHold(str(hold["cause"]), objects, str(hold.get("volumes") or ""), *counts)


def _to_row(row: Mapping[str, Any]) -> MemberPlan:
    # Equal digests say that nothing changes.
    before = _to_member_object(row["before"], "")
    after = _to_member_object(row["after"], "changed" if row["isChanged"] else "")
    return MemberPlan(str(row["cluster"]), before, after, str(row["note"]))


def _to_member_object(found: Mapping[str, Any] | None, digest: str) -> MemberObject | None:
    if found is None:
        return None
    return MemberObject(found["manifest"], digest, str(found["hash"]), found["replicas"], str(found.get("error") or ""))


def _object(obj: ObjectPlan) -> dict[str, Any]:
    content: dict[str, Any] = {
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
        "isStuck": obj.is_stuck,
        "clusters": [_row(row) for row in obj.rows],
        "federatedName": obj.federated_name,
        "lostAtWorst": obj.lost,
    }
    if obj.costs:
        content["costs"] = costs_to_json(obj.costs)
    if obj.alternatives:
        content["alternatives"] = list(obj.alternatives)
    if obj.approvals:
        content["approvals"] = list(obj.approvals)
    if obj.waves:
        content["waves"] = [{"name": name, "clusters": list(clusters)} for name, clusters in obj.waves]
    if obj.explanation is not None:
        content["explanation"] = obj.explanation
    return content


def costs_to_json(costs: Mapping[str, Cost]) -> dict[str, Any]:
    """Return costs as JSON values."""
    return {
        measure: {"before": cost.before, "after": cost.after, **({"unknown": cost.unknown} if cost.unknown else {})}
        for measure, cost in costs.items()
    }


def total_costs(objects: Iterable[ObjectPlan]) -> dict[str, Cost]:
    """Return what the objects cost together, by measure."""
    found: dict[str, Cost] = {}
    for measure, cost in (entry for obj in objects for entry in obj.costs.items()):
        known = found.get(measure, Cost(0, 0))
        unknown = tuple(sorted({*known.unknown, *cost.unknown}))
        found[measure] = Cost(known.before + cost.before, known.after + cost.after, unknown)
    return found


def _hold(hold: PlannedHold) -> dict[str, Any]:
    return {
        "cause": hold.cause,
        "objects": [{"namespace": namespace, "federatedName": name} for namespace, name in hold.objects],
        "volumes": hold.volumes,
        "counted": hold.counted,
        "size": hold.size,
        "allowed": hold.allowed,
    }


def _row(row: MemberPlan) -> dict[str, Any]:
    return {
        "cluster": row.cluster,
        "isChanged": row.is_changed,
        "before": _member_object(row.before),
        "after": _member_object(row.after),
        "note": row.note,
    }


def _member_object(member: MemberObject | None) -> dict[str, Any] | None:
    if member is None:
        return None
    error = {"error": member.error} if member.error else {}
    return {"replicas": member.replicas, "hash": member.hash, "manifest": member.manifest, **error}


def _cluster_resources(entries: Iterable[ClusterResource]) -> list[dict[str, Any]]:
    clusters: dict[str, dict[str, Any]] = {}
    for entry in entries:
        cluster = clusters.setdefault(entry.cluster, {"cluster": entry.cluster, "resources": {}})
        cluster["resources"][entry.resource] = {
            "allocatable": entry.allocatable,
            "availableBefore": entry.before,
            "availableAfter": entry.after,
        }
    return list(clusters.values())
