"""The volumes of a StatefulSet's subset that have data, so that their replicas do not move to another subset. Pure.

Volumes do not move: a replica that another subset runs instead starts with empty ones. The strategy Adaptive moves only
replicas without data; who wants others to move changes the subsets or their numbers.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Any

from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.resources import Object
from federation.features.uniteddeployment.rules.subsetpods import Pod
from federation.features.uniteddeployment.rules.subsetworkload import ordinal_of
from federation.planning.automigration.podanalysis import waits_for_node
from federation.planning.guard.earliervolumes import has_data

_TOGETHER = timedelta(seconds=2)
"""A StatefulSet creates the claims of a pod and then the pod; times in objects are whole seconds."""


def find_data(claims: Iterable[Object], pods: Iterable[Pod]) -> frozenset[int]:
    """Return the ordinals whose claims have volumes with data.

    A pod that waits for a node and is as new as its claim has written nothing, although the volume may be there.
    """
    since = {ordinal_of(claim["metadata"]["name"]): _created(claim) for claim in claims if has_data(claim)}
    new = set()
    for pod in pods:
        ordinal = ordinal_of(pod["metadata"]["name"])
        made, began = since.get(ordinal), _created(pod)
        if waits_for_node(pod) and made is not None and began is not None and began - made <= _TOGETHER:
            new.add(ordinal)
    return frozenset(since.keys() - new)


def without_data(pods: Iterable[Pod], data: AbstractSet[int] | None) -> list[Pod]:
    """Return the pods that have no data; none while it is not known which have (`data` is None)."""
    return [] if data is None else [pod for pod in pods if ordinal_of(pod["metadata"]["name"]) not in data]


def replicas_kept(replicas: int, ready: int, data: AbstractSet[int] | None) -> int:
    """Return how many replicas stay in the subset: those that are ready or have data."""
    return replicas if data is None else max(ready, min(replicas, len(data)))


def _created(obj: Pod) -> Any:
    return parse_rfc3339(obj["metadata"].get("creationTimestamp"))
