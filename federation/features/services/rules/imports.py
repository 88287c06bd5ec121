"""Where an imported Service and its EndpointSlices go, and what the Service is like there. Pure.

A ServiceImport's clusters get the host's Service of the same name. Where the Service is placed by itself, it stays as
it is; where it is only imported, overrides make it a Service without a selector that has the ports of the import
(docs/decisions/0045-imported-services.md). The EndpointSlices of every other exporting cluster complete it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from federation.api import names
from federation.apimachinery.resources import SERVICES, Object
from federation.features.services.names import SERVICE_IMPORT_CONTROLLER
from federation.features.services.rules.exports import source_label, source_of
from federation.planning.federatedobject.placements import (
    Part,
    Patches,
    placement_of,
    to_merge_patch,
    with_overrides,
    with_placement,
)

_HEADLESS = "Headless"


def derived_service(service_import: Mapping[str, Any]) -> Object:
    """Return the Service of a ServiceImport for a cluster that only imports: its ports, and no selector."""
    metadata, given = service_import["metadata"], service_import.get("spec") or {}
    spec: Object = {"type": "ClusterIP", "ports": service_ports(given)}
    if given.get("type") == _HEADLESS:
        spec["clusterIP"] = "None"
    if given.get("sessionAffinity"):
        spec["sessionAffinity"] = given["sessionAffinity"]
    if given.get("sessionAffinityConfig"):
        spec["sessionAffinityConfig"] = given["sessionAffinityConfig"]
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "annotations": {names.DERIVED_SERVICE: metadata["name"]},
        },
        "spec": spec,
    }


def service_ports(spec: Mapping[str, Any]) -> list[Object]:
    """Return the ports of a ServiceImport as those of a Service."""
    fields = ("name", "protocol", "port", "appProtocol")
    return [{field: port[field] for field in fields if port.get(field) is not None} for port in spec.get("ports") or ()]


def importing_clusters(federated_import: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the clusters that the scheduler chose for a ServiceImport; none while it is being deleted."""
    if federated_import is None or federated_import["metadata"].get("deletionTimestamp"):
        return frozenset()
    return frozenset(placement_of(federated_import, names.GLOBAL_SCHEDULER))


def plan_service(
    federated: Mapping[str, Any], service_import: Mapping[str, Any] | None, clusters: Collection[str]
) -> Part | None:
    """Return the merge patch that places a Service in the importing clusters, None when nothing changes."""
    others = {
        item["cluster"]
        for entry in (federated.get("spec") or {}).get("placements") or ()
        if entry.get("controller") != SERVICE_IMPORT_CONTROLLER
        for item in entry.get("placement") or ()
    }
    patches: dict[str, Patches] = {}
    if service_import is not None:
        spec = derived_service(service_import)["spec"]
        operations = [{"op": "replace", "path": "/spec", "value": spec}]
        patches = dict.fromkeys(set(clusters) - others, operations)
    return to_merge_patch(
        federated,
        with_placement(federated, SERVICE_IMPORT_CONTROLLER, clusters),
        with_overrides(federated, SERVICE_IMPORT_CONTROLLER, patches),
    )


def plan_slice(federated: Mapping[str, Any], clusters: Iterable[str]) -> Part | None:
    """Return the merge patch that places an imported EndpointSlice, None when nothing changes.

    Its own cluster has the original.
    """
    found = source_of(federated["spec"]["template"])
    wanted = [cluster for cluster in clusters if found is None or source_label(cluster) != found[1]]
    return to_merge_patch(federated, with_placement(federated, SERVICE_IMPORT_CONTROLLER, wanted))
