"""The ChangeFreezes of the host, for controllers that move or write objects. `planning/freezes` decides."""

from collections.abc import Callable

from federation.api.resources import CHANGE_FREEZES, FEDERATED_CLUSTERS
from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object
from federation.planning.changehold import Hold
from federation.planning.freezes.changefreeze import Change
from federation.planning.freezes.freezeindex import FreezeIndex, left_s
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
