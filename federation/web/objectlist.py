"""Federated objects as rows: `/federation/v1/objects`, filtered and in pages, from the caches of the control plane.

A user sees the objects of the kinds that he may `list` in the namespace of the query, or in all namespaces without one.
Kinds that he may not list are named. Objects whose federated object was written by hand need `list` on federated
objects too. `causes` counts what is behind the problems of these objects, over all pages: a dead cluster is one cause.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
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
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.resources import Object, Resource
from federation.planning.diagnosis.deliverystage import Stage
from federation.planning.diagnosis.holdingrules import holding_rules
from federation.planning.diagnosis.objectsummary import Attention, ObjectSummary, is_settled, summarize
from federation.planning.federatedobject.builder import source_key
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.federatedobject.provenance import is_hand_written
from federation.planning.guard.record import held_moves
from federation.planning.projects.projectindex import ProjectIndex
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
    identity_of,
    page_of,
)
from federation.web.requests import check_parameters, json_response, may_list

PATH = "/federation/v1/objects"
_LIMIT_MAX = 500
_PARAMETERS = frozenset(
    (
        "namespace", "kind", "name", "cluster", "state", "hold", "heldBy", "cause", "countBy", "sort", "limit",
        "continue",
    )
)  # fmt: skip
_STATES = ("attention", *Attention, *Stage)
_DEFINITION = "CustomResourceDefinition"
_LAST = "~"
"""Sorts behind every namespace: cluster-scoped objects come last, because users look for workloads."""
_KEPT_MAX = 20_000
"""Rows that are kept; those of further objects are made again for each list."""
_SLICE = 500
"""Objects that are looked at before other requests get their turn."""


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

    def names(self, federated: Object, source_name: str) -> bool:
        """Return whether the object's name, clusters and what holds it match."""
        return (
            self.name in source_name
            and (not self.cluster or self.cluster in effective_placement(federated))
            and (not self.hold or any(move.hold == self.hold for move in held_moves(federated)))
            and (not self.held_by or self.held_by in holding_rules(federated))
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


_SourceKey = tuple[Resource, str, str]


@dataclass(frozen=True, slots=True)
class _Kept:
    """The row of an object at a version; a list of 5,000 objects would spend four fifths of its time on making rows."""

    version: str
    type_: FederatedType
    silent: frozenset[str]
    summary: ObjectSummary

    def holds_with(self, silent: frozenset[str]) -> bool:
        """Return whether the row is the same with these clusters silent."""
        if silent is self.silent or silent == self.silent:
            return True
        here = self.summary.clusters
        return silent.isdisjoint(here) and self.silent.isdisjoint(here)


class ObjectListView:
    """Reads federated objects, their sources and the state of clusters from the caches of the controllers."""

    def __init__(
        self, objects: FederatedObjects, informers: Informers, delivery: DeliveryView, clock: Clock | None = None
    ) -> None:
        self._objects = objects
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._projects = informers.for_resource(PROJECTS)
        self._sources = SourceInformers(informers, self._on_source)
        self._kept: dict[_SourceKey, _Kept] = {}
        self._delivery = delivery
        self._clock = clock or SystemClock()
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
        return frozenset(
            cluster["metadata"]["name"]
            for cluster in self._clusters.list()
            if not conditions.is_true((cluster.get("status") or {}).get("conditions"), names.CLUSTER_READY)
        )

    def of_type(
        self, type_: FederatedType, wanted: Filter, *, with_hand_written: bool
    ) -> Iterator[tuple[tuple[Any, ...], Object]]:
        """Yield the type's federated objects that match by namespace, name and cluster, with their usual places."""
        resource = type_.resource
        namespace = wanted.namespace if resource.namespaced else ""
        shipped = shipped_definitions() if resource.kind == _DEFINITION else ()
        for federated in self._objects.of_kind(resource.api_version, resource.kind, namespace):
            _, _, where, name = source_key(federated)
            if name in shipped and not effective_placement(federated):
                continue
            if wanted.names(federated, name) and (with_hand_written or not is_hand_written(federated)):
                yield (where or _LAST, resource.kind, natural_key(name), resource.group), federated

    def summarize(self, type_: FederatedType, federated: Object, silent: frozenset[str]) -> ObjectSummary:
        """Return the row of a federated object, a kept one while nothing that it depends on has changed."""
        _, _, namespace, name = source_key(federated)
        key = type_.resource, namespace, name
        version = federated["metadata"].get("resourceVersion", "")
        kept = self._kept.get(key)
        if kept is not None and kept.version == version and kept.type_ is type_ and kept.holds_with(silent):
            return kept.summary
        source = self._sources.get(type_.resource, namespace, name)
        summary = summarize(federated, source, type_, silent, self._clock.now())
        if kept is not None or len(self._kept) < _KEPT_MAX:
            if is_settled(summary):
                self._kept[key] = _Kept(version, type_, silent, summary)
            else:
                self._kept.pop(key, None)
        return summary

    def _on_source(self, type_: FederatedType, old: Object | None, new: Object | None) -> None:
        """Forget the row of a source that has changed."""
        if self._kept and (obj := new or old) is not None:
            metadata = obj["metadata"]
            self._kept.pop((type_.resource, metadata.get("namespace", ""), metadata["name"]), None)

    def in_cluster(self, row: Row, cluster: str) -> dict[str, Any] | None:
        """Return how the object is in one cluster, None where it is not."""
        found = self._delivery.row_in(row.federated, row.type_, cluster)
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
        check_parameters(request, _PARAMETERS)
        if state and state not in _STATES:
            raise BadRequest(f"state: {state} is not one of {', '.join(_STATES)}")
        if sort.removeprefix("-") not in SORTS:
            raise BadRequest(f"sort: {sort} is not one of {', '.join(filter(None, SORTS))}, with or without a - before")
        wanted = Filter(namespace, kind, name, cluster, state, hold, cause, held_by)
        visible, hidden = await visible_types(request, view, wanted.namespace, wanted.kind)
        by_hand = await may_list(request, FEDERATED_OBJECTS, namespace)
        silent, rows, counts = view.silent_clusters(), list[Row](), Counter[str]()
        placed, held = Counter[str](), Counter[str]()
        replicas: Counter[str] = Counter(wanted=0, ready=0)
        causes: dict[str, CauseCount] = {}
        spaces: dict[str, NamespaceCount] = {}
        seen = 0
        for type_ in visible:
            for place, federated in view.of_type(type_, wanted, with_hand_written=by_hand):
                row = Row(place, type_, federated, view.summarize(type_, federated, silent))
                if count_by == "cluster":
                    placed.update(row.summary.clusters)
                elif count_by == "heldBy":
                    held.update(holding_rules(federated))
                elif count_by == "namespace":
                    spaces.setdefault(source_key(federated)[2], NamespaceCount()).add(row.summary)
                counts.update({problem.attention.value for problem in row.summary.problems})
                count_causes(causes, row)
                if wanted.states(row.summary):
                    counts["all"] += 1
                    replicas.update(wanted=row.summary.wanted or 0, ready=_counted(row.summary))
                    rows.append(row)
                seen += 1
                if seen % _SLICE == 0:
                    await asyncio.sleep(0)
        page, token = page_of(rows, sort, limit, after)
        items = []
        for row in page:
            here = view.in_cluster(row, cluster) if cluster else None
            items.append({**_to_item(row), **({} if here is None else {"inCluster": here})})
        body = {
            "kind": "FederatedObjectSummaryList",
            "metadata": {"continue": token} if token else {},
            "counts": counts,
            "countsByCluster": placed,
            "countsByHolding": held,
            "countsByNamespace": {name: count.to_json() for name, count in spaces.items() if name},
            "replicas": replicas,
            "causes": causes_to_json(causes.values()),
            "kinds": sorted({type_.resource.kind for type_ in visible}),
            "hiddenResources": hidden,
            "items": items,
        }
        return json_response(200, body)


async def visible_types(
    request: Request, view: ObjectListView, namespace: str, kind: str = ""
) -> tuple[list[FederatedType], list[str]]:
    """Return the types that the user may list in the namespace ("" for all), and the resources that he may not."""
    visible: list[FederatedType] = []
    hidden: list[str] = []
    for type_ in view.types():
        resource = type_.resource
        if kind not in ("", resource.kind) or (namespace and not resource.namespaced):
            continue
        if await may_list(request, resource, namespace if resource.namespaced else ""):
            visible.append(type_)
        else:
            hidden.append(resource.group_resource)
    return visible, hidden


@cache
def shipped_definitions() -> frozenset[str]:
    """Return the names of the definitions that the control plane makes for its own use: no policy is to place them."""
    return frozenset(manifest["metadata"]["name"] for manifest in crd_manifests())


def _counted(summary: ObjectSummary) -> int:
    """Return the ready replicas that count: those beyond the wanted number are about to stop."""
    return min(summary.ready or 0, summary.wanted or 0)


def _to_item(row: Row) -> dict[str, Any]:
    summary = row.summary
    return {
        **identity_of(row.type_, row.federated),
        "stage": summary.stage,
        "clusters": summary.clusters,
        "wanted": summary.wanted,
        "ready": summary.ready,
        "outcome": summary.outcome,
        "held": [{"hold": move.hold, "clusters": sorted(move.clusters)} for move in held_moves(row.federated)],
        "problems": [
            {"attention": problem.attention, "reason": problem.reason, "text": problem.text}
            for problem in summary.problems
        ],
    }
