"""The pods on nodes of one member, as a stream: each is reported when it begins and when it ceases to use its node.

Nothing is kept, so memory does not depend on the number of pods: the field selector makes the API server compare each
pod's states for us. It sends ADDED when a pod gets a node and DELETED when it has ended or is gone, with the last state
that the selector matched. After a list that could not be continued (a start, a compacted revision) everything is
reported again, page by page. Requests of a pod hardly ever change while it runs; after one was resized, all pods are
listed again, at most every few minutes. `informer.py` owns lists, watches and retries.

Decision: docs/decisions/0073-count-pods-and-replay-last.md
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import PODS, Object
from federation.client.client import Client, ObjectPage, WatchEventType
from federation.runtime.informer import Informer, InformerOptions
from federation.runtime.lineage import find_listed
from federation.runtime.pageslots import PageSlot, PageSlots
from federation.runtime.timeslice import in_turns
from federation.runtime.transforms import slim_pod

_NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
ON_NODES = f"spec.nodeName!=,{_NOT_ENDED}"
WITHOUT_NODE = f"spec.nodeName=,{_NOT_ENDED}"

PodHandler = Callable[[Object | None, int], None]
"""Called with a pod and 1 or -1 when it begins or ceases to use a node, and with None and 0 before a complete list."""

_RESIZING = ("PodResizePending", "PodResizeInProgress")
_MODIFIED = b'{"type":"MODIFIED"'
_RESIZE_MARK = b"esize"
"""In all that `is_resizing` reads."""


class PodStream(Informer):
    """Follows the pods of a member that use nodes. `has_synced` is False until all of them were reported."""

    def __init__(
        self,
        client: Client,
        handler: PodHandler,
        *,
        clock: Clock,
        cluster: str,
        options: InformerOptions,
        slots: PageSlots,
        recount_s: float = 300.0,
    ) -> None:
        super().__init__(
            client,
            PODS,
            field_selector=ON_NODES,
            transform=slim_pod,
            clock=clock,
            cluster=cluster,
            options=options,
            skips=is_of_no_account,
        )
        self._handler = handler
        self._slot = PageSlot(slots)
        self._newest: tuple[str, str, str] | None = None
        """Namespace, name and uid of the pod that was reported last with 1."""
        self._recount_s = recount_s
        self._recounting: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Follow the pods until cancelled."""
        try:
            await super().run()
        finally:
            if self._recounting is not None:
                self._recounting.cancel()

    async def _has_our_history(self) -> bool:
        """Return whether the server knows the pod that came last.

        No pod is kept here that could prove its state, and a list of all is expensive. The sums are estimates: the
        pod's uid proves all but the latest changes.
        """
        if self._must_list or self._newest is None:
            return False
        namespace, name, uid = self._newest
        pod = await find_listed(self._client, PODS, namespace, name)
        return pod is not None and pod["metadata"].get("uid") == uid

    async def _list_all(self) -> None:
        self._must_list, epoch, revision = True, self._epoch, ""
        self.has_synced = False
        self._synced.clear()
        self._admittance.begin_list()
        async with self._pages() as pages:
            async for page, is_first in pages:
                if is_first:
                    self._handler(None, 0)
                    revision = page.resource_version
                async for part in in_turns(page.items, self._clock, is_limited=True):
                    for pod in part:
                        if self._is_admissible(pod):
                            self._report(pod, 1)
                del page  # not to be in memory until the next one is there
        self._end_list(revision, epoch)

    def _open_page(self, limit: int, token: str) -> contextlib.AbstractAsyncContextManager[ObjectPage]:
        return self._slot.hold(partial(self._fetch, limit, token))

    def _apply_change(self, type_: WatchEventType, obj: Object) -> None:
        if type_ is WatchEventType.ADDED:
            self._report(obj, 1)
        elif type_ is WatchEventType.DELETED:
            self._report(obj, -1)
        elif is_resizing(obj) and (self._recounting is None or self._recounting.done()):
            self._recounting = asyncio.ensure_future(self._recount())

    def _report(self, pod: Object, change: int) -> None:
        slim = self._admittance.shrink(pod)
        if slim is None:
            self._admittance.reject(pod)
        else:
            if change > 0:
                metadata = pod["metadata"]
                self._newest = metadata.get("namespace", ""), metadata["name"], metadata.get("uid", "")
            self._handler(slim, change)

    async def _recount(self) -> None:
        await self._clock.sleep(self._recount_s)
        self.invalidate()


def is_of_no_account(line: bytes) -> bool:
    """Return whether an event changes no sum: a running pod reports several statuses, and only a resize matters.

    Most events are these, and parsing one takes 12 µs. If a server writes JSON in another way, they are parsed.
    """
    return line.startswith(_MODIFIED) and _RESIZE_MARK not in line


def is_resizing(pod: Mapping[str, Any]) -> bool:
    """Return True for a pod whose requests are changed while it runs; a malformed one is not resizing."""
    status: Any = pod.get("status")
    with contextlib.suppress(AttributeError, TypeError):
        return bool(status.get("resize")) or any(c.get("type") in _RESIZING for c in status.get("conditions") or ())
    return False
