"""Choose the leader of a group, and write what each pod is in it.

The records follow from the pods and their placements, so a crash at any line loses nothing. The others get theirs when
the leader has a place; until then a group of any size costs two writes.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from federation.apimachinery.errors import Conflict, NotFound
from federation.apimachinery.resources import Object
from federation.features.podgroups.rules import plan_records
from federation.planning.podgroups import KIND, GroupRef
from federation.runtime.controller import DONE, Result, key_of
from federation.runtime.host import Host

BY_GROUP = "pod groups"
WRITER = "podgroups"
_WRITES = 16
"""Writes at the same time."""


class GroupKey(NamedTuple):
    """A group in its namespace."""

    namespace: str
    ref: GroupRef

    def __str__(self) -> str:
        return f"{self.namespace}/{self.ref.name}"


class Reconciler:
    """Writes the records of one group at a time."""

    def __init__(self, host: Host) -> None:
        self._objects = host.objects
        self._writing = asyncio.Semaphore(_WRITES)

    async def reconcile(self, key: GroupKey) -> Result:
        """Write the records of a group that differ."""
        pods: Sequence[Object] = self._objects.by_index(BY_GROUP, str(key.ref), key.namespace)
        group = None
        if key.ref.api_group:
            found = self._objects.of_source(key.ref.api_group, KIND, key.namespace, key.ref.name)
            group = found["spec"]["template"] if found is not None else None
        changes = list(plan_records(key.ref, pods, group))
        # What the leader counts is known to quotas before another pod may join it.
        if changes and await self._write(*changes[0]):
            async with asyncio.TaskGroup() as tasks:
                for change in changes[1:]:
                    tasks.create_task(self._write(*change))
        return DONE

    async def _write(self, federated: Object, annotations: Mapping[str, str | None]) -> bool:
        """Write the annotations; return whether they were written. After a conflict the group is read again."""
        async with self._writing:
            try:
                body = {"metadata": {"annotations": annotations}}
                return await self._objects.patch(key_of(federated), federated, body, writer=WRITER) is not None
            except (Conflict, NotFound):
                return False  # its event enqueues the group again
