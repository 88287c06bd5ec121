"""The steps for one autoscaler: read the scale, measure the pods, decide, scale, write the status."""

import contextlib

from federation.api import names
from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.conditions import set_condition
from federation.apimachinery.errors import ApiError, NotFound
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, Object
from federation.client.client import Client
from federation.controllers.horizontalautoscaler.scaletargets import Scale, ScaleTargets
from federation.planning.autoscaling.decision import decide, decide_without_metrics
from federation.planning.autoscaling.replicacount import Replicas
from federation.planning.autoscaling.scalelimits import Bounds, History
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.informer import Informer

_SYNC_S = 15.0
"""Seconds between two looks at the metrics, as in Kubernetes."""


class Reconciler:
    """Handles one autoscaler per call. What it recommended lately is in memory, as in Kubernetes."""

    def __init__(
        self, client: Client, autoscalers: Informer, targets: ScaleTargets, clock: Clock, *, manager: str
    ) -> None:
        self._client = client
        self._autoscalers = autoscalers
        self._targets = targets
        self._clock = clock
        self._manager = manager
        self._histories: dict[Key, History] = {}

    async def reconcile(self, key: Key) -> Result:
        """Scale the target and write the status."""
        autoscaler = self._autoscalers.get(*key)
        if autoscaler is None or autoscaler["metadata"].get("deletionTimestamp"):
            self._histories.pop(key, None)
            return DONE
        if not self._targets.is_responsible(autoscaler):
            self._histories.pop(key, None)
            return Result(requeue_after_s=_SYNC_S)
        status = dict(autoscaler.get("status") or {})
        try:
            await self._sync(key, autoscaler, status)
        finally:
            await self._write(autoscaler, status)
        return Result(requeue_after_s=_SYNC_S)

    async def _sync(self, key: Key, autoscaler: Object, status: Object) -> None:
        """Scale the target and bring `status` up to date, in place."""
        status.setdefault("desiredReplicas", 0)
        spec, scale = autoscaler["spec"], await self._targets.find(autoscaler)
        if scale is None:
            reference = spec["scaleTargetRef"]
            text = f"{reference['kind']} {reference['name']!r} not found"
            message = f"the HPA controller was unable to get the target's current scale: {text}"
            self._set(status, names.ABLE_TO_SCALE, "False", "FailedGetScale", message)
            return
        message = "the HPA controller was able to get the target's current scale"
        self._set(status, names.ABLE_TO_SCALE, "True", "SucceededGetScale", message)
        current = scale.replicas
        history = self._histories.setdefault(key, History([(self._clock.monotonic(), current)]))
        decision = decide_without_metrics(current, Bounds.of(spec))
        if decision is None:
            measured = await self._targets.measure(scale, spec.get("metrics") or ())
            now, now_s = self._clock.now(), self._clock.monotonic()
            decision = decide(spec, Replicas(current, scale.present), measured, history, now=now, now_s=now_s)
        for condition in decision.conditions:
            self._set(status, *condition)
        if decision.metrics is not None:
            status["currentMetrics"] = list(decision.metrics)
        if decision.replicas != current:
            await self._scale(scale, decision.replicas, status)
            history.record_change(decision.replicas - current, self._clock.monotonic())
        status["currentReplicas"], status["desiredReplicas"] = scale.present, decision.replicas

    async def _scale(self, scale: Scale, desired: int, status: Object) -> None:
        metadata = scale.target["metadata"]
        try:
            await self._client.patch(
                scale.resource,
                metadata["name"],
                {"spec": {"replicas": desired}},
                namespace=metadata["namespace"],
                subresource="scale",
                field_manager=self._manager,
            )
        except ApiError as error:
            message = f"the HPA controller was unable to update the target scale: {error}"
            self._set(status, names.ABLE_TO_SCALE, "False", "FailedUpdateScale", message)
            raise
        message = f"the HPA controller was able to update the target scale to {desired}"
        self._set(status, names.ABLE_TO_SCALE, "True", "SucceededRescale", message)
        status["lastScaleTime"] = to_rfc3339(self._clock.now())

    async def _write(self, autoscaler: Object, status: Object) -> None:
        if status == (autoscaler.get("status") or {}):
            return
        with contextlib.suppress(NotFound):
            written = await self._client.update(
                HORIZONTAL_POD_AUTOSCALERS, {**autoscaler, "status": status}, subresource="status"
            )
            await self._autoscalers.wait_for(written["metadata"]["resourceVersion"])

    def _set(self, status: Object, type_: str, value: str, reason: str, message: str) -> None:
        status["conditions"] = set_condition(
            status.get("conditions"), type_=type_, status=value, reason=reason, message=message, now=self._clock.now()
        )
