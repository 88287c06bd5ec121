"""Sums of the requests of pods: in total, and by node. Pure.

Members may run millions of pods, so the sums keep nothing of a single pod. The caller that adds a pod therefore has to
subtract it later with the same requests and node. `clusterresources.py` combines these sums with nodes.
"""

from collections.abc import Iterable, Mapping

from federation.apimachinery.quantity import ZERO, Quantity
from federation.planning.clusters import nodeclasses

_NO_LOAD: Mapping[str, int] = {}
Requests = tuple[tuple[str, Quantity], ...]
Waiting = tuple[str, Requests]
"""The namespace and the request of pods without a node."""


class PodSums:
    """The requests of some pods of one cluster."""

    def __init__(self) -> None:
        self._used: dict[str, Quantity] = {}
        self._loads: dict[str, dict[str, int]] = {}
        """Requests per node, in integers, rounded up; nodes may be unknown, and "" has pods without one."""
        self.waiting: dict[Waiting, int] = {}
        """The number of pods without a node, by their namespace and request."""

    def count(self, node: str, requests: Iterable[tuple[str, Quantity]], namespace: str, times: int) -> None:
        """Add so many equal pods; -1 subtracts one. The namespace is that of pods without a node."""
        requests = tuple(requests)
        if not node:
            self._count_waiting((namespace, requests), times)
        for name, amount in requests:
            held = self._used.get(name, ZERO)
            notation = held.notation if held.nanos else amount.notation
            self._used[name] = Quantity(held.nanos + amount.nanos * times, notation)
        load = self._loads.setdefault(node, {})
        load[nodeclasses.PODS] = load.get(nodeclasses.PODS, 0) + times
        for name, whole in nodeclasses.ceil_amounts(requests).items():
            load[name] = load.get(name, 0) + times * whole
        if not load[nodeclasses.PODS]:
            del self._loads[node]

    def _count_waiting(self, key: Waiting, times: int) -> None:
        if count := self.waiting.get(key, 0) + times:
            self.waiting[key] = count
        else:
            del self.waiting[key]

    def used(self, resource: str) -> Quantity:
        """Return the sum of the requests of a resource."""
        return self._used.get(resource, ZERO)

    @property
    def loads(self) -> Mapping[str, Mapping[str, int]]:
        """The requests by node."""
        return self._loads

    def load(self, node: str) -> Mapping[str, int]:
        """Return the requests on a node, `pods` for their number; "" for pods without a node."""
        return self._loads.get(node, _NO_LOAD)
