"""The invariant of every deletion in a member: the template or the placement says so when the request is sent.

A world judges each delete request against the host's store, not against what the control plane believes. Changes of
the last second count with both states: the control plane may not have received them.
"""

from collections import deque

import orjson

from federation.api import names
from federation.api.resources import (
    CLUSTER_FEDERATED_OBJECTS,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    LEFTOVERS,
)
from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.store.writes import Change
from federation.client.client import Request
from federation.planning.federatedobject.eligibility import exclusion
from federation.planning.federatedobject.naming import federated_object_name
from federation.planning.federatedobject.placements import departed_clusters, effective_placement
from federation.planning.leftovers.record import record_name
from federation.planning.leftovers.strays import is_kept, is_written_by_us

_IN_FLIGHT_S = 1.0
_CHANGES_MAX = 5_000


class HostStore(MemoryStore):
    """The host's store; it remembers the states that its objects had lately."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self._changes: deque[tuple[float, str, bytes | None]] = deque(maxlen=_CHANGES_MAX)

    def states(self, resource: Resource, namespace: str, name: str) -> list[Object | None]:
        """Return the states of an object during the last second, None for its absence; the newest is first."""
        where = f"{namespace}/{name}" if resource.namespaced else name
        key = f"/{resource.group or 'core'}/{resource.plural}/{where}"
        entry, since_s = self._watch_cache.get(key), self._clock.monotonic() - _IN_FLIGHT_S
        values = [entry.value if entry is not None else None]
        values += [before for at_s, changed, before in reversed(self._changes) if changed == key and at_s >= since_s]
        return [orjson.loads(value) if value is not None else None for value in values]

    def _publish(self, change: Change) -> None:
        self._changes.append((self._clock.monotonic(), change.event.key, change.event.previous))
        super()._publish(change)


def objection(host: HostStore, cluster: str, request: Request, live: Object | None) -> str | None:
    """Return why the object must not be deleted in the cluster; None when it may be, or is none of ours."""
    if live is None or not is_written_by_us(live) or (request.uid and request.uid != live["metadata"]["uid"]):
        return None
    resource, namespace, name = request.resource, request.namespace, request.name
    if any(_is_ending(source) or _is_excluded(source) for source in host.states(resource, namespace, name)):
        return None
    record = record_name(cluster, resource, namespace, name)
    if any(_asks_for_deletion(leftover) for leftover in host.states(LEFTOVERS, "", record)):
        return None
    if any(_is_ending(config) for config in host.states(FEDERATED_TYPE_CONFIGS, "", resource.group_resource)):
        return None
    what = f"{resource.kind} {namespace}/{name} is deleted in {cluster}"
    if is_kept(resource):
        return f"{what}, although its source exists"
    kind = FEDERATED_OBJECTS if resource.namespaced else CLUSTER_FEDERATED_OBJECTS
    federated = host.states(kind, namespace, federated_object_name(name, resource.group_resource))
    if any(_is_placed_elsewhere(state, cluster) for state in federated):
        return None
    if any(_is_emptied(state) for state in host.states(FEDERATED_CLUSTERS, "", cluster)):
        return None
    newest = federated[0]
    placed = sorted(effective_placement(newest)) if newest is not None else "no federated object"
    return f"{what}, although its source exists and it is placed in {placed}"


def _is_ending(obj: Object | None) -> bool:
    return obj is None or bool(obj["metadata"].get("deletionTimestamp"))


def _is_excluded(source: Object | None) -> bool:
    return source is not None and bool(exclusion(source))


def _asks_for_deletion(leftover: Object | None) -> bool:
    return leftover is not None and str(leftover["spec"].get("action")) != "Keep"


def _is_placed_elsewhere(federated: Object | None, cluster: str) -> bool:
    if federated is None:
        return False
    placed = effective_placement(federated)
    is_reported = any(entry["cluster"] == cluster for entry in (federated.get("status") or {}).get("clusters") or ())
    return cluster in departed_clusters(federated) or (is_reported and bool(placed) and cluster not in placed)


def _is_emptied(cluster: Object | None) -> bool:
    if cluster is None or not cluster["metadata"].get("deletionTimestamp"):
        return False
    return names.CASCADING_DELETE in (cluster["metadata"].get("annotations") or {})
