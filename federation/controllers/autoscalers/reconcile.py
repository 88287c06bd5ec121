"""Write the condition of one autoscaler; `planning/status/idleautoscaler.py` decides what it says."""

import contextlib
from collections.abc import Callable

from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, Object
from federation.client.client import Client
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.status.idleautoscaler import plan_conditions, target_of
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.federatedobjects import FederatedObjects


class Reconciler:
    """Updates the condition of one autoscaler per call.

    `scaler` returns a cached one, and `acts` whether it acts on the host.
    """

    def __init__(
        self,
        client: Client,
        objects: FederatedObjects,
        clock: Clock,
        *,
        scaler: Callable[[Key], Object | None],
        acts: Callable[[Object], bool],
    ) -> None:
        self._client = client
        self._objects = objects
        self._clock = clock
        self._scaler = scaler
        self._acts = acts

    async def reconcile(self, key: Key) -> Result:
        """Set or remove the condition if that changes anything."""
        scaler = self._scaler(key)
        if scaler is None or scaler["metadata"].get("deletionTimestamp"):
            return DONE
        # One that is delivered acts in its members, and status aggregation writes what they report.
        is_federated = self._federated(*target_of(scaler)) is not None
        is_idle = is_federated and not self._is_delivered(key) and not self._acts(scaler)
        conditions = plan_conditions(scaler, is_idle=is_idle, now=self._clock.now())
        if conditions is None:
            return DONE
        # The list is replaced as a whole, so the patch holds only for the version that it was made for.
        body: Object = {
            "metadata": {"resourceVersion": scaler["metadata"]["resourceVersion"]},
            "status": {"conditions": conditions or None},
        }
        with contextlib.suppress(NotFound):
            await self._client.patch(
                HORIZONTAL_POD_AUTOSCALERS,
                key.name,
                body,
                namespace=key.namespace,
                subresource="status",
                field_manager=names.FIELD_MANAGER,
            )
        return DONE

    def _is_delivered(self, key: Key) -> bool:
        resource = HORIZONTAL_POD_AUTOSCALERS
        federated = self._federated(resource.group, resource.kind, key.namespace, key.name)
        return federated is not None and bool(effective_placement(federated))

    def _federated(self, group: str, kind: str, namespace: str, name: str) -> Object | None:
        type_ = self._objects.types.for_group_kind(group, kind)
        return None if type_ is None else self._objects.get(self._objects.key_for(type_, namespace, name))
