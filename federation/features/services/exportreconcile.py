"""The steps for one exported Service: copy the EndpointSlices of its members to the host, report on its ServiceExport.

Only clusters where the host places the ServiceExport export the Service: others could make one themselves, and get the
requests of all importing clusters. A copy is deleted when its cluster is not one of these, shows that it exports the
Service no more, has left, or is lost for as long as its workloads may stay there. A cluster that does not answer, or
whose caches are incomplete, keeps its copies.
"""

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from federation.api import names
from federation.api.resources import SERVICE_EXPORTS
from federation.apimachinery import conditions
from federation.apimachinery.errors import (
    AlreadyExists,
    BadRequest,
    Forbidden,
    Invalid,
    NotFound,
    RequestEntityTooLarge,
)
from federation.apimachinery.resources import ENDPOINT_SLICES, SERVICES, Object
from federation.delivery.rules.plan import cluster_state_of
from federation.features.services.names import SOURCE_CLUSTER
from federation.features.services.rules.exports import (
    Export,
    export_of,
    is_copy_current,
    plan_conditions,
    plan_copies,
    source_label,
    source_of,
)
from federation.planning.failover.departure import evicting_of
from federation.planning.federatedobject.placements import effective_placement
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.host import Host
from federation.runtime.informer import Informer

BY_SERVICE = "serviceexports/service"
KINDS = (SERVICE_EXPORTS, SERVICES, ENDPOINT_SLICES)


@dataclass(slots=True)
class _Observed:
    """Observations in the members: their exports, the labels of clusters whose copies stay, and when to look again."""

    exports: list[Export]
    kept: set[str]
    recheck_s: float | None = None


class Reconciler:
    """Reconciles the exports of one Service per call; `exports` and `slices` are informers of the host."""

    def __init__(
        self,
        host: Host,
        exports: Informer,
        services: Informer,
        slices: Informer,
        clusters: Informer,
        *,
        toleration_s: float,
    ) -> None:
        self._client = host.client
        self._objects = host.objects
        self._members = host.members
        self._exports = exports
        self._services = services
        self._slices = slices
        self._clusters = clusters
        self._clock = host.clock
        self._toleration_s = toleration_s

    async def reconcile(self, key: Key) -> Result:
        """Make the host's copies equal to what the members export."""
        observed = self._observe(key)
        wanted = plan_copies(observed.exports, partial(self._owner_of, key.namespace))
        present = {obj["metadata"]["name"]: obj for obj in self._slices.by_index(BY_SERVICE, index_value(key))}
        refused: dict[str, str] = {}
        for name, copy in wanted.items():
            try:
                await self._write(copy, present.get(name))
            except (Invalid, BadRequest, Forbidden, RequestEntityTooLarge) as error:
                # The endpoints of one cluster must not hold up those of the others.
                refused.setdefault(copy["metadata"]["labels"][SOURCE_CLUSTER], error.message)
        for name, obj in present.items():
            if name not in wanted and obj["metadata"]["labels"][SOURCE_CLUSTER] not in observed.kept:
                await self._delete(obj)
        await self._report(key, observed.exports, refused)
        return DONE if observed.recheck_s is None else Result(requeue_after_s=observed.recheck_s)

    def _owner_of(self, namespace: str, name: str) -> tuple[str, str] | None:
        """Return the Service and source of an EndpointSlice of the host, ("", "") for a user's; None without one."""
        present = self._slices.get(namespace, name)
        return None if present is None else source_of(present) or ("", "")

    def _observe(self, key: Key) -> _Observed:
        observed, placed = _Observed([], set()), self._placed(key)
        for cluster in self._clusters.list():
            name = cluster["metadata"]["name"]
            if name not in placed:
                continue
            if cluster["metadata"].get("deletionTimestamp") and not cluster_state_of(cluster).joined:
                continue
            if names.TRAFFIC_CUT in (cluster["metadata"].get("annotations") or {}):
                continue
            left_s = self._lost_in_s(cluster)
            if left_s is not None and left_s <= 0:
                continue
            if left_s is not None:
                observed.recheck_s = min(left_s, observed.recheck_s or left_s)
            if not _serves_exports(cluster):
                continue
            if not all(self._members.is_synced(name, kind) for kind in KINDS):
                observed.kept.add(source_label(name))
            elif (export := self._export_of(name, key)) is not None:
                observed.exports.append(export)
        observed.exports.sort(key=lambda export: export.cluster)
        return observed

    def _placed(self, key: Key) -> Collection[str]:
        """Return the clusters where the host places the ServiceExport."""
        federated = self._objects.of_source(SERVICE_EXPORTS.group, SERVICE_EXPORTS.kind, *key)
        return () if federated is None else effective_placement(federated)

    def _export_of(self, cluster: str, key: Key) -> Export | None:
        informer = self._members.informer(cluster, ENDPOINT_SLICES)
        export = self._members.get_cached(cluster, SERVICE_EXPORTS, *key)
        service = self._members.get_cached(cluster, SERVICES, *key)
        return export_of(cluster, export, service, informer.list(key.namespace) if informer is not None else ())

    def _lost_in_s(self, cluster: Object) -> float | None:
        """Return in how many seconds a lost cluster's endpoints leave; None for one that is not lost, or is halted."""
        evicting = evicting_of(cluster)
        if evicting is None or not evicting.is_lost:
            return None
        allowed = conditions.find((cluster.get("status") or {}).get("conditions"), names.EVICTION_ALLOWED)
        if allowed is not None and allowed.get("status") == "False":
            return None
        until = evicting.since + timedelta(seconds=self._toleration_s)
        return (until - self._clock.now()).total_seconds()

    async def _write(self, copy: Object, present: Object | None) -> None:
        namespace = copy["metadata"]["namespace"]
        if present is None:
            with contextlib.suppress(AlreadyExists):  # the watch brings it soon
                await self._client.create(ENDPOINT_SLICES, copy, field_manager=names.FIELD_MANAGER)
        elif not is_copy_current(present, copy):
            body = {"metadata": {"labels": copy["metadata"]["labels"]}} | {
                field: copy[field] for field in ("endpoints", "ports")
            }
            with contextlib.suppress(NotFound):
                await self._client.patch(
                    ENDPOINT_SLICES,
                    copy["metadata"]["name"],
                    body,
                    namespace=namespace,
                    field_manager=names.FIELD_MANAGER,
                )

    async def _delete(self, obj: Object) -> None:
        metadata = obj["metadata"]
        if not metadata.get("deletionTimestamp"):
            with contextlib.suppress(NotFound):
                await self._client.delete(ENDPOINT_SLICES, metadata["name"], metadata["namespace"], uid=metadata["uid"])

    async def _report(self, key: Key, exports: list[Export], refused: Mapping[str, str]) -> None:
        export = self._exports.get(*key)
        if export is None or export["metadata"].get("deletionTimestamp"):
            return
        present = (export.get("status") or {}).get("conditions")
        has_service = self._services.get(*key) is not None
        planned = plan_conditions(present, exports, refused, has_service=has_service, now=self._clock.now())
        if planned == (present or []):
            return
        await self._client.patch_status(
            SERVICE_EXPORTS, export, {"conditions": planned}, field_manager=names.FIELD_MANAGER
        )


def _serves_exports(cluster: Mapping[str, Any]) -> bool:
    """Return False if the cluster was seen without the kind ServiceExport."""
    kinds = (cluster.get("status") or {}).get("apiResourceTypes") or ()
    return not kinds or any(
        (each.get("group"), each.get("kind")) == (SERVICE_EXPORTS.group, SERVICE_EXPORTS.kind) for each in kinds
    )


def index_value(key: Key) -> str:
    """Return the index value of the imported EndpointSlices of a Service."""
    return f"{key.namespace}/{key.name}"


def service_of(slice_: Mapping[str, Any]) -> list[str]:
    """Return the index value of an EndpointSlice of the host, none for one that is not imported."""
    found = source_of(slice_)
    return [f"{slice_['metadata']['namespace']}/{found[0]}"] if found is not None else []
