"""Where an object is, and as what: `/federation/v1/delivery`, from the caches of the control plane.

Permission to `get` the object of the host is permission to see its delivery. A federated object that was written by
hand has no such object, so that needs permission to read the federated object too. No request goes to a member.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response

from federation.api.federatedtype import FederatedType
from federation.apimachinery.errors import ServiceUnavailable
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.apiserver.semantics.kinds.kinds import Kinds
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.federatedobject.provenance import is_hand_written
from federation.planning.status.delivery import deliveries_of, delivery_to_json
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.members import Members
from federation.web.requests import check_parameters, json_response, required_permissions

DELIVERY_PATH = "/federation/v1/delivery"
PATHS = frozenset({DELIVERY_PATH})
_PARAMETERS = frozenset(("group", "kind", "namespace", "name"))
_Name = Annotated[str, Query(min_length=1)]


@dataclass(frozen=True, slots=True)
class Found:
    """A federated object, its type, and its managed member objects by cluster (where the cache is complete)."""

    federated: Object
    type_: FederatedType
    observed: Mapping[str, Object | None]


class DeliveryView:
    """Reads federated objects and member objects from the caches of the controllers."""

    def __init__(self, objects: FederatedObjects, members: Members) -> None:
        self._objects = objects
        self._members = members

    def find(self, group: str, kind: str, namespace: str, name: str) -> Found | None:
        """Return the federated object of a source, None without one; ServiceUnavailable while caches are incomplete."""
        if not self._objects.has_synced:
            raise ServiceUnavailable("the control plane is starting; try again in a few seconds")
        type_ = self._objects.types.for_group_kind(group, kind)
        if type_ is None:
            return None
        where = namespace if type_.resource.namespaced else ""
        federated = self._objects.get(self._objects.key_for(type_, where, name))
        if federated is None or _template_name(federated) != name or self._objects.type_of(federated) != type_:
            return None
        clusters = effective_placement(federated).union(_reported_clusters(federated))
        return Found(federated, type_, self._observed(type_.resource, where, name, clusters))

    def _observed(
        self, resource: Resource, namespace: str, name: str, clusters: frozenset[str]
    ) -> dict[str, Object | None]:
        return {
            cluster: self._members.get_cached(cluster, resource, namespace, name)
            for cluster in clusters
            if self._members.is_synced(cluster, resource)
        }


def _template_name(federated: Mapping[str, Any]) -> str:
    return str(((federated["spec"].get("template") or {}).get("metadata") or {}).get("name") or "")


def _reported_clusters(federated: Mapping[str, Any]) -> list[str]:
    return [str(entry["cluster"]) for entry in (federated.get("status") or {}).get("clusters") or ()]


async def find_authorized(
    request: Request, view: DeliveryView, kinds: Kinds, group: str, kind: str, namespace: str, name: str
) -> Found | None:
    """Return what is known of an object, None if it is not federated; Forbidden unless the user may read it."""
    await request.scope[AUTHORIZE](required_permissions(kinds, kind, group, namespace, name))
    found = view.find(group, kind, namespace, name)
    if found is not None and is_hand_written(found.federated):
        resource, metadata = found.type_.federated_resource, found.federated["metadata"]
        await request.scope[AUTHORIZE](
            [
                Attributes(
                    "get",
                    resource.group,
                    resource.version,
                    resource.plural,
                    namespace=metadata.get("namespace") or "",
                    name=metadata["name"],
                )
            ]
        )
    return found


def add_routes(web: FastAPI, view: DeliveryView, kinds: Kinds) -> None:
    """Serve the delivery of objects."""

    @web.get(DELIVERY_PATH)
    async def delivery(request: Request, kind: _Name, name: _Name, group: str = "", namespace: str = "") -> Response:
        """Return the object's conditions, and per cluster what is wanted, applied and ready."""
        check_parameters(request, _PARAMETERS)
        found = await find_authorized(request, view, kinds, group, kind, namespace, name)
        if found is None:
            return json_response(200, {"kind": "Delivery", "conditions": [], "clusters": []})
        rows = deliveries_of(found.federated, found.type_, found.observed)
        return json_response(200, delivery_to_json(found.federated, rows))
