"""Write the status of FederatedClusters: only changes, by one writer.

Joining and health write conditions of the same list, so both go through one `Publisher`. It keeps the newest state of
each cluster until the cache has it, and writes one cluster once at a time. A refreshed probe time alone is written only
every few minutes, so an idle federation writes almost nothing.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery import conditions
from federation.apimachinery.clock import Clock, from_rfc3339, is_ahead, to_rfc3339
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.planning.clusters.health import LOST_REFRESH_S, HealthState
from federation.runtime.assumecache import AssumeCache


@dataclass(frozen=True, slots=True)
class ConditionWanted:
    """One condition to publish."""

    type: str
    status: str
    reason: str
    message: str
    is_exact: bool = False
    """Publish a changed message too. By default a message is published with a changed status or reason only, because
    texts of errors vary."""


def health_conditions(state: HealthState) -> list[ConditionWanted]:
    """Return the Ready and Offline conditions of a cluster's health."""
    return [*_health_conditions(state)]


@lru_cache(maxsize=64)
def _health_conditions(state: HealthState) -> tuple[ConditionWanted, ConditionWanted]:
    return (
        ConditionWanted(names.CLUSTER_READY, state.ready, state.ready_reason, state.message),
        ConditionWanted(names.CLUSTER_OFFLINE, state.offline, state.offline_reason, state.message),
    )


def published_health(cluster: Object) -> HealthState | None:
    """Return the published health, None if there is none yet."""
    found = (cluster.get("status") or {}).get("conditions")
    ready = conditions.find(found, names.CLUSTER_READY)
    offline = conditions.find(found, names.CLUSTER_OFFLINE)
    if ready is None or offline is None:
        return None
    return HealthState(
        ready["status"], ready.get("reason", ""), offline["status"], offline.get("reason", ""), ready.get("message", "")
    )


def plan_conditions(
    present: list[dict[str, Any]] | None, wanted: list[ConditionWanted], now: datetime, *, refresh_s: float
) -> list[dict[str, Any]] | None:
    """Return the complete next list of conditions, None if nothing changes.

    A probe time older than `refresh_s` is refreshed even if nothing else changes. Times that are ahead of `now` were
    written by a process with a wrong clock, and are `now` from here on.
    """
    held = list(present or ())
    changed = False
    for want in wanted:
        old = conditions.find(held, want.type)
        is_same = old is not None and (old.get("status"), old.get("reason")) == (want.status, want.reason)
        is_same = is_same and (not want.is_exact or old is None or old.get("message") == want.message)
        if is_same and old is not None and not _is_stale(old, now, refresh_s):
            continue
        changed, stamp = True, to_rfc3339(now)
        is_transition = old is None or old.get("status") != want.status or _is_wrong(old.get("lastTransitionTime"), now)
        entry = {
            "type": want.type,
            "status": want.status,
            "reason": want.reason,
            "message": want.message,
            "lastProbeTime": stamp,
            "lastTransitionTime": stamp if is_transition or old is None else old.get("lastTransitionTime", stamp),
        }
        held = [entry if c.get("type") == want.type else c for c in held] if old is not None else [*held, entry]
    return held if changed else None


def refresh_in_s(
    present: list[dict[str, Any]] | None, wanted: list[ConditionWanted], now: datetime, *, refresh_s: float
) -> float:
    """Return for how long the published probe times of these conditions, which are up to date, still are."""
    probed_at = [conditions.find(present, want.type) for want in wanted]
    times = [from_rfc3339(found["lastProbeTime"]) for found in probed_at if found is not None]
    return min(((time - now).total_seconds() + refresh_s for time in times), default=0.0)


def _is_stale(condition: Mapping[str, Any], now: datetime, refresh_s: float) -> bool:
    try:
        probed_at = from_rfc3339(str(condition.get("lastProbeTime", "")))
    except ValueError:
        return True
    is_wrong = is_ahead(probed_at, now) or _is_wrong(condition.get("lastTransitionTime"), now)
    return is_wrong or (now - probed_at).total_seconds() >= refresh_s


def _is_wrong(text: Any, now: datetime) -> bool:
    try:
        return is_ahead(from_rfc3339(str(text)), now)
    except ValueError:
        return False


class Publisher:
    """The one writer of FederatedCluster objects in this process."""

    def __init__(
        self, client: Client, cached: Callable[[str], Object | None], clock: Clock, *, refresh_s: float
    ) -> None:
        self._client = client
        self._clock = clock
        self._refresh_s = refresh_s
        self._assumed: AssumeCache[str] = AssumeCache(cached)
        self._locks: dict[str, asyncio.Lock] = {}
        self._settled: dict[str, tuple[str, list[ConditionWanted], float]] = {}
        """By cluster: the revision that has these conditions, and the monotonic time until which nothing is due."""

    def cluster(self, name: str) -> Object | None:
        """Return the newest known state of a FederatedCluster, with its apiVersion and kind."""
        found = self._assumed.get(name)
        if found is None or "kind" in found:
            return found
        return {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": FEDERATED_CLUSTERS.kind, **found}

    def cluster_changed(self, name: str, cluster: Object | None) -> None:
        """Discard our own write of a cluster if the informer, which has just changed, has it."""
        self._assumed.prune(name)
        if cluster is None:
            self._locks.pop(name, None)
            self._settled.pop(name, None)

    async def publish(self, name: str, wanted: list[ConditionWanted], more: Mapping[str, Any] | None = None) -> bool:
        """Write the conditions and fields that differ; None removes a field. Return True if anything was written."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            cluster = self.cluster(name)
            if cluster is None or (not more and self._is_settled(name, cluster, wanted)):
                return False
            present = cluster.get("status") or {}
            status = {key: value for key, value in (more or {}).items() if present.get(key) != value}
            refresh_s = 0.0 if status else self._refresh_in_s(wanted)
            planned = plan_conditions(present.get("conditions"), wanted, self._clock.now(), refresh_s=refresh_s)
            if planned is not None and planned != present.get("conditions"):
                status["conditions"] = planned
            if not status:
                self._settle(name, cluster, wanted)
                return False
            # A merge patch merges maps: a key that vanished must be named to be removed.
            for key, value in status.items():
                if isinstance(value, Mapping):
                    status[key] = _with_nulls(present.get(key) or {}, value)
            return await self._patch(name, {"status": status}, "status") is not None

    def _is_settled(self, name: str, cluster: Object, wanted: list[ConditionWanted]) -> bool:
        """Return whether an earlier call found that these conditions are published, as nearly every probe does."""
        known = self._settled.get(name)
        if known is None or known[0] != cluster["metadata"]["resourceVersion"] or known[1] != wanted:
            return False
        return self._clock.monotonic() < known[2]

    def _settle(self, name: str, cluster: Object, wanted: list[ConditionWanted]) -> None:
        if wanted:
            found = (cluster.get("status") or {}).get("conditions")
            left_s = refresh_in_s(found, wanted, self._clock.now(), refresh_s=self._refresh_in_s(wanted))
            self._settled[name] = cluster["metadata"]["resourceVersion"], wanted, self._clock.monotonic() + left_s

    def _refresh_in_s(self, wanted: list[ConditionWanted]) -> float:
        is_unready = any(each.type == names.CLUSTER_READY and each.status != "True" for each in wanted)
        return min(self._refresh_s, LOST_REFRESH_S) if is_unready else self._refresh_s

    async def set_finalizers(self, cluster: Object, finalizers: list[str]) -> Object | None:
        """Write the finalizers of exactly this state; Conflict if it is not the newest, None if the cluster is gone."""
        metadata = {"finalizers": finalizers, "resourceVersion": cluster["metadata"]["resourceVersion"]}
        return await self._patch(cluster["metadata"]["name"], {"metadata": metadata}, "")

    async def _patch(self, name: str, body: Object, subresource: str) -> Object | None:
        patch = self._client.patch(
            FEDERATED_CLUSTERS, name, body, subresource=subresource, field_manager=names.FIELD_MANAGER
        )
        return await self._assumed.assume_result(name, patch)


def _with_nulls(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> Object:
    result: Object = {}
    for key, value in wanted.items():
        held = present.get(key)
        result[key] = _with_nulls(held, value) if isinstance(value, Mapping) and isinstance(held, Mapping) else value
    return result | {key: None for key in present if key not in wanted}
