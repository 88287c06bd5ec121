"""The one place where delivery forgets a federated object or a cluster.

Classes of delivery that remember something by federated object or by cluster register the dictionary or set here when
they create it. There is one instance per controller. What is known of a member object is in `memberrecords.py`.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from federation.runtime.controller import Key

ByObject = TypeVar("ByObject", bound=dict[Key, Any] | set[Key])
ByCluster = TypeVar("ByCluster", bound=dict[str, Any] | set[str])


class KeptState:
    """State that delivery keeps in memory by federated object and by cluster."""

    def __init__(self) -> None:
        self._by_object: list[Callable[[Key], object]] = []
        self._of_deletion: list[Callable[[Key], object]] = []
        self._by_cluster: list[Callable[[str], object]] = []

    def by_object(self, container: ByObject) -> ByObject:
        """Register and return a container whose entry is removed once its object is deleted or being deleted."""
        self._by_object.append(_remover(container))
        return container

    def of_deletion(self, container: ByObject) -> ByObject:
        """Register and return a container whose entry stays while its object is being deleted."""
        self._of_deletion.append(_remover(container))
        return container

    def by_cluster(self, container: ByCluster) -> ByCluster:
        """Register and return a container whose entry is removed when its cluster leaves."""
        self._by_cluster.append(_remover(container))
        return container

    def on_object_gone(self, remove: Callable[[Key], None]) -> None:
        """Register a callback for deleted objects."""
        self._of_deletion.append(remove)

    def on_cluster_gone(self, *callbacks: Callable[[str], None]) -> None:
        """Register callbacks for clusters that leave."""
        self._by_cluster += callbacks

    def forget_object(self, key: Key, *, is_deleting: bool = False) -> None:
        """Forget a deleted object; with `is_deleting`, keep the state of its deletion."""
        for remove in self._by_object if is_deleting else (*self._by_object, *self._of_deletion):
            remove(key)

    def forget_cluster(self, cluster: str) -> None:
        """Forget a cluster that left: another member may join under its name."""
        for remove in self._by_cluster:
            remove(cluster)


def _remover(container: dict[Any, Any] | set[Any]) -> Callable[[Any], object]:
    if isinstance(container, set):
        return container.discard
    return lambda key: container.pop(key, None)
