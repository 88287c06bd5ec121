"""Where an object is, and as what: `/federation/v1/delivery` and `/manifests`, from the caches of the control plane.

Permission to `get` the object of the host is permission to see its delivery and its manifests. A federated object that
was written by hand has no such object, so that needs permission to read the federated object too. Values of Secrets are
hidden. No request goes to a member.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Query, Request, Response

from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS
from federation.api.secretvalues import compared_without_secret_values
from federation.apimachinery.errors import ServiceUnavailable
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.client.client import Client
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.rules.content import Subject, compute_content, to_applied_configuration
from federation.delivery.rules.decision import Decision, describe
from federation.delivery.rules.memberrecord import MemberKey, MemberRecord
from federation.delivery.rules.status import clusters_of
from federation.planning.federatedobject.builder import source_key
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.federatedobject.provenance import is_hand_written
from federation.planning.rendering.admittednodes import pod_specs_in
from federation.planning.rendering.comparison import owned_part
from federation.planning.rendering.memberobject import Renderer, RenderError
from federation.planning.rendering.retention import RetentionError
from federation.planning.status.delivery import ClusterDelivery, Drift, deliveries_of, delivery_to_json
from federation.runtime.controller import key_of
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.informers import Informers
from federation.runtime.members import Members
from federation.runtime.toleratedtaints import ToleratedTaints
from federation.web.requests import ServedKinds, json_response, required_permissions

DELIVERY_PATH = "/federation/v1/delivery"
MANIFESTS_PATH = "/federation/v1/manifests"
PATHS = frozenset({DELIVERY_PATH, MANIFESTS_PATH})
_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of manifests in one response; `metadata.continue` leads to the rest."""
_IMAGE_LENGTH_MAX = 500
_Name = Annotated[str, Query(min_length=1)]


@dataclass(frozen=True, slots=True)
class Found:
    """A federated object, its type, and its managed member objects by cluster (where the cache is complete)."""

    federated: Object
    type_: FederatedType
    observed: Mapping[str, Object | None]


Preview = Callable[[Object, FederatedType], Mapping[str, Decision]]
"""Returns what the delivery would decide now about a federated object, by cluster."""


class DeliveryView:
    """Reads federated objects and member objects from the caches of the controllers."""

    def __init__(
        self,
        objects: FederatedObjects,
        informers: Informers,
        members: Members,
        records: MemberRecords,
        tolerated: ToleratedTaints,
        preview: Preview = lambda *_: {},
    ) -> None:
        self._objects = objects
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._members = members
        self._records = records
        self._tolerated = tolerated
        self._preview = preview

    def federated_resource(self, group: str, kind: str) -> Resource | None:
        """Return the resource of a federated kind, None when it is not federated."""
        type_ = self._objects.types.for_group_kind(group, kind)
        return None if type_ is None else type_.resource

    def clusters_in(self, namespace: str) -> list[str]:
        """Return the clusters where something of a namespace is placed, sorted."""
        return sorted(
            {cluster for each in self._objects.list_namespace(namespace) for cluster in effective_placement(each)}
        )

    def client(self, cluster: str) -> Client:
        """Return the client of a member, with the federation's rights; NotFound when it has not joined."""
        return self._members.client(cluster)

    def find(self, group: str, kind: str, namespace: str, name: str) -> Found | None:
        """Return the federated object of a source, None without one; ServiceUnavailable while caches are incomplete."""
        if not self._objects.has_synced:
            raise ServiceUnavailable("the control plane is starting; try again in a few seconds")
        type_ = self._objects.types.for_group_kind(group, kind)
        if type_ is None:
            return None
        where = namespace if type_.resource.namespaced else ""
        federated = self._objects.get(self._objects.key_for(type_, where, name))
        if federated is None or source_key(federated)[3] != name or self._objects.type_of(federated) != type_:
            return None
        clusters = effective_placement(federated).union(clusters_of(federated))
        return Found(federated, type_, self._observed(type_.resource, where, name, clusters))

    def rows(self, found: Found) -> list[ClusterDelivery]:
        """Return the delivery of the object, cluster by cluster."""
        clusters = {cluster["metadata"]["name"]: cluster for cluster in self._clusters.list()}
        return deliveries_of(found.federated, found.type_, found.observed, clusters)

    def row_in(self, federated: Object, type_: FederatedType, cluster: str) -> ClusterDelivery | None:
        """Return the delivery of a federated object in one cluster, None where it neither is nor should be."""
        _, _, namespace, name = source_key(federated)
        where = namespace if type_.resource.namespaced else ""
        observed = self._observed(type_.resource, where, name, frozenset((cluster,)))
        joined = {cluster: found} if (found := self._clusters.get("", cluster)) is not None else {}
        rows = deliveries_of(federated, type_, observed, joined, only_in=cluster)
        return rows[0] if rows else None

    def drifts(self, found: Found) -> dict[str, Drift]:
        """Return the drift of the object within the last hour, by cluster."""
        drifts = {cluster: self._records.drift(member_key(found, cluster)) for cluster in found.observed}
        return {cluster: drift for cluster, drift in drifts.items() if drift is not None}

    def scaler(self, found: Found, cluster: str) -> str:
        """Return the autoscaler in the cluster that owns the object's replicas, "" without one."""
        return self._records.get(member_key(found, cluster)).scaler_name

    def next(self, found: Found) -> Mapping[str, Decision]:
        """Return what the delivery would decide now, by cluster; {} where another process delivers."""
        return self._preview(found.federated, found.type_)

    def record(self, found: Found, cluster: str) -> MemberRecord:
        """Return what is known of the object in the cluster beyond its cache."""
        return self._records.get(member_key(found, cluster))

    def tolerated(self, found: Found) -> Mapping[str, datetime]:
        """Return until when the object stays in its tainted clusters, by cluster."""
        return self._tolerated.find(key_of(found.federated))

    def _observed(
        self, resource: Resource, namespace: str, name: str, clusters: frozenset[str]
    ) -> dict[str, Object | None]:
        return {
            cluster: self._members.get_cached(cluster, resource, namespace, name)
            for cluster in clusters
            if self._members.is_synced(cluster, resource)
        }


async def find_authorized(
    request: Request, view: DeliveryView, kinds: ServedKinds, group: str, kind: str, namespace: str, name: str
) -> Found | None:
    """Return what is known of an object, None if it is not federated; Forbidden unless the user may read it."""
    required = required_permissions(kinds, kind, group, namespace, name)
    await request.scope[AUTHORIZE](required, is_path_enough=False)
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
            ],
            is_path_enough=False,
        )
    return found


def add_routes(web: FastAPI, view: DeliveryView, kinds: ServedKinds) -> None:
    """Serve the delivery of objects."""

    @web.get(DELIVERY_PATH)
    async def delivery(request: Request, kind: _Name, name: _Name, group: str = "", namespace: str = "") -> Response:
        """Return the object's conditions, and per cluster what is wanted, applied and ready."""
        found = await find_authorized(request, view, kinds, group, kind, namespace, name)
        if found is None:
            return json_response(200, {"kind": "Delivery", "conditions": [], "clusters": []})
        rows = view.rows(found)
        scalers = {row.cluster: name for row in rows if (name := view.scaler(found, row.cluster))}
        document = delivery_to_json(
            found.federated, found.type_, rows, view.drifts(found), scalers, view.tolerated(found)
        )
        decisions = view.next(found)
        for row in document["clusters"]:
            if (text := describe(decisions.get(row["cluster"]))) is not None:
                row["next"] = text
            if images := images_of(found.observed.get(row["cluster"]), found.type_):
                row["images"] = images
        return json_response(200, document)

    @web.get(MANIFESTS_PATH)
    async def manifests(
        request: Request,
        kind: _Name,
        name: _Name,
        group: str = "",
        namespace: str = "",
        cluster: str = "",
        after: Annotated[str, Query(alias="continue")] = "",
    ) -> Response:
        """Return per cluster the manifest that is applied, and what the member has of its fields."""
        found = await find_authorized(request, view, kinds, group, kind, namespace, name)
        items: list[Any] = []
        metadata: dict[str, str] = {}
        size = 0
        rows = [] if found is None else view.rows(found)
        for row in rows:
            if found is None or cluster not in ("", row.cluster) or row.cluster <= after:
                continue
            if size > _BYTES_MAX:
                metadata["continue"] = items[-1]["cluster"]
                break
            items.append(manifests_in(found, row, view.record(found, row.cluster)))
            size += len(orjson.dumps(items[-1]))
            await asyncio.sleep(0)  # an object in many clusters must not hold up other requests
        return json_response(200, {"kind": "ManifestList", "metadata": metadata, "items": items})


def images_of(live: Object | None, type_: FederatedType) -> list[str]:
    """Return the images of an object's containers as a member has it, each once; what is no container is left out."""
    typed = {**(live or {}), "apiVersion": type_.resource.api_version, "kind": type_.resource.kind}
    lists = [
        found
        for spec in pod_specs_in(typed, type_)
        for field in ("containers", "initContainers")
        if isinstance(found := spec.get(field), list)
    ]
    images = [each.get("image") for containers in lists for each in containers if isinstance(each, Mapping)]
    return [image for image in dict.fromkeys(map(str, filter(None, images))) if len(image) <= _IMAGE_LENGTH_MAX]


def manifests_in(found: Found, row: ClusterDelivery, record: MemberRecord) -> dict[str, Any]:
    """Return one cluster's manifest as sync would apply it now, and the part of the live object that it owns.

    `record` is what is known of the object beyond the cluster's cache, such as an autoscaler that owns the replicas.
    """
    item: dict[str, Any] = {
        "cluster": row.cluster,
        "applied": row.applied,
        "status": row.status,
        "message": row.message,
        "foreign": list(row.foreign),
    }
    live = found.observed.get(row.cluster)
    try:
        wanted = to_wanted(found, row.cluster, live, record) if row.is_placed else None
    except (RenderError, RetentionError) as error:
        return {**item, "wanted": None, "live": None, "error": str(error)}
    if wanted is None:
        return {**item, "wanted": None, "live": _identity(live), "error": ""}
    held = owned_part(wanted, live) if live is not None else None
    return {
        **item,
        "wanted": compared_without_secret_values(wanted, held or wanted, "wanted"),
        "live": compared_without_secret_values(held, wanted, "live") if held is not None else None,
        "error": "",
    }


def to_wanted(found: Found, cluster: str, live: Object | None, record: MemberRecord) -> Object:
    """Return the configuration that sync would apply now; RenderError and RetentionError when there is none."""
    subject = Subject(found.federated, found.type_, Renderer(found.federated, found.type_))
    content = compute_content(subject, member_key(found, cluster), live, record)
    if content.problem is not None:
        raise RenderError(content.problem[1])
    assert content.write is not None
    return content.write.desired.object if live is None else to_applied_configuration(content.write, live)


def member_key(found: Found, cluster: str) -> MemberKey:
    """Return the key of the object in the cluster."""
    resource = found.type_.resource
    _, _, namespace, name = source_key(found.federated)
    return MemberKey(cluster, resource, namespace if resource.namespaced else "", name)


def _identity(live: Object | None) -> Object | None:
    """Return only what names an object that is on its way out."""
    if live is None:
        return None
    metadata = {key: value for key, value in live["metadata"].items() if key in ("name", "namespace")}
    return {"apiVersion": live.get("apiVersion"), "kind": live.get("kind"), "metadata": metadata}
