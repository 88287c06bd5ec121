"""Delete one source whose time to live has ended; `planning/federatedobject/finished.py` says when that is.

The host's own controller does the same for Jobs where there is one: the deletion names the uid and the version that was
read, so it is harmless to be second.
"""

from federation.apimachinery.errors import Conflict, NotFound
from federation.planning.federatedobject.finished import expires_at, shows_end
from federation.planning.federatedobject.provenance import is_from
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.host import Host

_RECHECK_S = 5.0
"""Delay until a Job is looked at again whose merged status does not show its end yet."""


class Reconciler:
    """Deletes the source of one federated object per call."""

    def __init__(self, host: Host) -> None:
        self._client = host.client
        self._objects = host.objects
        self._clock = host.clock

    async def reconcile(self, key: Key) -> Result:
        """Delete the source if it is due, else return when it will be."""
        federated = self._objects.get(key)
        type_ = self._objects.type_of(federated) if federated is not None else None
        if federated is None or type_ is None or federated["metadata"].get("deletionTimestamp"):
            return DONE
        due = expires_at(federated)
        if due is None:
            return DONE
        if (left_s := (due - self._clock.now()).total_seconds()) > 0:
            return Result(requeue_after_s=left_s)
        name = federated["spec"]["template"]["metadata"]["name"]
        try:
            source = await self._client.get(type_.resource, name, key.namespace)
        except NotFound:
            return DONE
        metadata = source["metadata"]
        if metadata.get("deletionTimestamp") or not is_from(federated, source):
            return DONE
        if not shows_end(source) or expires_at(federated, source) != due:
            return Result(requeue_after_s=_RECHECK_S)
        try:
            await self._client.delete(
                type_.resource,
                name,
                key.namespace,
                propagation_policy="Background",
                uid=metadata["uid"],
                resource_version=metadata["resourceVersion"],
            )
        except NotFound:
            return DONE
        except Conflict:
            return Result(requeue_after_s=_RECHECK_S)
        return DONE
