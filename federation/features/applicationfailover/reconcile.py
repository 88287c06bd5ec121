"""The steps for one federated object: observe its copies, decide which cluster it leaves, write the record.

Observations come from caches only; a cluster that is not ready, or whose cache is not complete, gives none. The
evidence is in memory, so after a restart it has to last again; what was decided is in the record.
"""

from collections.abc import Callable, Mapping

from msgspec import structs
from prometheus_client import Counter

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions
from federation.apimachinery.listening import Looks
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.features.applicationfailover.names import (
    EVENT_MOVES,
    EVENT_NO_STATE,
    EVENT_PURGE_WAITS,
    REASON_NOT_KNOWN,
)
from federation.features.applicationfailover.rules.decide import (
    Evidence,
    Situation,
    Verdict,
    decide,
    is_settled,
    with_half_left,
    without_ended_purges,
)
from federation.planning.failover.application import (
    NO_RECORD,
    ApplicationRecord,
    ApplicationRules,
    PurgeMode,
    handed_states,
    is_purge_confirmed,
    record_of,
    record_text,
    rules_of,
)
from federation.planning.failover.handover import describe_missing, merged, state_of
from federation.planning.federatedobject.finished import evidence_by_cluster
from federation.planning.federatedobject.placements import current_clusters, departed_clusters
from federation.planning.rendering.memberobject import content_hash
from federation.planning.status.copyhealth import UNKNOWN, Compile, Observed, health_of, waits_for
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host

_moves = Counter(
    "federation_controllers_application_moves_total", "Clusters that workloads left because they were unhealthy there"
)


class Reconciler:
    """Judges one federated object per call."""

    def __init__(self, host: Host, compile_: Compile, cluster: Callable[[str], Object | None]) -> None:
        self._objects = host.objects
        self._members = host.members
        self._recorder = host.recorder
        self._clock = host.clock
        self._presence = host.presence
        self._looks: Looks[Key] = Looks(host.presence)
        self._compile = compile_
        self._cluster = cluster
        self._evidence: dict[Key, Mapping[str, Evidence]] = {}
        self._templates: dict[Key, str] = {}

    async def reconcile(self, key: Key) -> Result:
        """Observe the copies and write at most one patch, and the condition."""
        federated = self._objects.get(key)
        type_ = self._objects.type_of(federated) if federated is not None else None
        if federated is None or type_ is None or federated["metadata"].get("deletionTimestamp"):
            self._forget(key)
            return DONE
        rules, before = rules_of(federated), record_of(federated)
        situation = self._situation(federated, type_)
        if rules is not None and self._looks.was_away(key):
            before = with_half_left(before, rules.grace_s, situation.now)
        if rules is None:
            self._forget(key)
            await self._end(key, federated, before, situation)
            return DONE
        if self._templates.get(key) != situation.template:
            self._templates[key] = situation.template
            self._evidence.pop(key, None)  # another template starts again
        outcome = decide(before, rules, self._evidence.get(key, {}), situation)
        self._evidence[key] = outcome.evidence
        record = self._consumed(outcome.record, rules, outcome.evidence, federated)
        record, purge_after_s = self._purged(federated, record, rules.grace_s, situation)
        if outcome.leaves:
            record = self._with_state(federated, type_, record, rules, outcome.leaves)
        if not await self._write(key, federated, record):
            return DONE  # the newer state of the object brings it here again
        if outcome.verdict is not None:
            self._report(federated, record, outcome.leaves, outcome.verdict)
            await self._publish(key, federated, outcome.verdict)
        times = [time_s for time_s in (outcome.after_s, purge_after_s) if time_s is not None]
        return Result(max(0.1, min(times))) if times else DONE

    def _forget(self, key: Key) -> None:
        self._evidence.pop(key, None)
        self._templates.pop(key, None)
        self._looks.forget(key)

    def _situation(self, federated: Object, type_: FederatedType) -> Situation:
        placed = current_clusters(federated, type_)
        finished = evidence_by_cluster(federated)
        observed = {name: self._observe(federated, type_, name) for name, n in placed.items() if n != 0}
        observed = {name: UNKNOWN if name in finished else found for name, found in observed.items()}
        return Situation(
            template_of(federated, type_),
            placed,
            observed,
            self._clock.now(),
            self._presence.present_s,
            frozenset(placed) | departed_clusters(federated),
        )

    def _observe(self, federated: Object, type_: FederatedType, cluster: str) -> Observed:
        status = (self._cluster(cluster) or {}).get("status") or {}
        informer = self._members.informer(cluster, type_.resource)
        is_ready = conditions.is_true(status.get("conditions"), names.CLUSTER_READY)
        if not is_ready or informer is None or not (informer.has_synced and informer.is_connected):
            return UNKNOWN
        member = self._member(federated, type_, cluster)
        if member is None:
            return UNKNOWN
        if not _migrates(federated, type_):
            return health_of(type_, member, self._compile, lambda: False)
        return health_of(type_, member, self._compile, lambda: self._is_waiting(cluster, member))

    def _member(self, federated: Object, type_: FederatedType, cluster: str) -> Object | None:
        metadata = federated["spec"]["template"]["metadata"]
        namespace = federated["metadata"].get("namespace", "") if type_.resource.namespaced else ""
        return self._members.get_cached(cluster, type_.resource, namespace, metadata["name"])

    def _is_waiting(self, cluster: str, member: Object) -> bool | None:
        capacity, metadata = self._members.capacity(cluster), member["metadata"]
        if capacity is None or not capacity.are_current:
            return None
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        return any(waits_for(pod, name) for pod in capacity.waiting.list(namespace))

    def _consumed(
        self, record: ApplicationRecord, rules: ApplicationRules, evidence: Mapping[str, Evidence], federated: Object
    ) -> ApplicationRecord:
        """Return the record without state with which a copy was healthy: later copies do not start from it."""
        now_s = self._presence.present_s
        good = {name for name, each in evidence.items() if is_settled(each, rules, now_s)}
        if record.state is None or not any(name in good for name in handed_states(federated)):
            return record
        return structs.replace(record, state=None)

    def _purged(
        self, federated: Object, record: ApplicationRecord, grace_s: float, situation: Situation
    ) -> tuple[ApplicationRecord, float | None]:
        confirmed = [name for name in record.purges if is_purge_confirmed(federated, name)]
        return without_ended_purges(record, grace_s, situation, confirmed)

    def _with_state(
        self, federated: Object, type_: FederatedType, record: ApplicationRecord, rules: ApplicationRules, cluster: str
    ) -> ApplicationRecord:
        """Return the record with the state of the copy that leaves, over what an earlier one left unconsumed."""
        member = self._member(federated, type_, cluster)
        if not rules.state or member is None:
            return record
        state, missing = state_of(rules.state, cluster, member)
        if missing:
            self._recorder.event(federated, WARNING, EVENT_NO_STATE, describe_missing(cluster, missing))
        return structs.replace(record, state=merged(record.state, state))

    async def _write(self, key: Key, federated: Object, record: ApplicationRecord) -> bool:
        text = record_text(record)
        if (federated["metadata"].get("annotations") or {}).get(names.APPLICATION_FAILOVER) == text:
            return True
        metadata = {"annotations": {names.APPLICATION_FAILOVER: text}}
        return await self._objects.patch(key, federated, {"metadata": metadata}) is not None

    async def _end(self, key: Key, federated: Object, record: ApplicationRecord, situation: Situation) -> None:
        """Forget everything once the policy says nothing any more, except copies that a user has not given up."""
        kept = {name: each for name, each in record.purges.items() if each.mode is PurgeMode.NEVER}
        kept = {name: each for name, each in kept.items() if name in situation.holders - situation.placed.keys()}
        kept = {name: each for name, each in kept.items() if not is_purge_confirmed(federated, name)}
        if await self._write(key, federated, structs.replace(NO_RECORD, purges=kept)):
            text = "its policy has no failover.application, or keeps its first placement"
            await self._publish(key, federated, Verdict(REASON_NOT_KNOWN, text))

    async def _publish(self, key: Key, federated: Object, verdict: Verdict) -> None:
        """Set the condition. A workload that nothing is known of yet gets none."""
        present = conditions.find((federated.get("status") or {}).get("conditions"), names.APPLICATION_HEALTHY)
        if present is not None or verdict.reason != REASON_NOT_KNOWN:
            await self._objects.set_condition(
                key, names.APPLICATION_HEALTHY, status=verdict.status, reason=verdict.reason, message=verdict.message
            )

    def _report(self, federated: Object, record: ApplicationRecord, leaves: str, verdict: Verdict) -> None:
        if leaves:
            _moves.inc()
            self._recorder.event(federated, NORMAL, EVENT_MOVES, verdict.message)
            if record.purges[leaves].mode is PurgeMode.NEVER:
                text = f"the copy in {leaves} stays until annotation {names.PURGE} of the workload names the cluster"
                self._recorder.event(federated, WARNING, EVENT_PURGE_WAITS, text)


def _migrates(federated: Object, type_: FederatedType) -> bool:
    """Return whether auto-migration moves replicas without a node: then they are its business."""
    is_asked = names.POD_UNSCHEDULABLE_THRESHOLD in (federated["metadata"].get("annotations") or {})
    is_divided = None not in current_clusters(federated, type_).values()
    return is_asked and is_divided and type_.auto_migration and type_.resource == DEPLOYMENTS


def fails_over(federated: Object) -> bool:
    """Return whether the object has rules or a record of application failover."""
    annotations = federated["metadata"].get("annotations") or {}
    return names.APPLICATION_FAILOVER_RULES in annotations or names.APPLICATION_FAILOVER in annotations


def template_of(federated: Object, type_: FederatedType) -> str:
    """Return a hash of the spec of the template without its replicas: a user who scales changes no template."""
    spec = dict(federated["spec"]["template"].get("spec") or {})
    path = type_.paths.replicas_spec
    if len(path) == 2 and path[0] == "spec":
        spec.pop(path[1], None)
    return content_hash(spec)
