"""The PlacementHolds: one object per cause whose moves are held, for people to read and approve.

Everything in it but the approval follows from the annotations of federated objects (`guard.py`). A hold for which no
object waits is deleted: at once when nobody approved it, else an hour after the approval.
"""

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from federation.api import names
from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
    PLACEMENT_HOLDS,
    PROJECTS,
    PROPAGATION_POLICIES,
    SCHEDULING_PROFILES,
)
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.errors import AlreadyExists, NotFound
from federation.apimachinery.resources import NAMESPACES, Object
from federation.controllers.schedule.names import EVENT_HOLD_APPROVED, EVENT_PLACEMENT_HELD
from federation.guard.moveguard import BY_HOLD
from federation.planning.followers.abandoned import is_following
from federation.planning.guard.deletions import is_deletion
from federation.planning.guard.ledger import Cause
from federation.planning.guard.record import held_moves
from federation.runtime.controller import DONE, Controller, Key, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host

_BATCH_S = 0.5
"""How long changes of the waiting objects are collected before the hold is written."""
_APPROVED_S = 3600.0
"""How long an approved hold stays as a record after its approval."""
_NAMED_MAX = 20
_KINDS = {
    resource.kind: resource
    for resource in (
        PROPAGATION_POLICIES,
        CLUSTER_PROPAGATION_POLICIES,
        SCHEDULING_PROFILES,
        FEDERATED_TYPE_CONFIGS,
        FEDERATED_CLUSTERS,
        OVERRIDE_POLICIES,
        CLUSTER_OVERRIDE_POLICIES,
        NAMESPACES,
        PROJECTS,
    )
}


class Holds:
    """Keeps the PlacementHolds up to date. `retry` schedules federated objects again."""

    def __init__(self, host: Host, retry: Callable[[Iterable[Key]], None]) -> None:
        self._client = host.client
        self._objects = host.objects
        self._recorder = host.recorder
        self._retry = retry
        self._clock = host.clock
        self._informer = host.informers.for_resource(PLACEMENT_HOLDS)
        self.controller: Controller[str] = Controller("placementhold", self.reconcile, workers=2, clock=host.clock)

    def on_federated(self, old: Object | None, new: Object | None) -> None:
        """Update the holds that the object waits for, or waited for."""
        before, after = (set(held_moves(obj)) if obj is not None else set() for obj in (old, new))
        for held in before ^ after:
            self.controller.enqueue(held.hold, after_s=_BATCH_S)

    def on_hold(self, old: Object | None, new: Object | None) -> None:
        """Let the objects of an approved hold go on."""
        name = (new if new is not None else old or {})["metadata"]["name"]
        self.controller.enqueue(name)
        if new is not None and (approval := new["spec"].get("approval")):
            self._retry(self._objects.keys_by_index(BY_HOLD, name))
            if old is not None and not old["spec"].get("approval"):
                text = f"approved by {approval.get('by') or 'the control plane'}: {approval['reason']}"
                self._recorder.event({**_TYPE, **new}, NORMAL, EVENT_HOLD_APPROVED, text)

    async def reconcile(self, name: str) -> Result:
        """Create, update or delete one hold."""
        waiting, stored = self._objects.by_index(BY_HOLD, name), self._informer.get("", name)
        if not waiting:
            return DONE if stored is None else await self._expire(name, stored)
        first = next(held for held in held_moves(waiting[0]) if held.hold == name)  # the index has only such objects
        spec: dict[str, Any] = {"cause": str(first.cause), "count": len(waiting), "objects": _named(waiting)}
        if stored is None:
            hold = {**_TYPE, "metadata": {"name": name}, "spec": spec}
            with contextlib.suppress(AlreadyExists):
                created = await self._client.create(PLACEMENT_HOLDS, hold, field_manager=names.FIELD_MANAGER)
                await self._report(created, first.cause, len(waiting))
        elif any(stored["spec"].get(field) != value for field, value in spec.items()):
            with contextlib.suppress(NotFound):
                await self._client.patch(PLACEMENT_HOLDS, name, {"spec": spec}, field_manager=names.FIELD_MANAGER)
        return DONE

    async def _expire(self, name: str, stored: Object) -> Result:
        approval = stored["spec"].get("approval")
        if approval is not None:
            try:
                age_s = (self._clock.now() - from_rfc3339(str(approval.get("at")))).total_seconds()
            except ValueError:
                age_s = _APPROVED_S
            if age_s < _APPROVED_S:
                return Result(requeue_after_s=_APPROVED_S - age_s)
        with contextlib.suppress(NotFound):
            await self._client.delete(PLACEMENT_HOLDS, name, uid=stored["metadata"]["uid"])
        return DONE

    async def _report(self, hold: Object, cause: Cause, count: int) -> None:
        """Emit an event on the hold and on its cause."""
        text = f"{count} or more objects would {_describe(cause)}; they stay until: fedctl approve"
        text += f" {hold['metadata']['name']} --reason TEXT"
        self._recorder.event({**_TYPE, **hold}, WARNING, EVENT_PLACEMENT_HELD, text)
        with contextlib.suppress(NotFound, KeyError):
            found = await self._client.get(_KINDS[cause.kind], cause.name, cause.namespace)
            self._recorder.event(found, WARNING, EVENT_PLACEMENT_HELD, text)


def _describe(cause: Cause) -> str:
    """Return what would happen to the objects."""
    if is_deletion(cause):
        return f"be deleted, which counts for {cause}"
    if is_following(cause):
        return f"leave the workloads that refer to them, which counts for {cause}"
    return f"move or shrink because of {cause}"


_TYPE = {"apiVersion": PLACEMENT_HOLDS.api_version, "kind": PLACEMENT_HOLDS.kind}


def _named(waiting: Iterable[Object]) -> list[str]:
    """Return the first objects as kind, namespace and name."""
    found = []
    for federated in waiting:
        template = federated["spec"]["template"]
        where = "/".join(filter(None, (federated["metadata"].get("namespace"), template["metadata"]["name"])))
        found.append(f"{template['kind']} {where}")
    return sorted(found)[:_NAMED_MAX]
