"""EndpointSlices of exported Services, as the host keeps them, and what a ServiceExport reports about them. Pure.

A Service is exported by each member that has a ServiceExport of its name, and a Service with a selector. The host has
a copy of each of their EndpointSlices, which is delivered to the clusters that import the Service. Names and labels are
those of KubeAdmiral, the conflict rules those of KEP-1645: the oldest export wins.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from federation.apimachinery import conditions
from federation.apimachinery.conditions import Condition
from federation.apimachinery.hashing import fnv1_32
from federation.apimachinery.resources import ENDPOINT_SLICES, Object
from federation.features.services import names
from federation.planning.federatedobject.naming import NAME_LENGTH_MAX, bounded

SERVICE_NAME_LABEL = "kubernetes.io/service-name"
_MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by"
_HEADLESS_LABEL = "service.kubernetes.io/headless"
_MANAGER = "serviceexport-controller.kubeadmiral.io"
_LABEL_LENGTH_MAX = 63
_SLICES_MAX = 100
"""EndpointSlices of one Service and cluster, which the host stores: 10,000 endpoints as Kubernetes fills them."""
_MESSAGE_MAX = 1024
_ENDPOINT_FIELDS = ("addresses", "conditions", "hostname", "zone")
"""The facts that hold in every cluster. Nodes and pods are known to their own cluster only."""


class Exported(NamedTuple):
    """The facts about one cluster's export that must be the same everywhere."""

    ports: tuple[tuple[str, str, int, str], ...]
    """Name, protocol, port and application protocol."""
    is_headless: bool
    session_affinity: str


@dataclass(frozen=True, slots=True)
class Export:
    """One cluster's export of a Service; `created` is the time of its ServiceExport."""

    cluster: str
    created: str
    exported: Exported
    slices: Sequence[Object]


def source_label(cluster: str) -> str:
    """Return the value of label `source-cluster` for a cluster."""
    return bounded(cluster, _LABEL_LENGTH_MAX)


def imported_name(cluster: str, name: str) -> str:
    """Return the host's name of a cluster's EndpointSlice."""
    return bounded(f"imported-{cluster}-{name}", NAME_LENGTH_MAX)


def source_of(slice_: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the Service and the label of the source cluster of an imported EndpointSlice, None for all others."""
    labels = slice_["metadata"].get("labels") or {}
    source, service = labels.get(names.SOURCE_CLUSTER), labels.get(SERVICE_NAME_LABEL)
    return (service, source) if source and service else None


def export_of(cluster: str, export: Object | None, service: Object | None, slices: Iterable[Object]) -> Export | None:
    """Return a cluster's export; None if it does not export the Service, or with a Service without sense.

    `slices` are the EndpointSlices of the cluster's namespace. Imported ones are not exported again.
    """
    if export is None or service is None:
        return None
    if any(obj["metadata"].get("deletionTimestamp") for obj in (export, service)):
        return None
    spec = service.get("spec") or {}
    if not spec.get("selector") or spec.get("type") == "ExternalName":
        return None
    name = service["metadata"]["name"]
    own = [each for each in slices if _service_of(each) == name and source_of(each) is None]
    first = sorted(own, key=lambda each: str(each["metadata"]["name"]))[:_SLICES_MAX]
    try:
        exported = _exported(spec)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None  # ports that no API server admits
    return Export(cluster, str(export["metadata"].get("creationTimestamp") or ""), exported, first)


def to_imported(cluster: str, slice_: Object) -> Object:
    """Return the host's copy of a cluster's EndpointSlice. One without sense gives a copy that the host refuses."""
    metadata = slice_["metadata"]
    labels = {
        SERVICE_NAME_LABEL: _service_of(slice_),
        names.SOURCE_CLUSTER: source_label(cluster),
        _MANAGED_BY_LABEL: _MANAGER,
    }
    if _HEADLESS_LABEL in (metadata.get("labels") or {}):
        labels[_HEADLESS_LABEL] = ""
    endpoints = [each for each in _listed(slice_.get("endpoints")) if isinstance(each, dict)]
    return {
        "apiVersion": ENDPOINT_SLICES.api_version,
        "kind": ENDPOINT_SLICES.kind,
        "metadata": {
            "name": imported_name(cluster, metadata["name"]),
            "namespace": metadata["namespace"],
            "labels": labels,
        },
        "addressType": slice_.get("addressType", ""),
        "endpoints": [{field: each[field] for field in _ENDPOINT_FIELDS if field in each} for each in endpoints],
        "ports": _listed(slice_.get("ports")),
    }


def plan_copies(exports: Iterable[Export], owner_of: Callable[[str], tuple[str, str] | None]) -> dict[str, Object]:
    """Return the host's copies by name. `owner_of` has the Service and source label of a name that is taken, or None.

    Slice `b-x` of cluster `a` and slice `x` of cluster `a-b` have the same name: the second one gets another name, so
    that no cluster replaces or holds up the endpoints of another one.
    """
    wanted: dict[str, Object] = {}
    for export in exports:
        for each in export.slices:
            copy = to_imported(export.cluster, each)
            metadata = copy["metadata"]
            if metadata["name"] in wanted or owner_of(metadata["name"]) not in (None, source_of(copy)):
                digits = fnv1_32(f"{export.cluster}/{each['metadata']['name']}")
                metadata["name"] = bounded(f"imported-{digits}-{export.cluster}", NAME_LENGTH_MAX)
            wanted[metadata["name"]] = copy
    return wanted


def is_copy_current(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether the host's EndpointSlice has the wanted content; labels of others stay."""
    labels = present["metadata"].get("labels") or {}
    return labels.items() >= wanted["metadata"]["labels"].items() and all(
        (present.get(field) or []) == wanted[field] for field in ("endpoints", "ports")
    )


def plan_conditions(
    present: list[Condition] | None,
    exports: Sequence[Export],
    refused: Mapping[str, str],
    *,
    has_service: bool,
    now: datetime,
) -> list[Condition]:
    """Return the conditions of the host's ServiceExport: Valid and, between clusters, Conflict.

    `refused` has the reason by the clusters whose EndpointSlices the host did not take. The same list when nothing
    changes.
    """
    if refused:
        text = "; ".join(f"{cluster}: {reason}" for cluster, reason in sorted(refused.items()))
        valid = ("False", "EndpointsRefused", f"the host refuses EndpointSlices of {text}"[:_MESSAGE_MAX])
    elif exports:
        clusters = ", ".join(export.cluster for export in exports)
        valid = ("True", "Exported", f"exported by {clusters}")
    elif has_service:
        valid = ("False", "NoExport", "no cluster has both the ServiceExport and a Service with a selector")
    else:
        valid = ("False", "NoService", "there is no Service of this name in the namespace")
    planned = conditions.set_condition(
        present, type_="Valid", status=valid[0], reason=valid[1], message=valid[2], now=now
    )
    conflict = conflict_of(exports)
    if not conflict:
        return conditions.remove(planned, "Conflict")
    return conditions.set_condition(
        planned, type_="Conflict", status="True", reason="DifferentServices", message=conflict, now=now
    )


def conflict_of(exports: Sequence[Export]) -> str:
    """Return how exports differ from the oldest one, "" when they are alike."""
    if not exports:
        return ""
    oldest = min(exports, key=lambda export: (export.created, export.cluster))
    parts = [
        f"{' and '.join(found)} of {export.cluster}"
        for export in exports
        if (found := _differences(oldest.exported, export.exported))
    ]
    return f"not as in {oldest.cluster}, whose export is the oldest: {'; '.join(parts)}" if parts else ""


def _differences(wanted: Exported, other: Exported) -> list[str]:
    named = ("ports", wanted.ports, other.ports), ("type", wanted.is_headless, other.is_headless)
    affinity = ("session affinity", wanted.session_affinity, other.session_affinity)
    return [name for name, one, two in (*named, affinity) if one != two]


def _exported(spec: Mapping[str, Any]) -> Exported:
    ports = sorted(
        (
            str(port.get("name") or ""),
            str(port.get("protocol") or "TCP"),
            int(port["port"]),
            str(port.get("appProtocol") or ""),
        )
        for port in spec.get("ports") or ()
    )
    return Exported(tuple(ports), spec.get("clusterIP") == "None", str(spec.get("sessionAffinity") or "None"))


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _service_of(slice_: Mapping[str, Any]) -> str:
    return str((slice_["metadata"].get("labels") or {}).get(SERVICE_NAME_LABEL, ""))
