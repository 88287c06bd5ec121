"""Federated objects as rows: `/federation/v1/objects`, filtered and in pages, from the caches of the control plane.

A user sees the objects of the kinds that he may `list` in the namespace of the query. Without one, he sees those of all
namespaces, or of the namespaces in which he has a role. Kinds that he may list nowhere are named. Objects whose
federated object was written by hand need `list` on federated objects too. `causes` counts what is behind the problems
of these objects, over all pages: a dead cluster is one cause.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, PROJECTS
from federation.apimachinery import conditions
from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.errors import BadRequest, ServiceUnavailable
from federation.apimachinery.resources import Object
from federation.planning.diagnosis.deliverystage import Stage
from federation.planning.diagnosis.objectsummary import Attention, ObjectSummary
from federation.planning.federatedobject.builder import source_key
from federation.planning.projects.projectindex import ProjectIndex
from federation.runtime.controller import Key, key_of
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.informers import Informers
from federation.runtime.sourceinformers import SourceInformers
from federation.web.delivery import DeliveryView
from federation.web.objectrows import (
    SORTS,
    CauseCount,
    NamespaceCount,
    Row,
    causes_to_json,
    count_causes,
    page_of,
    to_item,
    to_row,
)
from federation.web.requests import json_response, namespaces_to_list

PATH = "/federation/v1/objects"
_LIMIT_MAX = 500
_STATES = ("attention", *Attention, *Stage)
_DEFINITION = "CustomResourceDefinition"
_KEPT_MAX = 20_000
"""Rows that are kept; those of further objects are made again for each list."""
_SLICE = 200
"""Objects that are looked at before other requests get their turn."""
_FILL_SLICE = 50
"""Rows that are made beforehand before others get their turn: as many as take five milliseconds."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A choice of objects: each "" means all. `name` is a part of the name; `state` is a stage, a kind of attention, or
    "attention" for every object that needs some. `hold` is the name of a PlacementHold that the object waits for,
    `held_by` the freeze or suspension, and `cause` the key of a cause.
    """

    namespace: str
    kind: str
    name: str
    cluster: str
    state: str
    hold: str = ""
    cause: str = ""
    held_by: str = ""

    def names(self, row: Row) -> bool:
        """Return whether the object's name, clusters and what holds it match."""
        return (
            self.name in row.name
            and (not self.cluster or self.cluster in row.summary.clusters)
            and (not self.hold or any(move.hold == self.hold for move in row.held))
            and (not self.held_by or self.held_by in row.held_by)
        )

    def states(self, summary: ObjectSummary) -> bool:
        """Return whether the object's state and causes match."""
        if self.cause and all(cause.key != self.cause for problem in summary.problems for cause in problem.causes):
            return False
        if not self.state:
            return True
        if self.state == "attention":
            return bool(summary.problems)
        return self.state == summary.stage or any(self.state == problem.attention for problem in summary.problems)


class ObjectListView:
    """Reads federated objects, their sources and the state of clusters from the caches of the controllers."""

    def __init__(
        self, objects: FederatedObjects, informers: Informers, delivery: DeliveryView, clock: Clock | None = None
    ) -> None:
        self._objects = objects
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._projects = informers.for_resource(PROJECTS)
        self._sources = SourceInformers(informers, self._on_source)
        self._kept: dict[Key, Row] = {}
        self._silent = frozenset[str]()
        self._delivery = delivery
        self._clock = clock or SystemClock()
        objects.subscribe(self._on_federated, None, is_replayed=False)
        objects.types.add_listener(self._sources.follow, self._sources.unfollow)

    def types(self) -> list[FederatedType]:
        """Return the federated types; ServiceUnavailable while caches are incomplete."""
        if not (self._objects.has_synced and self._clusters.has_synced and self._projects.has_synced):
            raise ServiceUnavailable("the control plane is starting; try again in a few seconds")
        return sorted(self._objects.types.all(), key=lambda type_: type_.resource.group_resource)

    def projects(self) -> ProjectIndex:
        """Return the projects; ServiceUnavailable while caches are incomplete."""
        self.types()
        return ProjectIndex(self._projects.list())

    def silent_clusters(self) -> frozenset[str]:
        """Return the clusters that are not ready."""
        found = frozenset(
            cluster["metadata"]["name"]
            for cluster in self._clusters.list()
            if not conditions.is_true((cluster.get("status") or {}).get("conditions"), names.CLUSTER_READY)
        )
        if found != self._silent:
            self._silent = found
        return self._silent  # the same object for the same clusters, which rows compare fastest

    def rows(self, type_: FederatedType, namespace: str, silent: frozenset[str]) -> Iterator[Row]:
        """Yield the rows of a type's objects in a namespace, "" for all; kept ones while nothing in them has changed.

        To read 5,000 objects for each list would take a second: most of them are kept as text.
        """
        resource, now = type_.resource, self._clock.now()
        shipped = shipped_definitions() if resource.kind == _DEFINITION else ()
        where = namespace if resource.namespaced else ""
        for key in self._objects.keys_of_kind(resource.group_kind, where):
            row = self._kept.get(key)
            if row is None or not row.holds(type_, silent, now):
                row = self._make(key, type_, silent, now)
            if row is not None and (row.summary.clusters or row.name not in shipped):
                yield row

    async def fill(self) -> None:
        """Make the rows of all objects beforehand, which takes half a second for 5,000, so that no request does it."""
        await self._objects.wait_synced()
        for informer in (self._clusters, self._projects):
            await informer.wait_synced()
        silent = self.silent_clusters()
        for type_ in self.types():
            for number, _ in enumerate(self.rows(type_, "", silent)):
                if len(self._kept) >= _KEPT_MAX:
                    return
                if number % _FILL_SLICE == 0:
                    await asyncio.sleep(0)

    def _make(self, key: Key, type_: FederatedType, silent: frozenset[str], now: datetime) -> Row | None:
        federated = self._objects.get(key)
        if federated is None:
            self._kept.pop(key, None)
            return None
        _, _, namespace, name = source_key(federated)
        row = to_row(key, type_, federated, self._sources.get(type_.resource, namespace, name), silent, now)
        if key in self._kept or len(self._kept) < _KEPT_MAX:
            self._kept[key] = row
        return row

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        """Forget the row of an object that has changed."""
        if self._kept:
            self._kept.pop(key_of(new if new is not None else old or {}), None)

    def _on_source(self, type_: FederatedType, old: Object | None, new: Object | None) -> None:
        """Forget the row of a source that has changed."""
        if self._kept and (obj := new or old) is not None:
            self._kept.pop(self._objects.key_of_source(type_, obj), None)

    def in_cluster(self, row: Row, cluster: str) -> dict[str, Any] | None:
        """Return how the object is in one cluster, None where it is not."""
        federated = self._objects.get(row.key)
        found = None if federated is None else self._delivery.row_in(federated, row.type_, cluster)
        if found is None:
            return None
        return {
            "placed": found.is_placed,
            "wanted": None if row.summary.outcome else found.wanted,
            "ready": None if row.summary.outcome else found.ready,
            "applied": found.applied,
            "status": found.status,
            "message": found.message,
        }


def add_routes(web: FastAPI, view: ObjectListView) -> None:
    """Serve the list."""

    @web.get(PATH)
    async def objects(
        request: Request,
        namespace: str = "",
        kind: str = "",
        name: str = "",
        cluster: str = "",
        state: str = "",
        hold: str = "",
        held_by: Annotated[str, Query(alias="heldBy")] = "",
        cause: str = "",
        sort: str = "",
        count_by: Annotated[Literal["", "cluster", "namespace", "heldBy"], Query(alias="countBy")] = "",
        limit: Annotated[int, Query(ge=1, le=_LIMIT_MAX)] = _LIMIT_MAX,
        after: Annotated[str, Query(alias="continue")] = "",
    ) -> Response:
        """Return a page of the objects that the user may list, and counts and causes over all pages."""
        if state and state not in _STATES:
            raise BadRequest(f"state: {state} is not one of {', '.join(_STATES)}")
        if sort.removeprefix("-") not in SORTS:
            raise BadRequest(f"sort: {sort} is not one of {', '.join(filter(None, SORTS))}, with or without a - before")
        wanted = Filter(namespace, kind, name, cluster, state, hold, cause, held_by)
        visible, hidden = await visible_types(request, view, wanted.namespace, wanted.kind)
        by_hand = set(await namespaces_to_list(request, FEDERATED_OBJECTS, namespace))
        silent, rows, counts = view.silent_clusters(), list[Row](), Counter[str]()
        placed, held = Counter[str](), Counter[str]()
        replicas_wanted = replicas_ready = 0
        causes: dict[str, CauseCount] = {}
        spaces: dict[str, NamespaceCount] = {}
        seen = 0
        for type_, where in ((type_, where) for type_, listed in visible for where in listed):
            for row in view.rows(type_, where, silent):
                seen += 1
                if seen % _SLICE == 0:
                    await asyncio.sleep(0)
                if not wanted.names(row) or (row.is_hand_written and by_hand.isdisjoint(("", row.key.namespace))):
                    continue
                summary = row.summary
                if count_by == "cluster":
                    placed.update(summary.clusters)
                elif count_by == "heldBy":
                    held.update(row.held_by)
                elif count_by == "namespace":
                    spaces.setdefault(row.key.namespace, NamespaceCount()).add(summary)
                if summary.problems:
                    counts.update({problem.attention.value for problem in summary.problems})
                    count_causes(causes, row)
                if wanted.states(summary):
                    replicas_wanted += summary.wanted or 0
                    replicas_ready += min(summary.ready or 0, summary.wanted or 0)  # others are about to stop
                    rows.append(row)
        if rows:
            counts["all"] = len(rows)
        page, token = page_of(rows, sort, limit, after)
        items = []
        for row in page:
            here = view.in_cluster(row, cluster) if cluster else None
            items.append({**to_item(row), **({} if here is None else {"inCluster": here})})
        body = {
            "kind": "FederatedObjectSummaryList",
            "metadata": {"continue": token} if token else {},
            "counts": counts,
            "countsByCluster": placed,
            "countsByHolding": held,
            "countsByNamespace": {name: count.to_json() for name, count in spaces.items() if name},
            "replicas": {"wanted": replicas_wanted, "ready": replicas_ready},
            "causes": causes_to_json(causes.values()),
            "kinds": sorted({type_.resource.kind for type_, _ in visible}),
            "hiddenResources": hidden,
            "items": items,
        }
        return json_response(200, body)


async def visible_types(
    request: Request, view: ObjectListView, namespace: str, kind: str = ""
) -> tuple[list[tuple[FederatedType, list[str]]], list[str]]:
    """Return the types that the user may list, with the namespaces ("" for all), and the resources that he may not."""
    visible: list[tuple[FederatedType, list[str]]] = []
    hidden: list[str] = []
    for type_ in view.types():
        resource = type_.resource
        if kind not in ("", resource.kind) or (namespace and not resource.namespaced):
            continue
        if listed := await namespaces_to_list(request, resource, namespace):
            visible.append((type_, listed))
        else:
            hidden.append(resource.group_resource)
    return visible, hidden


@cache
def shipped_definitions() -> frozenset[str]:
    """Return the names of the definitions that the control plane makes for its own use: no policy is to place them."""
    return frozenset(manifest["metadata"]["name"] for manifest in crd_manifests())
