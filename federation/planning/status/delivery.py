"""The delivery of a federated object, cluster by cluster: what is wanted, whether it is there, and what runs. Pure.

Reference: docs/reference/status.md.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions, dotpaths
from federation.apimachinery.clock import to_rfc3339
from federation.planning.drift.foreign import foreign_fields
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.namespaces import is_never_synced
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.guard.record import past_move
from federation.planning.rendering.memberobject import Renderer, RenderError
from federation.planning.status.rolloutprogress import Progress, budget_of, progress_of

_OTHER_READY = ("numberReady", "ready")
"""Fields with the number of ready pods of kinds without configured paths: DaemonSet and Job."""
_CONDITIONS = (names.SCHEDULED, names.OVERRIDES_APPLIED, names.ADMITTED, names.PROPAGATED, names.FOLLOWERS_DELIVERED)


@dataclass(frozen=True, slots=True)
class ClusterDelivery:
    """The object in one cluster.

    `wanted` and `ready` are replicas, None for kinds without replicas and for what is not known. `applied` is "yes",
    "outdated" (an earlier version), "no" or "unknown". `status` is the federated object's for the cluster, "" before
    the first delivery; `message` says why it is not OK, in the words of the member where it refused something.
    `rollout` is None for kinds that do not replace their pods one by one, and for what is not known.
    """

    cluster: str
    is_placed: bool
    wanted: int | None
    applied: str
    ready: int | None
    status: str
    message: str
    rollout: Progress | None = None
    foreign: tuple[str, ...] = ()
    """Fields that somebody in the cluster has set and that keep the newest version from running as it is wanted."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Fields that somebody in a member has changed and that the federation writes back.

    `fields`, `manager`, `operation` and `time` are those of the last change, "" for what the member does not tell.
    `corrections` counts since `since`, the last one was at `last`. `paused_until` is "" unless corrections pause.
    Times are RFC 3339.
    """

    fields: list[str]
    manager: str
    operation: str
    time: str
    corrections: int
    since: str
    last: str
    paused_until: str


def describe_drift(drift: Drift) -> str:
    """Return a sentence about the last change, without an end."""
    count = len(drift.fields)
    what = ", ".join(drift.fields) + (" was" if count == 1 else " were")
    when = " at ".join(filter(None, (drift.operation, drift.time)))
    who = f' by "{drift.manager}"' + (f" ({when})" if when else "") if drift.manager else ""
    return f"{what} changed{who}"


def deliveries_of(
    federated: Mapping[str, Any],
    type_: FederatedType,
    observed: Mapping[str, Mapping[str, Any] | None],
    clusters: Mapping[str, Mapping[str, Any]],
    only_in: str = "",
) -> list[ClusterDelivery]:
    """Return one row per cluster of the placement and of the status, by name, or that of one cluster only.

    `observed` has the managed member object of each cluster whose cache is complete, None when there is none.
    `clusters` are the FederatedClusters: the conditions of one say what hinders the first delivery.
    """
    is_deleted = bool(federated["metadata"].get("deletionTimestamp"))
    placed = set() if is_deleted else effective_placement(federated)
    reported = {str(entry["cluster"]): entry for entry in (federated.get("status") or {}).get("clusters") or ()}
    renderer = Renderer(federated, type_)
    is_pending = not pendingcontrollers.is_ready_for_dispatch(federated)
    rows = [
        _delivery(
            cluster,
            renderer,
            type_,
            reported.get(cluster),
            is_placed=cluster in placed,
            is_pending=is_pending,
            observed=observed,
            joined=clusters.get(cluster),
        )
        for cluster in sorted(placed | reported.keys())
        if only_in in ("", cluster)
    ]
    is_own = is_never_synced(federated["spec"]["template"])
    return [replace(row, applied="yes") for row in rows] if is_own else rows


def _delivery(
    cluster: str,
    renderer: Renderer,
    type_: FederatedType,
    reported: Mapping[str, Any] | None,
    *,
    is_placed: bool,
    is_pending: bool,
    observed: Mapping[str, Mapping[str, Any] | None],
    joined: Mapping[str, Any] | None,
) -> ClusterDelivery:
    rendered, wanted, digest, message = None, None, "", ""
    if is_placed:
        try:
            rendered = renderer.render(cluster)
            wanted, digest = type_.replicas(rendered.object), rendered.hash
        except RenderError as error:
            message = str(error)
    live = observed.get(cluster)
    entry = reported or {}
    if reported is None and is_placed:
        obstacle = "earlier steps are pending" if is_pending else _obstacle(joined, is_readable=cluster in observed)
        message = message or obstacle
    applied = _applied(digest, live, is_known=cluster in observed)
    foreign: tuple[str, ...] = ()
    if applied == "yes" and rendered is not None and live is not None:
        foreign = foreign_fields(rendered.object, live)
    return ClusterDelivery(
        cluster,
        is_placed,
        wanted,
        applied,
        _ready(live, type_),
        str(entry.get("status") or ""),
        str(entry.get("message") or message),
        progress_of(type_, None if rendered is None else rendered.object, live)
        if cluster in observed and (rendered is not None or not is_placed)
        else None,
        foreign,
    )


def _obstacle(cluster: Mapping[str, Any] | None, *, is_readable: bool) -> str:
    """Return why the cluster has nothing yet; `is_readable` means that its objects of the kind are known."""
    if cluster is None:
        return "the cluster has not joined the federation"
    found = (cluster.get("status") or {}).get("conditions")
    for type_, text in ((names.CLUSTER_JOINED, "has not joined the federation"), (names.CLUSTER_READY, "is not ready")):
        if not conditions.is_true(found, type_):
            reason = (conditions.find(found, type_) or {}).get("reason")
            return f"the cluster {text}" + (f" ({reason})" if reason else "")
    rights = conditions.find(found, names.CLUSTER_AUTHORIZED)
    if not is_readable and rights is not None and rights.get("status") == "False":
        return str(rights.get("message") or "the federation's credentials lack rights in the cluster")
    return "not delivered yet"


def _applied(digest: str, live: Mapping[str, Any] | None, *, is_known: bool) -> str:
    if not is_known:
        return "unknown"
    if live is None:
        return "no"
    held = dotpaths.get(live, ("metadata", "annotations", names.TEMPLATE_HASH))
    return "yes" if digest and held == digest else "outdated"


def _ready(live: Mapping[str, Any] | None, type_: FederatedType) -> int | None:
    """Return the ready replicas that the member reports; 0 for a workload that reports none."""
    status = (live or {}).get("status")
    if live is None or not isinstance(status, Mapping | None):
        return None
    path = type_.paths.ready_replicas_status
    found = [dotpaths.get(live, path)] if path else [(status or {}).get(field) for field in _OTHER_READY]
    number = next((value for value in found if isinstance(value, int) and not isinstance(value, bool)), None)
    return 0 if number is None and path else number


def delivery_to_json(
    federated: Mapping[str, Any],
    type_: FederatedType,
    rows: list[ClusterDelivery],
    drifts: Mapping[str, Drift],
    scalers: Mapping[str, str],
    tolerated: Mapping[str, datetime],
) -> dict[str, Any]:
    """Return the document of one object: its conditions, override policies and clusters, and its budget if divided.

    `lastMove` is the placement before its last move, and when that was, if a move is recorded.

    A cluster has its `drift`, the autoscaler of the replicas, and until when its taints are `tolerated`, where there
    are any.
    """
    held = (federated.get("status") or {}).get("conditions") or ()
    conditions = [condition for condition in held if condition.get("type") in _CONDITIONS]
    budget, move = budget_of(federated, type_), past_move(federated)
    return {
        "kind": "Delivery",
        "conditions": conditions,
        "overridePolicies": _override_policies(federated),
        **({} if budget is None else {"budget": budget}),
        **({} if move is None else {"lastMove": {"at": move.at, "placement": move.placement}}),
        "clusters": [
            _row_to_json(row, drifts.get(row.cluster), scalers.get(row.cluster, ""), tolerated.get(row.cluster))
            for row in rows
        ],
    }


def _override_policies(federated: Mapping[str, Any]) -> list[str]:
    """Return the override policies behind the object's overrides, `namespace/name` or `name`."""
    text = (federated["metadata"].get("annotations") or {}).get(names.OVERRIDE_POLICIES) or ""
    return [name for name in text.split(",") if name]


def _row_to_json(
    row: ClusterDelivery, drift: Drift | None, scaler: str, tolerated_until: datetime | None
) -> dict[str, Any]:
    found = {"placed" if key == "is_placed" else key: value for key, value in asdict(row).items()}
    if row.rollout is None:
        del found["rollout"]
    if not row.foreign:
        del found["foreign"]
    if scaler:
        found["scaler"] = scaler
    if tolerated_until is not None:
        found["toleratedUntil"] = to_rfc3339(tolerated_until)
    if drift is None:
        return found
    return {
        **found,
        "drift": {
            "message": describe_drift(drift),
            "fields": drift.fields,
            "manager": drift.manager,
            "operation": drift.operation,
            "time": drift.time,
            "corrections": drift.corrections,
            "since": drift.since,
            "last": drift.last,
            "pausedUntil": drift.paused_until,
        },
    }
