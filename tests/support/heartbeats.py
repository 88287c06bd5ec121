"""The one write of an idle federation: the probe times of a FederatedCluster, when they are five minutes old.

A restart of a world that has converged writes nothing else. A write counts as this heartbeat only if nothing but probe
times differs, and only if each of them was due.
"""

from typing import Any

import orjson

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.resources import Object
from federation.apiserver.store.interface import Event, EventType
from federation.planning.clusters.health import PROBE_TIME_REFRESH_S

_CLUSTERS = f"/{FEDERATED_CLUSTERS.group}/{FEDERATED_CLUSTERS.plural}/"
_PROBED = "lastProbeTime"
_OF_EVERY_WRITE = ("resourceVersion", "managedFields")


def is_due_heartbeat(event: Event) -> bool:
    """Return whether a change of a store is nothing but the refresh of probe times that were due."""
    if event.type is not EventType.UPDATED or event.previous is None or not event.key.startswith(_CLUSTERS):
        return False
    before, after = orjson.loads(event.previous), orjson.loads(event.value)
    held, has = _take_probe_times(before), _take_probe_times(after)
    if before != after or len(held) != len(has):
        return False
    refreshed = [(old, new) for old, new in zip(held, has, strict=True) if old != new]
    return bool(refreshed) and all(_age_s(old, new) >= PROBE_TIME_REFRESH_S for old, new in refreshed)


def _take_probe_times(cluster: Object) -> list[Any]:
    """Remove the probe times of all conditions, and what every write changes; return the former."""
    for name in _OF_EVERY_WRITE:
        cluster["metadata"].pop(name, None)
    return [condition.pop(_PROBED, None) for condition in (cluster.get("status") or {}).get("conditions") or ()]


def _age_s(old: Any, new: Any) -> float:
    """Return the age of the earlier time at the later one; below zero for what is no pair of times."""
    if not isinstance(old, str) or not isinstance(new, str):
        return -1.0
    return (from_rfc3339(new) - from_rfc3339(old)).total_seconds()
