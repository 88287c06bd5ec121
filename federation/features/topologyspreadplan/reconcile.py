"""The steps for one TopologySpreadPlan: observe, plan, write constraints, check, write the status, report changes."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from federation.api import names
from federation.api.resources import TOPOLOGY_SPREAD_PLANS
from federation.apimachinery import conditions
from federation.apimachinery.errors import ApiError, NotFound
from federation.apimachinery.resources import STATEFUL_SETS, Object
from federation.client.client import PatchType
from federation.features.topologyspreadplan.names import (
    EVENT_SPREAD_VIOLATION,
    EVENT_SPREAD_VIOLATION_CLEARED,
    PLANNED,
    REASON_CACHES_INCOMPLETE,
    TOPOLOGY_FIELD_MANAGER,
)
from federation.features.topologyspreadplan.observer import SpreadObserver, in_slices
from federation.features.topologyspreadplan.rules import report
from federation.features.topologyspreadplan.rules.check import Violation, changes
from federation.features.topologyspreadplan.rules.constraints import build_constraints, has_constraints
from federation.features.topologyspreadplan.rules.evaluation import check_observed, plan_observed
from federation.features.topologyspreadplan.rules.feasibility import Severity
from federation.features.topologyspreadplan.rules.observation import Observation, held_zones, labels_of
from federation.features.topologyspreadplan.rules.placement import has_annotations, plan_placement
from federation.features.topologyspreadplan.rules.planner import Plan
from federation.planning.authors import authors_of
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host
from federation.runtime.informer import Informer
from federation.runtime.onbehalf import writer_of

_CACHE_WAIT_S = 5.0
"""Interval of attempts while the cache of a member is incomplete."""
_CACHE_ATTEMPTS = 7
"""After half a minute an incomplete cache is reported also for a plan that has a status."""


class Reconciler:
    """Handles one plan per call. `plans` and `stateful_sets` are caches of the host."""

    def __init__(
        self,
        host: Host,
        observer: SpreadObserver,
        *,
        plans: Informer,
        stateful_sets: Callable[[str], Iterable[Object]],
    ) -> None:
        self._client = host.client
        self._observer = observer
        self._recorder = host.recorder
        self._clock = host.clock
        self._plans = plans
        self._stateful_sets = stateful_sets
        self._known: dict[Key, tuple[Any, Plan]] = {}
        self._attempts: dict[Key, int] = {}

    async def reconcile(self, key: Key) -> Result:
        """Bring constraints and status of one plan up to date."""
        obj = self._plans.get(*key)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            self._known.pop(key, None)
            self._attempts.pop(key, None)
            return DONE
        if cluster := self._observer.missing_cache(obj):
            await self._report_waiting(key, obj, cluster)
            return Result(requeue_after_s=_CACHE_WAIT_S)
        self._attempts.pop(key, None)
        observation = self._observer.observe(obj, self._stateful_sets(key.namespace))
        plan = await self._compute(key, observation)
        problems = await self._apply(key, obj, plan, observation)
        violations = await in_slices(check_observed(observation, plan, problems))
        before = (obj.get("status") or {}).get("violations") or []
        now, held = self._clock.now(), (obj.get("status") or {}).get("conditions") or []
        held = report.plan_condition(held, plan, now)
        held = report.applied_condition(held, problems, now)
        held = report.satisfied_condition(held, violations, now)
        status = {
            "observedGeneration": obj["metadata"].get("generation", 0),
            **report.plan_to_json(plan, [shard.name for shard in observation.shards]),
            "conditions": held,
            "violations": report.violations_to_json(violations, before, now),
            "violationsCount": len(violations),
        }
        await self._write(obj, status)
        self._report(obj, before, violations)
        return DONE

    async def _report_waiting(self, key: Key, obj: Object, cluster: str) -> None:
        """Report an incomplete cache, unless the status is about this generation and it is only a restart."""
        attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
        status = obj.get("status") or {}
        is_current = status.get("observedGeneration") == obj["metadata"].get("generation", 0)
        if is_current and attempts < _CACHE_ATTEMPTS:
            return
        held = conditions.set_condition(
            status.get("conditions"),
            type_=PLANNED,
            status="Unknown",
            reason=REASON_CACHES_INCOMPLETE,
            message=f"nodes and pods of cluster {cluster} are not known yet",
            now=self._clock.now(),
        )
        await self._write(obj, {**status, "conditions": held})

    async def _compute(self, key: Key, observation: Observation) -> Plan:
        """Return the plan, computed only if its inputs have changed."""
        inputs = (observation.service, held_zones(observation))
        known = self._known.get(key)
        if known is not None and known[0] == inputs:
            return known[1]
        plan = await in_slices(plan_observed(observation))
        self._known[key] = (inputs, plan)
        return plan

    async def _apply(self, key: Key, obj: Object, plan: Plan, observation: Observation) -> dict[str, str]:
        """Write constraints and placements that StatefulSets lack; return a message for each that was refused."""
        problems: dict[str, str] = {}
        for number, shard in enumerate(observation.shards if plan.zones else ()):
            labels = labels_of(obj["spec"], shard, observation.zone_key)
            wanted = build_constraints(labels, plan.zones_of(number), plan.skews)
            placement = plan_placement(plan, number, shard.annotations)
            if placement.problem:
                problems[shard.name] = placement.problem
            if has_constraints(shard.pod_spec, wanted) and has_annotations(shard.annotations, placement):
                continue
            body = {
                "apiVersion": STATEFUL_SETS.api_version,
                "kind": STATEFUL_SETS.kind,
                # The uid keeps a late write from creating a StatefulSet that was deleted meanwhile.
                "metadata": {
                    "name": shard.name,
                    "namespace": key.namespace,
                    "uid": shard.uid,
                    "annotations": placement.annotations,
                },
                "spec": {"template": {"spec": wanted}},
            }
            try:
                await self._client.patch(
                    STATEFUL_SETS,
                    shard.name,
                    body,
                    patch_type=PatchType.APPLY,
                    namespace=key.namespace,
                    field_manager=TOPOLOGY_FIELD_MANAGER,
                    user=writer_of(authors_of(obj)),
                )
            except ApiError as error:
                if error.retryable:
                    raise
                problems[shard.name] = error.message
        return problems

    async def _write(self, obj: Object, status: Object) -> None:
        if obj.get("status") == status:
            return
        metadata = obj["metadata"]
        with contextlib.suppress(NotFound):
            written = await self._client.patch(
                TOPOLOGY_SPREAD_PLANS,
                metadata["name"],
                [{"op": "add", "path": "/status", "value": status}],
                patch_type=PatchType.JSON,
                namespace=metadata["namespace"],
                subresource="status",
                field_manager=names.FIELD_MANAGER,
            )
            # The next reconcile compares with this status, so that no change is reported twice.
            await self._plans.wait_for(written["metadata"]["resourceVersion"])

    def _report(self, obj: Object, before: Iterable[Mapping[str, Any]], violations: Sequence[Violation]) -> None:
        """Emit an Event for each violation that appeared or cleared."""
        appeared, cleared = changes(map(report.key_of, before), violations[: report.VIOLATIONS_MAX])
        for violation in appeared:
            type_ = NORMAL if violation.severity == Severity.INFO else WARNING
            self._recorder.event(obj, type_, EVENT_SPREAD_VIOLATION, f"{violation.rule}: {violation.message}")
        for rule, domain in cleared:
            about = f" of {domain}" if domain else ""
            self._recorder.event(obj, NORMAL, EVENT_SPREAD_VIOLATION_CLEARED, f"{rule}{about} has cleared")
