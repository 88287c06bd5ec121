"""How many more pods of one shape the nodes of a member would take: the sign that capacity has returned.

Per node: what pods have taken is subtracted from what can be allocated, and the pod's requests, node selector, node
affinity and tolerations are held against the rest. What only the member's own scheduler knows (volumes, affinity
between pods, spread) is not modelled, so the answer may be too high and `belief.py` never trusts it twice after it was
wrong. Reads full nodes and pods and those of `runtime/slim.py`. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from federation.api.quantity import parse
from federation.api.selectors import compile_cluster_terms, find_untolerated_taint, has_labels
from federation.planning.automigration.pods import is_live
from federation.planning.clusterresources import spec_requests

_PODS = "pods"
_CPU = "cpu"
_EFFECTS = ("NoSchedule", "NoExecute")
_REQUESTING = ("containers", "initContainers", "overhead", "resources")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(slots=True)
class NodeRoom:
    """A node that takes pods, and what of it is free: cpu in thousandths, everything else in whole units."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    free: dict[str, int] = field(default_factory=dict)


def free_by_node(nodes: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]) -> list[NodeRoom]:
    """Return the nodes that are neither cordoned nor unready, with what their pods leave free (may be negative)."""
    rooms = {node["metadata"]["name"]: _to_room(node) for node in nodes if _takes_pods(node)}
    for pod in pods:
        spec = pod.get("spec") or {}
        room = rooms.get(spec.get("nodeName", ""))
        if room is not None and is_live(pod):
            free = room.free
            for name, amount in pod_request(spec):
                if name in free:
                    free[name] -= amount
    return list(rooms.values())


def count_room(rooms: Iterable[NodeRoom], spec: Mapping[str, Any]) -> int:
    """Return how many pods of the spec fit on the nodes together; SelectorError when its node affinity is malformed."""
    request = pod_request(spec)
    tolerations = spec.get("tolerations")
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    terms = compile_cluster_terms(affinity.get("nodeSelectorTerms")) if affinity else None
    total = 0
    for room in rooms:
        if (
            has_labels(room.labels, spec.get("nodeSelector"))
            and (terms is None or terms.matches(room.name, room.labels))
            and find_untolerated_taint(room.taints, tolerations, _EFFECTS) is None
        ):
            total += max(0, min(room.free.get(name, 0) // amount for name, amount in request))
    return total


def pod_request(spec: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return what a pod takes of a node, one of its `pods` included; only amounts above zero."""
    return _request(orjson.dumps({key: spec[key] for key in _REQUESTING if spec.get(key)}))


@lru_cache(maxsize=4096)
def _request(spec: bytes) -> tuple[tuple[str, int], ...]:
    """Read a request once per shape: thousands of pods have a handful of them."""
    wanted = spec_requests(orjson.loads(spec))
    amounts = {name: amount.milli if name == _CPU else amount.value for name, amount in wanted.items()}
    return (*((name, amount) for name, amount in sorted(amounts.items()) if amount > 0), (_PODS, 1))


def _takes_pods(node: Mapping[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    is_ready = all(c.get("status") == "True" for c in conditions if c.get("type") == "Ready")
    return is_ready and not (node.get("spec") or {}).get("unschedulable")


def _to_room(node: Mapping[str, Any]) -> NodeRoom:
    metadata = node["metadata"]
    free: dict[str, int] = {}
    for name, text in ((node.get("status") or {}).get("allocatable") or {}).items():
        try:
            amount = parse(text)
        except ValueError:
            continue  # a member that reports nonsense has none of it
        free[name] = amount.milli if name == _CPU else amount.value
    taints = tuple((node.get("spec") or {}).get("taints") or ())
    return NodeRoom(metadata["name"], metadata.get("labels") or {}, taints, free)
