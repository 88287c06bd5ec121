"""The steps that bring the workloads of one UnitedDeployment to its spec.

`rules/` decides. A failed write does not end the reconcile: the status stores the failure first, and
the controller retries then.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from federation.api import names
from federation.api.resources import UNITED_DEPLOYMENTS
from federation.apimachinery.clock import Clock
from federation.apimachinery.conditions import Condition, find, set_condition
from federation.apimachinery.errors import FederationError, Forbidden, Invalid, NotFound
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.features.uniteddeployment.children import Children
from federation.features.uniteddeployment.names import (
    EVENT_SPECIFY_REPLICAS,
    EVENT_SUBSET_FAILED,
    EVENT_UPDATE_SUBSET,
    REASON_SUBSETS_FAILED,
    SUBSET_PROVISIONED,
    SUBSET_UPDATED,
)
from federation.features.uniteddeployment.rules.clustertargets import labelled_policies, policy_labels
from federation.features.uniteddeployment.rules.subsetcounts import AllocationError
from federation.features.uniteddeployment.rules.subsetplan import Current, ObservedSubset, SubsetPlan, plan_subsets
from federation.features.uniteddeployment.rules.subsetpods import soonest
from federation.features.uniteddeployment.rules.subsettemplate import is_outdated
from federation.features.uniteddeployment.rules.subsetworkload import observe_workload, stuck_pods
from federation.features.uniteddeployment.rules.templaterevisions import RevisionPlan, plan_revisions
from federation.features.uniteddeployment.rules.uniteddefaults import default_spec
from federation.features.uniteddeployment.rules.unitedstatus import (
    Observation,
    SubsetOutcome,
    compute_status,
    hub_status,
    set_revision_condition,
)
from federation.features.uniteddeployment.rules.workloadkinds import KINDS, WorkloadKind, kind_of
from federation.features.uniteddeployment.subsetwriter import Operation, SubsetWriter, run_in_batches
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, WARNING, Recorder
from federation.runtime.informer import Informer

_TIMER_SLACK_S = 0.01
"""Added to delays: a limit that ends now has not passed yet."""
_REFUSED_S = 15.0
"""Pause after a refusal, whose cause may lie in another object."""
_UNREACHABLE_RECHECK_S = 5.0
"""Interval while pods are not known: a cache that is current again sends no event."""


@dataclass(slots=True)
class _Work:
    """One reconcile: the object with defaults, its workloads, and the conditions to store."""

    united: Object
    kind: WorkloadKind
    status: Object
    revisions: RevisionPlan
    conditions: list[Condition]
    workloads: dict[str, Object]
    """The workload of each subset; further ones of the same subset are surplus."""
    surplus: list[tuple[WorkloadKind, Object]]
    observed: dict[str, ObservedSubset]
    unreachable: dict[str, str]
    """Why the pods of a subset are not known, by subset."""


class Reconciler:
    """Reconciles one UnitedDeployment per call. `cache` holds all of them."""

    def __init__(
        self,
        client: Client,
        children: Children,
        writer: SubsetWriter,
        recorder: Recorder,
        clock: Clock,
        *,
        cache: Informer,
        is_strict: bool,
    ) -> None:
        self._client = client
        self._children = children
        self._writer = writer
        self._recorder = recorder
        self._clock = clock
        self._cache = cache
        self._is_strict = is_strict

    async def reconcile(self, key: Key) -> Result:
        """Write defaults, revisions, workloads, labels of pods and the status, and return when to look again."""
        stored = self._cache.get(*key)
        if stored is None or stored["metadata"].get("deletionTimestamp"):
            return DONE
        spec = default_spec(stored.get("spec") or {})
        if (stored.get("spec") or {}).get("replicas") is None:
            # The scale subresource needs the number in the spec. The event of this write triggers the next reconcile.
            await self._patch_replicas(stored, spec["replicas"])
            return DONE
        kind = kind_of(spec.get("template") or {})
        if kind is None:
            return DONE  # refused by admission; nothing can be created from it
        is_served = await self._children.wait_served(kind)
        work = await self._begin({**stored, "spec": spec}, kind)
        if not is_served:
            resource = kind.resource
            problem = f"the cluster does not serve {resource.kind} of {resource.api_version}"
            await self._fail(work, SUBSET_PROVISIONED, problem)
            return DONE
        current = Current(work.status, work.conditions, work.revisions.updated, work.observed, work.unreachable)
        try:
            plan = plan_subsets(spec, kind, current, self._clock.now(), is_strict=self._is_strict)
        except AllocationError as error:
            self._recorder.event(stored, WARNING, EVENT_SPECIFY_REPLICAS, str(error))
            await self._fail(work, SUBSET_PROVISIONED, str(error))
            return DONE
        failures = await self._provision(work, plan) + await self._update(work, plan)
        await self._writer.label_pods(key.namespace, plan.pod_labels)
        status = await self._write_status(work, plan.outcomes)
        await self._writer.trim_revisions(work.united, status)
        for failure in failures:
            if not _is_refusal(failure):
                raise failure
        recheck_s = _UNREACHABLE_RECHECK_S if work.unreachable else None
        delay_s = soonest((plan.requeue_after_s, recheck_s, _REFUSED_S if failures else None))
        return DONE if delay_s is None else Result(delay_s + _TIMER_SLACK_S)

    async def _begin(self, united: Object, kind: WorkloadKind) -> _Work:
        status = hub_status(united.get("status"))
        revisions = plan_revisions({**united, "status": status}, self._children.revisions_of(united))
        await self._writer.write_revisions(united, revisions)
        work = _Work(
            united,
            kind,
            status,
            revisions,
            set_revision_condition(status, revisions, self._clock.now()),
            workloads={},
            surplus=[],
            observed={},
            unreachable={},
        )
        listed = {subset["name"] for subset in _subsets(united)}
        for each in KINDS:
            for workload in self._children.workloads_of(united, each):
                subset = (workload["metadata"].get("labels") or {}).get(names.SUBSET_NAME_LABEL) or ""
                if each is not kind or subset not in listed or subset in work.workloads:
                    work.surplus.append((each, workload))
                else:
                    work.workloads[subset] = workload
        namespace = united["metadata"].get("namespace", "")
        for subset in _subsets(united):
            problem = self._children.pods.problem(subset, namespace, kind, work.workloads.get(subset["name"]))
            if problem:
                work.unreachable[subset["name"]] = problem
        for subset, workload in work.workloads.items():
            pods = self._children.pods_of(workload, subset)
            data = self._children.pods.data(namespace, kind, workload, pods)
            work.observed[subset] = ObservedSubset(
                observe_workload(kind, workload, pods, revisions.updated), pods, data
            )
        return work

    async def _provision(self, work: _Work, plan: SubsetPlan) -> list[FederationError]:
        """Create missing workloads and delete surplus ones."""
        subsets = {subset["name"]: subset for subset in _subsets(work.united)}
        missing = sorted(subsets.keys() - work.workloads.keys())
        creations: list[Operation] = [
            partial(self._writer.write, work.united, subsets[name], work.kind, plan.targets[name]) for name in missing
        ]
        deletions: list[Operation] = [
            partial(self._writer.delete, workload, kind)
            for kind, workload in work.surplus
            if not workload["metadata"].get("deletionTimestamp")
        ]
        failures = []
        for verb, operations in (("Create", creations), ("Delete", deletions)):
            failed = await run_in_batches(operations)
            failures += failed
            if operations and not failed:
                text = f"{verb} {len(operations)} Subset ({work.kind.resource.kind})"
                self._recorder.event(work.united, NORMAL, EVENT_UPDATE_SUBSET, text)
        if creations or deletions or find(work.conditions, SUBSET_PROVISIONED):
            self._note(work, SUBSET_PROVISIONED, failures)
        return failures

    async def _update(self, work: _Work, plan: SubsetPlan) -> list[FederationError]:
        """Write workloads that differ from their target, and remove pods that block StatefulSets."""
        operations: list[Operation] = []
        policies = policy_labels(work.united, work.kind)
        for subset in _subsets(work.united):
            name, workload = subset["name"], work.workloads.get(subset["name"])
            if workload is None or workload["metadata"].get("deletionTimestamp"):
                continue
            observed, target = work.observed[name], plan.targets[name]
            if is_outdated(observed.workload, subset, target) or labelled_policies(workload) != policies:
                operations.append(
                    partial(self._writer.write, work.united, subset, work.kind, target, workload["metadata"]["name"])
                )
            elif work.kind.is_stateful and name not in work.unreachable:
                stuck = stuck_pods(observed.workload, observed.pods, target.revision, target.partition)
                await self._writer.delete_pods(work.united["metadata"]["namespace"], stuck)
        failures = await run_in_batches(operations)
        if operations or find(work.conditions, SUBSET_UPDATED):
            self._note(work, SUBSET_UPDATED, failures)
        return failures

    def _note(self, work: _Work, type_: str, failures: Sequence[FederationError]) -> None:
        work.conditions = set_condition(
            work.conditions,
            type_=type_,
            status="False" if failures else "True",
            reason=REASON_SUBSETS_FAILED if failures else "",
            message=str(failures[0]) if failures else "",
            now=self._clock.now(),
        )
        if failures:
            self._recorder.event(work.united, WARNING, EVENT_SUBSET_FAILED, str(failures[0]))

    async def _fail(self, work: _Work, type_: str, problem: str) -> None:
        """Store why nothing can be done; replicas, partitions and conditions of the subsets stay as they are."""
        work.conditions = set_condition(
            work.conditions,
            type_=type_,
            status="False",
            reason=REASON_SUBSETS_FAILED,
            message=problem,
            now=self._clock.now(),
        )
        kept = {
            entry["name"]: SubsetOutcome(
                entry.get("replicas") or 0,
                entry.get("partition") or 0,
                entry.get("conditions") or (),
                entry.get("reservedPods") or 0,
            )
            for entry in work.status.get("subsetStatuses") or ()
        }
        await self._write_status(work, kept)

    async def _write_status(self, work: _Work, outcomes: Mapping[str, SubsetOutcome]) -> Object:
        """Write the status if it changed, and return it.

        The next reconcile must see it: the conditions in it decide which subsets are unschedulable.
        """
        workloads = {name: observed.workload for name, observed in work.observed.items()}
        status = compute_status(work.united, Observation(work.revisions, workloads, outcomes, work.conditions))
        if status != work.united.get("status"):
            body = {**work.united, "status": status}
            with contextlib.suppress(NotFound):
                written = await self._client.update(UNITED_DEPLOYMENTS, body, subresource="status")
                await self._cache.wait_for(written["metadata"]["resourceVersion"])
        return status

    async def _patch_replicas(self, united: Object, replicas: int) -> None:
        metadata = united["metadata"]
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "spec": {"replicas": replicas}}
        await self._client.patch(UNITED_DEPLOYMENTS, metadata["name"], body, namespace=metadata["namespace"])


def _is_refusal(failure: FederationError) -> bool:
    """Return whether quotas, admission or rights refuse the write to the author, who reads it in the status."""
    return isinstance(failure, Forbidden | Invalid)


def _subsets(united: Object) -> Sequence[Object]:
    return (united["spec"].get("topology") or {}).get("subsets") or ()
