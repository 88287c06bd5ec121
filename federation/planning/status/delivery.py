"""The delivery of a federated object, cluster by cluster: what is wanted, whether it is there, and what runs. Pure.

Reference: docs/reference/status.md.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import dotpaths
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.rendering.memberobject import Renderer, RenderError

_OTHER_READY = ("numberReady", "ready")
"""Fields with the number of ready pods of kinds without configured paths: DaemonSet and Job."""
_CONDITIONS = (names.SCHEDULED, names.OVERRIDES_APPLIED, names.ADMITTED, names.PROPAGATED)


@dataclass(frozen=True, slots=True)
class ClusterDelivery:
    """The object in one cluster.

    `wanted` and `ready` are replicas, None for kinds without replicas and for what is not known. `applied` is "yes",
    "outdated" (an earlier version), "no" or "unknown". `status` is the federated object's for the cluster, "" before
    the first delivery; `message` says why it is not OK, in the words of the member where it refused something.
    """

    cluster: str
    is_placed: bool
    wanted: int | None
    applied: str
    ready: int | None
    status: str
    message: str


def deliveries_of(
    federated: Mapping[str, Any], type_: FederatedType, observed: Mapping[str, Mapping[str, Any] | None]
) -> list[ClusterDelivery]:
    """Return one row per cluster of the placement and of the status, by name.

    `observed` has the managed member object of each cluster whose cache is complete, None when there is none.
    """
    placed = effective_placement(federated)
    reported = {str(entry["cluster"]): entry for entry in (federated.get("status") or {}).get("clusters") or ()}
    renderer = Renderer(federated, type_)
    is_pending = not pendingcontrollers.is_ready_for_dispatch(federated)
    return [
        _delivery(
            cluster,
            renderer,
            type_,
            reported.get(cluster),
            is_placed=cluster in placed,
            is_pending=is_pending,
            observed=observed,
        )
        for cluster in sorted(placed | reported.keys())
    ]


def _delivery(
    cluster: str,
    renderer: Renderer,
    type_: FederatedType,
    reported: Mapping[str, Any] | None,
    *,
    is_placed: bool,
    is_pending: bool,
    observed: Mapping[str, Mapping[str, Any] | None],
) -> ClusterDelivery:
    wanted, digest, message = None, "", ""
    if is_placed:
        try:
            rendered = renderer.render(cluster)
            wanted, digest = type_.replicas(rendered.object), rendered.hash
        except RenderError as error:
            message = str(error)
    live = observed.get(cluster)
    entry = reported or {}
    if reported is None:
        message = message or ("earlier steps are pending" if is_pending else "not delivered yet, or not joined")
    return ClusterDelivery(
        cluster,
        is_placed,
        wanted,
        _applied(digest, live, is_known=cluster in observed),
        _ready(live, type_),
        str(entry.get("status") or ""),
        str(entry.get("message") or message),
    )


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


def delivery_to_json(federated: Mapping[str, Any], rows: list[ClusterDelivery]) -> dict[str, Any]:
    """Return the document of one object: its conditions and its clusters."""
    held = (federated.get("status") or {}).get("conditions") or ()
    conditions = [condition for condition in held if condition.get("type") in _CONDITIONS]
    return {
        "kind": "Delivery",
        "conditions": conditions,
        "clusters": [
            {"placed" if key == "is_placed" else key: value for key, value in asdict(row).items()} for row in rows
        ],
    }
