"""Sums of the requests of pods: in total, and by node. Pure.

Members may run millions of pods, so the sums keep nothing of a single pod. The caller that adds a pod therefore has to
subtract it later with the same requests and node. `clusterresources.py` combines these sums with nodes.
"""

from collections.abc import Iterable, Mapping

from federation.apimachinery.quantity import ZERO, Quantity
from federation.planning.clusters import nodeclasses

_NO_LOAD: Mapping[str, int] = {}


class PodSums:
    """The requests of some pods of one cluster."""

    def __init__(self) -> None:
        self._used: dict[str, Quantity] = {}
        self._loads: dict[str, dict[str, int]] = {}
        """Requests per node, in integers, rounded up; nodes may be unknown, and "" has pods without one."""

    def count(self, node: str, requests: Iterable[tuple[str, Quantity]], sign: int) -> None:
        """Add a pod with sign 1, subtract it with -1."""
        requests = tuple(requests)
        for name, amount in requests:
            held = self._used.get(name, ZERO)
            self._used[name] = held + amount if sign > 0 else held - amount
        load = self._loads.setdefault(node, {})
        load[nodeclasses.PODS] = load.get(nodeclasses.PODS, 0) + sign
        for name, whole in nodeclasses.ceil_amounts(requests).items():
            load[name] = load.get(name, 0) + sign * whole
        if not load[nodeclasses.PODS]:
            del self._loads[node]

    def used(self, resource: str) -> Quantity:
        """Return the sum of the requests of a resource."""
        return self._used.get(resource, ZERO)

    def load(self, node: str) -> Mapping[str, int]:
        """Return the requests on a node, `pods` for their number; "" for pods without a node."""
        return self._loads.get(node, _NO_LOAD)
