"""Write condition and marks of one autoscaler; planning (`idleautoscaler.py`, `hpamodes.py`) decides what they say."""

import contextlib
from collections.abc import Callable

from federation.api import names
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, Object
from federation.features.autoscaling.names import EVENT_CENTRALIZED_HPA_NOT_WORK, EVENT_DISTRIBUTED_HPA_NOT_WORK
from federation.features.autoscaling.rules.hpamodes import (
    WORKS,
    BoundPolicy,
    central_problem,
    distributed_problem,
    mode_of,
    plan_marks,
)
from federation.features.autoscaling.rules.idleautoscaler import plan_conditions, target_of
from federation.planning.federatedobject.placements import effective_placement
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import WARNING
from federation.runtime.host import Host

_TYPE: Object = {"apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version, "kind": HORIZONTAL_POD_AUTOSCALERS.kind}


class Reconciler:
    """Updates the condition of one autoscaler per call.

    `scaler` returns a cached one, `acts` whether it acts on the host, `policy_of` the policy of a federated workload.
    """

    def __init__(
        self,
        host: Host,
        *,
        scaler: Callable[[Key], Object | None],
        acts: Callable[[Object], bool],
        policy_of: Callable[[Object], BoundPolicy | None],
    ) -> None:
        self._client = host.client
        self._objects = host.objects
        self._clock = host.clock
        self._scaler = scaler
        self._acts = acts
        self._policy_of = policy_of
        self._recorder = host.recorder

    async def reconcile(self, key: Key) -> Result:
        """Set or remove the condition if that changes anything."""
        scaler = self._scaler(key)
        if scaler is None or scaler["metadata"].get("deletionTimestamp"):
            return DONE
        # One that is delivered acts in its members, and status aggregation writes what they report.
        workload = self._federated(*target_of(scaler))
        is_idle = workload is not None and not self._is_delivered(key) and not self._acts(scaler)
        if await self._mark(key, scaler, workload):
            return DONE  # its change requeues the autoscaler
        conditions = plan_conditions(scaler, is_idle=is_idle, now=self._clock.now())
        if conditions is None:
            return DONE
        status = {"conditions": conditions or None}
        await self._client.patch_status(HORIZONTAL_POD_AUTOSCALERS, scaler, status, field_manager=names.FIELD_MANAGER)
        return DONE

    async def _mark(self, key: Key, scaler: Object, workload: Object | None) -> bool:
        """Mark an autoscaler with a mode as working, or say why it does not work; return whether that was written."""
        problem, reason = "", EVENT_CENTRALIZED_HPA_NOT_WORK
        mode = mode_of(scaler)
        if workload is not None and mode == names.HPA_CENTRALIZED:
            problem = central_problem(self._policy_of(workload))
        elif workload is not None and mode == names.HPA_DISTRIBUTED:
            problem = distributed_problem(self._policy_of(workload), workload, scaler)
            reason = EVENT_DISTRIBUTED_HPA_NOT_WORK
        patch = plan_marks(scaler, problem)
        if patch is None:
            return False
        with contextlib.suppress(NotFound):
            await self._client.patch(
                HORIZONTAL_POD_AUTOSCALERS, key.name, patch, namespace=key.namespace, field_manager=names.FIELD_MANAGER
            )
        if problem not in ("", WORKS):
            self._recorder.event({**_TYPE, **scaler}, WARNING, reason, problem)
        return True

    def _is_delivered(self, key: Key) -> bool:
        resource = HORIZONTAL_POD_AUTOSCALERS
        federated = self._federated(resource.group, resource.kind, key.namespace, key.name)
        return federated is not None and bool(effective_placement(federated))

    def _federated(self, group: str, kind: str, namespace: str, name: str) -> Object | None:
        type_ = self._objects.types.for_group_kind(group, kind)
        return None if type_ is None else self._objects.get(self._objects.key_for(type_, namespace, name))
