"""The steps of the rollout of one workload: observe, plan, write the FederatedRollout, then let sync go on.

The status is written first: it is the memory of the rollout, and the approvals follow from it. After a crash between
the two writes the next reconcile computes the same approvals.
"""

from collections.abc import Mapping
from dataclasses import replace

from federation.api import names
from federation.api.federatedtype import FederatedType, template_problem
from federation.api.resources import FEDERATED_ROLLOUTS
from federation.apimachinery.errors import AlreadyExists
from federation.apimachinery.listening import Looks
from federation.apimachinery.mergepatch import create_merge_patch
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import Object
from federation.features.waves.clusterobservation import Observation, Observer, revision_of
from federation.features.waves.httpgate import HTTPGate
from federation.features.waves.metricsgate import MetricsGate
from federation.features.waves.podreader import INTERVAL_S, PodReader
from federation.features.waves.rules.promql import Workload
from federation.features.waves.rules.report import settled_of, templates_of, to_status
from federation.features.waves.rules.waveplan import Plan, http_check_due, objectives_due, plan_waves
from federation.features.waves.waitingforbudgets import WaitingForBudgets
from federation.features.waves.waveevents import report_phase, report_waves
from federation.guard.suspensions import Holds
from federation.planning.changehold import Hold
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import to_merge_patch, with_annotations, with_overrides
from federation.planning.freezes.changefreeze import Change
from federation.planning.steps.strategy import is_paused
from federation.planning.steps.waveapproval import returning_annotation, to_annotation, to_failure
from federation.planning.waves.rolloutpart import Part, RolloutPart, rollout_part
from federation.planning.waves.rolloutstatus import record_of
from federation.planning.waves.waverecord import Phase, Record
from federation.planning.waves.waverules import Rules, find_rules, is_approval_due
from federation.planning.waves.wishes import read_wishes
from federation.runtime.assumecache import AssumeCache
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.host import Host
from federation.runtime.informer import Informer

WRITER = "rollout"
_EXPLAINED_MAX = 10
"""Clusters of a workload that are asked for their pods; messages name fewer."""
_ANNOTATIONS = (names.APPROVED_REVISIONS, names.RETURNING_REVISIONS, names.ROLLOUT_FAILURE)


class Reconciler:
    """Handles one federated object per call; its FederatedRollout has the same name."""

    def __init__(
        self,
        host: Host,
        rollouts: Informer,
        observer: Observer,
        http: HTTPGate,
        metrics: MetricsGate,
        waiting: WaitingForBudgets,
        pods: PodReader,
        holds: Holds,
    ) -> None:
        self._freezes = holds.freezes
        self._suspensions = holds.suspensions
        self._client = host.client
        self._objects = host.objects
        self._observer = observer
        self._http = http
        self._metrics = metrics
        self._waiting = waiting
        self._pods = pods
        self._recorder = host.recorder
        self._clock = host.clock
        self._looks: Looks[Key] = Looks(host.presence)
        self.assumed: AssumeCache[Key] = AssumeCache(lambda key: rollouts.get(*key))

    async def reconcile(self, key: Key) -> Result:
        """Bring the FederatedRollout, the approvals and the restored templates up to date."""
        federated, rollout = self._objects.get(key), self.assumed.get(key)
        if federated is None or federated["metadata"].get("deletionTimestamp") or template_problem(federated):
            self._forget(key)
            return DONE  # The garbage collector removes the FederatedRollout with its owner.
        type_, rules = self._objects.type_of(federated), find_rules(federated)
        part = None if type_ is None else rollout_part(type_)
        if type_ is None or rules is None or part is None:
            await self._end(key, federated, rollout)
            return DONE
        if not pendingcontrollers.is_ready_for_dispatch(federated):
            self._objects.defer(key, writer=WRITER)
            return DONE  # Its overrides do not match its template yet.
        before = (rollout or {}).get("status")
        record, stored = record_of(before, self._clock.now()), templates_of(before)
        settled = settled_of(before)
        observation = self._explain(
            key, record, self._observer.observe(federated, type_, part, rules, record, stored, settled)
        )
        plan = await self._plan(key, federated, type_, rollout, rules, record, observation)
        if rollout is None and not plan.record.clusters and not is_approval_due(federated):
            return DONE  # Its first clusters get the present template.
        base = part.of(federated["spec"]["template"])
        if plan.is_settled:
            settled = revision_of(base)
        known = {revision_of(base): base, **observation.templates, **stored}
        templates = _kept_templates(plan, settled, known)
        if rollout is None:
            rollout = await self._create(key, federated, type_)
        await self._write_status(key, rollout, plan, observation, templates, rules, settled)
        # Events before the approvals: their write may conflict, and the next reconcile sees no change of the status.
        self._report(federated, record, plan)
        await self._deliver(key, federated, part, plan, observation, templates)
        times = [plan.requeue_after_s] if plan.requeue_after_s is not None else []
        if _changed_and_unready(plan.record, observation):
            times.append(INTERVAL_S)
        return Result(requeue_after_s=min(times, default=None))

    def _explain(self, key: Key, record: Record, observation: Observation) -> Observation:
        """Return the observation with what is wrong with the pods of clusters that the rollout has changed."""
        clusters = dict(observation.clusters)
        for name in _changed_and_unready(record, observation):
            problem = self._pods.problem(key, name, observation.unready[name])
            if problem is not None:
                text = f"{clusters[name].problem}: {problem.text}"
                clusters[name] = replace(clusters[name], problem=text, is_broken=problem.is_broken)
        return replace(observation, clusters=clusters)

    async def _plan(
        self,
        key: Key,
        federated: Object,
        type_: FederatedType,
        rollout: Object | None,
        rules: Rules,
        record: Record,
        observation: Observation,
    ) -> Plan:
        wishes = read_wishes((rollout or {}).get("spec") or {})
        if is_paused(type_.resource, federated["spec"]["template"]):
            wishes = replace(wishes, is_paused=True)
        check = http_check_due(record, rules, observation.clusters)
        http_problem = await self._http.problem(key, check) if check is not None else ""
        due, judged = objectives_due(record, rules, observation.clusters), None
        if due is not None:
            name = federated["spec"]["template"]["metadata"]["name"]
            judged = await self._metrics.judge(key, [Workload(type_.resource.kind, key.namespace, name)], due)
        # From here to the record nothing waits: no other rollout takes the same rest of a budget.
        now = self._clock.now()
        budgets = self._waiting.budgets(key, now, self._frozen(federated, record, observation))
        was_away = self._looks.was_away(key)
        plan = plan_waves(
            record, rules, observation.clusters, wishes, now, http_problem, budgets, judged, was_away=was_away
        )
        self._waiting.record(key, plan.disrupted, is_waiting=bool(plan.held))
        return plan

    def _frozen(self, federated: Object, record: Record, observation: Observation) -> dict[str, Hold]:
        """Return the clusters that get no new template now, with the freeze or suspension.

        A cluster whose change was taken back returns to what it ran before, and no freeze holds that.
        """
        found: dict[str, Hold] = {}
        namespace, template = federated["metadata"].get("namespace", ""), federated["spec"]["template"]
        for cluster, seen in observation.clusters.items():
            if seen.live is None or seen.live == seen.wanted:
                continue
            is_back = cluster in record.clusters and record.clusters[cluster].good == seen.wanted
            frozen = None if is_back else self._freezes.find(federated, cluster, Change.UPDATES)
            if frozen is not None:
                found[cluster] = Hold(frozen.reason, frozen.message, frozen.until)
            elif (suspended := self._suspensions.find(template, namespace, cluster)) is not None:
                found[cluster] = Hold("", suspended.message, suspended.until)
        return found

    def _forget(self, key: Key) -> None:
        self._looks.forget(key)
        self._http.forget(key)
        self._metrics.forget(key)
        self._pods.forget(key)
        self._waiting.record(key, {}, is_waiting=False)

    async def _end(self, key: Key, federated: Object, rollout: Object | None) -> None:
        """Remove what belongs to the rollout of an object whose policies have no waves any more."""
        self._forget(key)
        patch = to_merge_patch(
            federated,
            with_overrides(federated, names.ROLLOUT_CONTROLLER, {}),
            with_annotations(federated, dict.fromkeys(_ANNOTATIONS)),
        )
        if patch is not None:
            await self._objects.patch(key, federated, patch, writer=WRITER)
        if rollout is not None and not rollout["metadata"].get("deletionTimestamp"):
            await self._client.delete(FEDERATED_ROLLOUTS, key.name, key.namespace, uid=rollout["metadata"]["uid"])

    async def _create(self, key: Key, federated: Object, type_: FederatedType) -> Object:
        owner = controller_of(federated)
        metadata: Object = {"name": key.name, "namespace": key.namespace}
        if owner is not None:
            metadata["ownerReferences"] = [{**owner, "blockOwnerDeletion": False}]
        resource = type_.resource
        target = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": federated["spec"]["template"]["metadata"]["name"],
        }
        body = {
            "apiVersion": FEDERATED_ROLLOUTS.api_version,
            "kind": FEDERATED_ROLLOUTS.kind,
            "metadata": metadata,
            "spec": {"targetRef": target},
        }
        try:
            created = await self._client.create(FEDERATED_ROLLOUTS, body, field_manager=names.FIELD_MANAGER)
        except AlreadyExists:
            created = await self._client.get(FEDERATED_ROLLOUTS, key.name, key.namespace)
        self.assumed.assume(key, created)
        return created

    async def _write_status(
        self,
        key: Key,
        rollout: Object,
        plan: Plan,
        observation: Observation,
        templates: Mapping[str, Part],
        rules: Rules,
        settled: str,
    ) -> None:
        before = rollout.get("status") or {}
        status = to_status(
            plan,
            before,
            observation.clusters,
            templates,
            observation.pods,
            policy=rules.policy,
            generation=rollout["metadata"].get("generation", 0),
            now=self._clock.now(),
            settled=settled,
        )
        changed = create_merge_patch(before, status)
        if not changed:
            return
        # Only for the state that was read: two states of one rollout must not be mixed.
        version = {"resourceVersion": rollout["metadata"]["resourceVersion"]}
        patch = self._client.patch(
            FEDERATED_ROLLOUTS,
            key.name,
            {"metadata": version, "status": changed},
            namespace=key.namespace,
            subresource="status",
            field_manager=names.FIELD_MANAGER,
        )
        await self.assumed.assume_result(key, patch)

    async def _deliver(
        self,
        key: Key,
        federated: Object,
        part: RolloutPart,
        plan: Plan,
        observation: Observation,
        templates: Mapping[str, Part],
    ) -> None:
        """Write the approvals, and the templates of clusters that return to an earlier one."""
        if plan.record.revision == 0 and not plan.restored and not is_approval_due(federated):
            return  # Nothing has changed since the object was created.
        patches, approved = {}, dict(plan.approved)
        for cluster in plan.restored:
            template = templates[plan.approved[cluster]]
            patches[cluster] = part.patches(
                observation.rendered.get(cluster) or federated["spec"]["template"], template
            )
            approved[cluster] = revision_of(template)
        patch = to_merge_patch(
            federated,
            with_overrides(federated, names.ROLLOUT_CONTROLLER, patches),
            with_annotations(federated, _annotations(federated, plan.record, approved, observation)),
        )
        if patch is not None:
            await self._objects.patch(key, federated, patch, writer=WRITER)

    def _report(self, federated: Object, before: Record, plan: Plan) -> None:
        """Emit Events for the phase and the waves that have changed."""
        record = plan.record
        is_new = record.revision != before.revision
        if record.phase is not before.phase or (is_new and record.revision > 0):
            report_phase(self._recorder, federated, record.phase, f"revision {record.revision}", record.reason)
        earlier = () if is_new else before.waves
        report_waves(self._recorder, federated, earlier, record.waves, lambda wave: f"wave {wave.name} has started")


def _changed_and_unready(record: Record, observation: Observation) -> list[str]:
    """Return the clusters that a rollout has changed, is changing or returns, and whose gates do not hold."""
    if record.phase in (Phase.COMPLETE, Phase.ROLLED_BACK):
        return []
    changed = (name for name, cluster in sorted(record.clusters.items()) if cluster.is_changed)
    return [name for name in changed if name in observation.unready][:_EXPLAINED_MAX]


def _annotations(
    federated: Object, record: Record, approved: Mapping[str, str], observation: Observation
) -> dict[str, str | None]:
    returning = {
        name: revision
        for name, revision in approved.items()
        if name in record.clusters and name in observation.clusters
        if record.clusters[name].good == revision != observation.clusters[name].live
    }
    return {
        names.RETURNING_REVISIONS: returning_annotation(returning),
        names.APPROVED_REVISIONS: to_annotation(approved),
        names.ROLLOUT_FAILURE: to_failure(federated, record.reason),
    }


def _kept_templates(plan: Plan, settled: str, known: Mapping[str, Part]) -> dict[str, Part]:
    """Return the templates that clusters may have to return to, or to get."""
    needed = {cluster.good for cluster in plan.record.clusters.values()} | {settled, *plan.record.replaced.values()}
    needed |= {plan.approved[cluster] for cluster in plan.restored}
    return {revision: known[revision] for revision in sorted(needed) if revision in known}
