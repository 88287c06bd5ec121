"""The steps for one CronFederatedHPA: run the rules that are due, write the status, wait for the next time.

A run is idempotent: if the status is not written after it, it is repeated with the same result. It is a request of the
user who wrote the rules last.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.resources import CRON_AUTOSCALERS, UNITED_DEPLOYMENTS
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.errors import ApiError, BadRequest, NotFound
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, Object, Resource, UserInfo
from federation.features.cronfederatedhpa.names import EVENT_CRON_RULE_APPLIED, EVENT_CRON_RULE_FAILED
from federation.features.cronfederatedhpa.rules import Due, due_rules, next_histories
from federation.planning.authors import authors_of
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host
from federation.runtime.informer import Informer
from federation.runtime.onbehalf import writer_of

_TYPE: Object = {"apiVersion": CRON_AUTOSCALERS.api_version, "kind": CRON_AUTOSCALERS.kind}
_LIMITS = {"targetMinReplicas": "minReplicas", "targetMaxReplicas": "maxReplicas"}


class Reconciler:
    """Handles one CronFederatedHPA per call."""

    def __init__(self, host: Host, scalers: Informer) -> None:
        self._client = host.client
        self._scalers = scalers
        self._types = host.objects.types
        self._recorder = host.recorder
        self._clock = host.clock

    async def reconcile(self, key: Key) -> Result:
        """Run what is due, in the order of the rules."""
        scaler = self._scalers.get(*key)
        if scaler is None or scaler["metadata"].get("deletionTimestamp"):
            return DONE
        spec, now = scaler["spec"], self._clock.now()
        histories = (scaler.get("status") or {}).get("executionHistories") or []
        outcomes: dict[str, tuple[Due, Mapping[str, Any], str]] = {}
        for due in due_rules(spec, histories, now):
            outcomes[due.rule["name"]] = await self._run(key, scaler, due)
        planned = next_histories(spec, histories, outcomes, now)
        if planned != histories:
            await self._write(scaler, planned)
        times = [from_rfc3339(entry["nextExecutionTime"]) for entry in planned if "nextExecutionTime" in entry]
        if not times:
            return DONE
        return Result(requeue_after_s=max(0.0, (min(times) - self._clock.now()).total_seconds()))

    async def _run(self, key: Key, scaler: Object, due: Due) -> tuple[Due, Mapping[str, Any], str]:
        """Run one rule; return what it applied, or the error."""
        try:
            applied = await self._apply(key, scaler, due.rule)
        except ApiError as error:
            if error.retryable:
                raise
            text = f"rule {due.rule['name']}: {error.message}"
            self._recorder.event({**_TYPE, **scaler}, WARNING, EVENT_CRON_RULE_FAILED, text)
            return due, {}, error.message
        what = ", ".join(f"{field.removeprefix('applied')} {value}" for field, value in applied.items())
        text = f"rule {due.rule['name']} has set {what}"
        self._recorder.event({**_TYPE, **scaler}, NORMAL, EVENT_CRON_RULE_APPLIED, text)
        return due, applied, ""

    async def _apply(self, key: Key, scaler: Object, rule: Mapping[str, Any]) -> dict[str, int]:
        target, writer = scaler["spec"]["scaleTargetRef"], writer_of(authors_of(scaler))
        resource = self._resource(target)
        if resource == HORIZONTAL_POD_AUTOSCALERS:
            limits = {field: rule[given] for given, field in _LIMITS.items() if given in rule}
            if not limits:
                raise BadRequest("targetReplicas is for workloads; give targetMinReplicas or targetMaxReplicas")
            await self._patch(resource, target["name"], key.namespace, limits, writer)
            return {f"applied{field[0].upper()}{field[1:]}": value for field, value in limits.items()}
        if "targetReplicas" not in rule:
            raise BadRequest("targetMinReplicas and targetMaxReplicas are for autoscalers; give targetReplicas")
        replicas = {"replicas": rule["targetReplicas"]}
        await self._patch(resource, target["name"], key.namespace, replicas, writer, subresource="scale")
        return {"appliedReplicas": rule["targetReplicas"]}

    async def _patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        spec: Object,
        writer: UserInfo | None,
        *,
        subresource: str = "",
    ) -> None:
        await self._client.patch(
            resource,
            name,
            {"spec": spec},
            namespace=namespace,
            subresource=subresource,
            field_manager=names.AUTOSCALER_MANAGER,
            user=writer,
        )

    def _resource(self, target: Mapping[str, Any]) -> Resource:
        group, kind = str(target["apiVersion"]).rpartition("/")[0], target["kind"]
        for resource in (HORIZONTAL_POD_AUTOSCALERS, UNITED_DEPLOYMENTS):
            if (resource.group, resource.kind) == (group, kind):
                return resource
        type_ = self._types.for_group_kind(group, kind)
        if type_ is None:
            raise NotFound(f"{target['apiVersion']} {kind} is not federated, so it cannot be scaled from here")
        return type_.resource

    async def _write(self, scaler: Object, planned: list[Object]) -> None:
        status = {"executionHistories": planned}
        written = await self._client.patch_status(CRON_AUTOSCALERS, scaler, status, field_manager=names.FIELD_MANAGER)
        if written is not None:
            await self._scalers.wait_for(written["metadata"]["resourceVersion"])
