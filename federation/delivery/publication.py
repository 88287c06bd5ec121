"""Publishes the results of one reconcile: the status, its conditions, and which departed clusters are settled.

Each is written once, and only when something changed. The event NoPolicy comes after a short grace: `kubectl apply` of
a folder creates an object a moment before its policy. The condition shows at once that no policy selects it. A restart
during the grace begins from the condition's time.
"""

from collections.abc import Callable, Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions
from federation.apimachinery.clock import Clock, from_rfc3339
from federation.apimachinery.resources import Object
from federation.delivery.host.hostadmission import HostAdmission
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.propagation import Propagation, Result
from federation.delivery.rules.decision import Question
from federation.delivery.rules.status import AS_WANTED, ClusterStatus, clusters_of, plan_status
from federation.planning.federatedobject.placements import ARRIVING, DEPARTED, departed_clusters
from federation.planning.overrides.policies import stored_policies
from federation.planning.rendering.verdicts import plan_report
from federation.planning.status.sourceconditions import describe_missing_policy, takes_source_conditions
from federation.runtime.controller import Key
from federation.runtime.events import NORMAL, WARNING, Recorder
from federation.runtime.host import Host

_GRACE_S = 5.0
"""How long a workload may have no policy before the event."""


class MissingPolicyReports:
    """Emits the event once per object and loss of its policy."""

    def __init__(self, recorder: Recorder, clock: Clock, kept: KeptState) -> None:
        self._recorder = recorder
        self._clock = clock
        self._pending: set[Key] = kept.by_object(set())

    def update(
        self, key: Key, federated: Object, type_: FederatedType, before: Mapping[str, Any], reason: str, message: str
    ) -> float | None:
        """Take note of an object's reason for Propagated=False, `before` being its status until now.

        Return when to look again: when the grace of its event ends.
        """
        resource = type_.resource
        if reason != names.REASON_NO_POLICY or not takes_source_conditions(resource.group, resource.kind):
            self._pending.discard(key)
            return None
        remaining_s = self._remaining_s(before)
        if remaining_s > 0:
            self._pending.add(key)
            return remaining_s
        if key in self._pending:
            self._pending.discard(key)
            self._recorder.event(federated, NORMAL, names.REASON_NO_POLICY, message)
        return None

    def _remaining_s(self, before: Mapping[str, Any]) -> float:
        known = conditions.find(before.get("conditions"), names.PROPAGATED) or {}
        if known.get("reason") != names.REASON_NO_POLICY:
            return _GRACE_S
        try:
            since = from_rfc3339(known["lastTransitionTime"])
        except (KeyError, TypeError, ValueError):
            return 0.0
        age_s = (self._clock.now() - since).total_seconds()
        # A time in the future is that of another clock; waiting for it could take for ever.
        return _GRACE_S - age_s if age_s >= 0 else 0.0


WRITER = "sync"
_EARLIER_PODS_S = 60.0
"""How often an object whose earlier pods count is looked at, beside the events that end it."""
ExpectsPlacement = Callable[[FederatedType, Mapping[str, Any]], bool]
"""Returns whether policies, or its type, place a source."""


class Publication:
    """Writes statuses of federated objects."""

    def __init__(
        self, host: Host, admission: HostAdmission, expects_placement: ExpectsPlacement, kept: KeptState
    ) -> None:
        self._objects = host.objects
        self._admission = admission
        self._expects_placement = expects_placement
        self._recorder = host.recorder
        self._missing_policies = MissingPolicyReports(host.recorder, host.clock, kept)
        self._clock = host.clock

    async def publish(self, propagation: Propagation) -> None:
        """Publish what the reconcile found, unless that is expected to change at once."""
        is_uncached = _keep_uncached_clusters(propagation)
        is_brief = any(decision.is_brief for decision in propagation.decisions.values())
        if propagation.started or not (is_uncached or is_brief):
            await self._write(propagation, is_uncached=is_uncached)
        await self._report_admission(propagation)

    async def _write(self, propagation: Propagation, *, is_uncached: bool) -> None:
        key, federated = propagation.aim.key, propagation.federated
        before = federated.get("status") or {}
        # Statuses kept for clusters without a cache describe an earlier generation.
        generation = before.get("syncedGeneration") if is_uncached else federated["metadata"].get("generation")
        reason, message = self._undelivered(propagation)
        status = plan_status(
            before,
            generation=int(generation or 0),
            statuses=propagation.statuses,
            generations={cluster: result.generation for cluster, result in propagation.results.items()},
            messages={cluster: result.message for cluster, result in propagation.results.items()},
            finished=propagation.finished,
            started=propagation.started_runs,
            earlier_pods=propagation.earlier_pods,
            reason=reason,
            message=message,
            resources_updated=propagation.has_written,
            now=self._clock.now(),
        )
        if status is not None:
            patched = await self._objects.patch(key, federated, {"status": status}, subresource="status")
            if patched is None:
                return
            federated = patched
        if propagation.earlier_pods:
            propagation.recheck(_EARLIER_PODS_S)
        type_ = propagation.aim.subject.type_
        propagation.recheck(self._missing_policies.update(key, propagation.federated, type_, before, reason, message))
        await self._settle(propagation, federated)

    async def _settle(self, propagation: Propagation, federated: Object) -> None:
        """Remove departed clusters from the annotation that have nothing of the object any more."""
        settled = {name for name, decision in propagation.decisions.items() if decision.status is None}
        departed = departed_clusters(federated)
        remaining = departed.difference(settled | propagation.aim.selected)
        if remaining != departed:
            written = DEPARTED.entry(remaining)
            if not remaining and names.ARRIVING_CLUSTERS in (federated["metadata"].get("annotations") or {}):
                written |= ARRIVING.entry(None)
            body = {"metadata": {"annotations": written}}
            await self._objects.patch(propagation.aim.key, federated, body, writer=WRITER)

    async def _report_admission(self, propagation: Propagation) -> None:
        """Publish the host's verdict. An object that was never held has no condition and costs no write."""
        key, federated, decisions = propagation.aim.key, propagation.federated, propagation.decisions
        verdicts = {name: decision.held for name, decision in decisions.items() if decision.held is not None}
        held = self._admission.track(key, propagation.statuses, verdicts)
        is_open = any(decision.question is Question.ADMISSION for decision in decisions.values())
        present = (federated.get("status") or {}).get("conditions")
        if is_open or (not held and conditions.find(present, names.ADMITTED) is None):
            return
        report = plan_report(held, stored_policies(federated))
        is_news = await self._objects.set_condition(
            key, names.ADMITTED, status=report.status, reason=report.reason, message=report.message, writer=WRITER
        )
        if is_news and held:
            self._recorder.event(federated, WARNING, report.reason, f"held from {report.message}")

    def _undelivered(self, propagation: Propagation) -> tuple[str, str]:
        """Return the reason and message of Propagated=False, "" for the reason if the clusters' statuses decide it."""
        statuses, placed = propagation.statuses, propagation.aim.selected
        if not placed and AS_WANTED.issuperset(statuses.values()):
            # Nothing is placed: also where an object that only its source's deletion removes is kept.
            return self._unplaced(propagation.federated, propagation.aim.subject.type_)
        missing = sorted(placed - statuses.keys())
        failing = [cluster for cluster, status in statuses.items() if status not in AS_WANTED]
        parts = [f"{cluster}: the cluster is not joined" for cluster in missing]
        message = "; ".join(filter(None, (*parts, propagation.describe(failing))))
        return names.REASON_CHECK_CLUSTERS if missing else "", message

    def _unplaced(self, federated: Object, type_: FederatedType) -> tuple[str, str]:
        scheduled = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED)
        if scheduled is not None and scheduled.get("status") != "True":
            return names.REASON_NOT_PLACED, str(scheduled.get("message", ""))
        metadata, template = federated["metadata"], federated["spec"]["template"]["metadata"]
        labels = {**(template.get("labels") or {}), **(metadata.get("labels") or {})}
        namespace = metadata.get("namespace", "")
        source = {"metadata": {"namespace": namespace, "name": template["name"], "labels": labels}}
        if self._expects_placement(type_, source):
            return names.REASON_NOT_PLACED, "it is placed in no cluster"
        return names.REASON_NO_POLICY, describe_missing_policy(namespace)


def _keep_uncached_clusters(propagation: Propagation) -> bool:
    """Keep the published status of clusters whose cache is not complete yet; return whether there are any.

    The object is reconciled again as soon as the cache is complete, or has not been for too long.
    """
    before = clusters_of(propagation.federated)
    uncached = [name for name, decision in propagation.decisions.items() if decision.keeps_status]
    for cluster in uncached:
        entry = before.get(cluster, {})
        known = entry.get("status", "")
        status = ClusterStatus(known) if known in ClusterStatus._value2member_map_ else ClusterStatus.PENDING_CREATE
        generation = int(entry.get("lastObservedGeneration", 0))
        propagation.results[cluster] = Result(status, generation, str(entry.get("message", "")))
    return bool(uncached)
