"""Suspensions of deliveries and ChangeFreezes, for what moves or writes objects. `planning/freezes` decides.

Decisions: docs/decisions/0124-suspensions-stop-writes-not-decisions.md, decisions/0221
"""

from collections.abc import Callable, Mapping
from typing import Any

from federation.api.resources import (
    CHANGE_FREEZES,
    CLUSTER_DELIVERY_SUSPENSIONS,
    DELIVERY_SUSPENSIONS,
    FEDERATED_CLUSTERS,
)
from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object
from federation.planning.changehold import Hold
from federation.planning.freezes.changefreeze import Change
from federation.planning.freezes.freezeindex import FreezeIndex, left_s
from federation.planning.freezes.suspension import Suspension, compile_suspension, find_suspended
from federation.planning.rendering.imposed import is_imposed
from federation.planning.steps.waveapproval import is_returning
from federation.runtime.informers import Informers


class Freezes:
    """Follows ChangeFreezes. It lives as long as its controller.

    `on_change` is called when a freeze was added, changed or removed: what waits for it may go on.
    """

    def __init__(self, informers: Informers, clock: Clock, on_change: Callable[[], None]) -> None:
        self._clock = clock
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._informer = informers.for_resource(CHANGE_FREEZES)
        self._freezes = FreezeIndex()
        self._on_change = on_change
        self._informer.add_handler(self._on_freeze)

    async def wait_synced(self) -> None:
        """Return once every freeze is known: before that, something could move that must not."""
        await self._informer.wait_synced()

    def find(self, federated: Object, cluster: str, change: Change) -> Hold | None:
        """Return the freeze that holds a change of the object in the cluster now, None for none."""
        if not self._freezes:
            return None
        labels = ((self._clusters.get("", cluster) or {}).get("metadata") or {}).get("labels") or {}
        return self._freezes.find(federated, labels, change, self._clock.now())

    def find_update(self, federated: Object, cluster: str) -> Hold | None:
        """Return the freeze that holds new content in the cluster now, None for none.

        A return of the cluster to the template that it ran before passes, by a rollout that rolls back or by a user
        that takes the change back. A freeze must not keep a broken one there.
        """
        if is_returning(federated, cluster):
            return None
        return self.find(federated, cluster, Change.UPDATES)

    def left_s(self, frozen: Hold) -> float:
        """Return for how many seconds it holds, or when to look at a malformed one again."""
        return left_s(frozen, self._clock.now())

    def _on_freeze(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._freezes.remove((old or {})["metadata"]["name"])
        else:
            self._freezes.put(new)
        self._on_change()


_KINDS = (DELIVERY_SUSPENSIONS, CLUSTER_DELIVERY_SUSPENSIONS)


class Suspensions:
    """Follows both kinds. It lives as long as its controller.

    `on_change` is called when one was added, changed or removed: what waits for it may go on.
    """

    def __init__(self, informers: Informers, clock: Clock, on_change: Callable[[], None] = lambda: None) -> None:
        self._clock = clock
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._informers = [informers.for_resource(resource) for resource in _KINDS]
        self._by_namespace: dict[str, dict[str, Suspension]] = {}
        """By namespace, "" for those of the cluster-wide kind, and name."""
        self._on_change = on_change
        for informer in self._informers:
            informer.add_handler(self._on_suspension)

    async def wait_synced(self) -> None:
        """Return once every suspension is known: before that, something could be written that must not."""
        for informer in self._informers:
            await informer.wait_synced()

    def find(
        self, obj: Mapping[str, Any], namespace: str, cluster: str, *, only_cluster_wide: bool = False
    ) -> Suspension | None:
        """Return the suspension that holds an object of the host in a cluster now, None for none.

        With `only_cluster_wide`, those of administrators alone: the answer about a removal.
        """
        found = [*self._by_namespace.get("", {}).values()]
        if namespace and not only_cluster_wide:
            found += self._by_namespace.get(namespace, {}).values()
        if not found:
            return None
        labels = ((self._clusters.get("", cluster) or {}).get("metadata") or {}).get("labels") or {}
        now = self._clock.now()
        return find_suspended(found, obj, namespace, cluster, labels, now, only_cluster_wide=only_cluster_wide)

    def find_for_write(
        self, federated: Object, cluster: str, compare: Callable[[], tuple[Object | None, Object | None]]
    ) -> Suspension | None:
        """Return the suspension that holds creation or update in a cluster now, None for none.

        What a ClusterOverridePolicy changes passes the suspensions of a namespace. `compare` returns the desired and
        the live object; None for one that does not exist.
        """
        template, namespace = federated["spec"]["template"], federated["metadata"].get("namespace", "")
        held = self.find(template, namespace, cluster)
        if held is None or held.is_cluster_wide:
            return held
        desired, live = compare()
        if desired is None or live is None or not is_imposed(federated, cluster, desired, live):
            return held
        return self.find(template, namespace, cluster, only_cluster_wide=True)

    def left_s(self, suspended: Suspension) -> float | None:
        """Return for how many seconds it holds, None if it has no end."""
        if suspended.until is None:
            return None
        return max(0.1, (suspended.until - self._clock.now()).total_seconds())

    def _on_suspension(self, old: Object | None, new: Object | None) -> None:
        metadata = (new if new is not None else old or {})["metadata"]
        held = self._by_namespace.setdefault(metadata.get("namespace", ""), {})
        if new is None:
            held.pop(metadata["name"], None)
        else:
            held[metadata["name"]] = compile_suspension(new)
        if not held:
            del self._by_namespace[metadata.get("namespace", "")]
        self._on_change()


class Holds:
    """Both that hold deliveries: freezes and suspensions. It lives as long as its controller."""

    def __init__(self, informers: Informers, clock: Clock, on_change: Callable[[], None]) -> None:
        self.freezes = Freezes(informers, clock, on_change)
        self.suspensions = Suspensions(informers, clock, on_change)

    async def wait_synced(self) -> None:
        """Return once all of them are known."""
        await self.freezes.wait_synced()
        await self.suspensions.wait_synced()
