"""Free room, and what the loss of a cluster would do: `/federation/v1/capacity`, from the caches of the controllers.

`cpu` and `memory` describe a pod; `fits` is how many of them the nodes of each cluster have room for, and `waiting` how
many the requests of pods without a node amount to, which count as used. `without` names one cluster, and adds its
workloads. It needs permission to list FederatedClusters, and FederatedObjects in all namespaces.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response

from federation.api.federatedtype import FederatedType
from federation.api.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.errors import BadRequest, ServiceUnavailable
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.quantity import to_int_ceil, to_milli
from federation.apimachinery.resources import Object
from federation.apimachinery.usedtime import in_thread
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.planning.federatedobject.placements import PLACED_IN, effective_placement
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.informers import Informers
from federation.scheduling.framework.capacity import capacity_of, waiting_pods
from federation.scheduling.framework.types import ANY_NODE, CPU, MEMORY, Cluster, PodShape, pod_shape
from federation.scheduling.headroom import Loss, Workload, loss_of, to_workload
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import compile_valid
from federation.scheduling.snapshot import Snapshot, to_cluster
from federation.web.requests import json_response, to_read

PATH = "/federation/v1/capacity"
_LIMIT_MAX = 500
_WORKLOADS_MAX = 500
"""Workloads of one lost cluster to return; the totals count all."""


@dataclass(frozen=True, slots=True)
class Question:
    """The clusters in question, and the pod to fit into them."""

    shape: PodShape
    without: str
    name: str
    limit: int
    after: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What the caches have for a question."""

    names: Sequence[str]
    """The clusters in question, in natural order."""
    page: Sequence[str]
    """Those of the page."""
    sources: Sequence[Object]
    """All FederatedClusters, in natural order."""
    policies: Sequence[Object]
    workloads: Sequence[tuple[Object, FederatedType]]
    """The federated workloads that are placed in clusters of the page."""


class HeadroomView:
    """Reads clusters, policies and federated objects from the caches of the controllers."""

    def __init__(self, objects: FederatedObjects, informers: Informers) -> None:
        self._objects = objects
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._policies = [informers.for_resource(each) for each in (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES)]
        self._known: dict[str, Cluster] = {}
        """The clusters of the last answer: most have not changed since."""
        objects.add_index(PLACED_IN, effective_placement)

    def read(self, asked: Question) -> Facts:
        """Return what an answer needs; ServiceUnavailable while caches are incomplete, BadRequest."""
        if not (self._objects.has_synced and all(each.has_synced for each in (self._clusters, *self._policies))):
            raise ServiceUnavailable("the control plane is starting; try again in a few seconds")
        sources = sorted(self._clusters.list(), key=lambda source: natural_key(source["metadata"]["name"]))
        names = [source["metadata"]["name"] for source in sources]
        listed = [name for name in names if asked.name in name and asked.without in ("", name)]
        if asked.without and not listed:
            raise BadRequest(f"without: there is no cluster {asked.without!r}")
        after = natural_key(asked.after)  # that of "" is before all names
        page = [name for name in listed if natural_key(name) > after][: asked.limit]
        policies = [policy for cache in self._policies for policy in cache.list()]
        return Facts(listed, page, sources, policies, self._placed_in(page))

    def clusters_of(self, sources: Sequence[Object]) -> list[Cluster]:
        """Return the scheduler's views; any thread may ask."""
        known = self._known
        found = {source["metadata"]["name"]: _to_cluster(source, known) for source in sources}
        self._known = found
        return list(found.values())

    def _placed_in(self, clusters: Sequence[str]) -> list[tuple[Object, FederatedType]]:
        keys = dict.fromkeys(key for name in clusters for key in self._objects.keys_by_index(PLACED_IN, name))
        found = []
        for federated in filter(None, map(self._objects.get, keys)):
            type_ = self._objects.type_of(federated)
            if type_ is not None and type_.paths.replicas_spec:
                found.append((federated, type_))
        return found


def add_routes(web: FastAPI, view: HeadroomView) -> None:
    """Serve the capacity of clusters."""

    @web.get(PATH)
    async def capacity(
        request: Request,
        cpu: str = "500m",
        memory: str = "512Mi",
        without: str = "",
        name: str = "",
        limit: Annotated[int, Query(ge=1, le=_LIMIT_MAX)] = 50,
        after: Annotated[str, Query(alias="continue")] = "",
    ) -> Response:
        """Return a page of clusters with free room and the effect of their loss."""
        needed = [to_read(resource, "list", "") for resource in (FEDERATED_CLUSTERS, FEDERATED_OBJECTS)]
        await request.scope[AUTHORIZE](needed, is_path_enough=False)
        asked = Question(_to_shape(cpu, memory), without, name, limit, after)
        return json_response(200, await in_thread(partial(_answer, view, view.read(asked), asked)))


def _to_shape(cpu: str, memory: str) -> PodShape:
    amounts = []
    for field, text, to_int in ((CPU, cpu, to_milli), (MEMORY, memory, to_int_ceil)):
        try:
            amount = to_int(text)
        except (ValueError, ArithmeticError) as error:
            raise BadRequest(f"{field}: {text!r} is not a quantity, for example 500m or 512Mi") from error
        if amount <= 0:
            raise BadRequest(f"{field}: must be more than 0")
        amounts.append((str(field), amount))
    return pod_shape(tuple(sorted(amounts)), ANY_NODE)


def _to_cluster(source: Object, known: Mapping[str, Cluster]) -> Cluster:
    metadata = source["metadata"]
    before, version = known.get(metadata["name"]), metadata.get("resourceVersion")
    if before is not None and before.source["metadata"].get("resourceVersion") == version:
        return before
    return to_cluster(source, before)


def _answer(view: HeadroomView, facts: Facts, asked: Question) -> dict[str, Any]:
    clusters = view.clusters_of(facts.sources)
    by_name = {cluster.name: cluster for cluster in clusters}
    snapshot = Snapshot(0, tuple(clusters))
    workloads = _workloads(facts.policies, facts.workloads, set(facts.page), snapshot)
    items = []
    for name in facts.page:
        loss = loss_of(name, clusters, workloads.get(name, ()))
        items.append(_to_item(by_name[name], asked, loss))
    has_more = bool(facts.page) and facts.names[-1] != facts.page[-1]
    return {
        "kind": "ClusterCapacityList",
        "metadata": {"continue": facts.page[-1]} if has_more else {},
        "count": len(facts.names),
        "items": items,
    }


def _workloads(
    policies: Sequence[Object],
    federated: Sequence[tuple[Object, FederatedType]],
    lost: set[str],
    snapshot: Snapshot,
) -> Mapping[str, Sequence[Workload]]:
    """Return the divided workloads in each of the clusters."""
    index = PolicyIndex()
    for policy in compile_valid(policies):
        index.put(policy)
    found: dict[str, list[Workload]] = {}
    for obj, type_ in federated:
        here = lost & effective_placement(obj)
        chosen = index.policy_of(obj) if here else None
        workload = to_workload(obj, type_, chosen, snapshot) if chosen is not None else None
        for name in here if workload is not None else ():
            found.setdefault(name, []).append(workload)  # type: ignore[arg-type]  # not None here
    return found


def _to_item(cluster: Cluster, asked: Question, loss: Loss) -> dict[str, Any]:
    item: dict[str, Any] = {
        "cluster": cluster.name,
        "isReady": cluster.is_joined and cluster.is_ready,
        "taints": [f"{taint.key}:{taint.effect}" for taint in cluster.taints],
        "allocatable": {name: cluster.allocatable.get(name, 0) for name in (CPU, MEMORY)},
        "available": {name: max(0, cluster.available.get(name, 0)) for name in (CPU, MEMORY)},
        "fits": capacity_of(cluster, asked.shape) if cluster.is_joined and cluster.is_ready else 0,
        "waiting": waiting_pods(cluster, asked.shape),
        "loss": {
            "objects": len(loss.workloads),
            "replicas": loss.replicas,
            "homeless": loss.homeless,
            "staying": loss.staying,
        },
    }
    if asked.without:
        item["workloads"] = [
            {
                "kind": each.kind,
                "namespace": each.namespace,
                "name": each.name,
                "replicas": each.replicas,
                "homeless": each.homeless,
                "staying": each.staying,
            }
            for each in loss.workloads[:_WORKLOADS_MAX]
        ]
    return item
