"""The steps of a policy's change in waves: look at its objects, plan, and write the record into the policy's status.

The record is all that is written: the scheduler and the override controller watch policies, and give each object the
version that the record says. It is written for the policy that was read, so two changes are never mixed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from federation.api import names
from federation.apimachinery.amounts import to_count
from federation.apimachinery.listening import Looks
from federation.apimachinery.mergepatch import create_merge_patch
from federation.apimachinery.resources import Object
from federation.features.waves.metricsgate import MetricsGate
from federation.features.waves.policies.objectlook import Look, Observer
from federation.features.waves.rules.changeplan import Subject, judged_of, members_of, namespace_of, plan_change
from federation.features.waves.rules.objectivegate import ObjectivesDue
from federation.features.waves.rules.objectives import Judgement, Verdict
from federation.features.waves.rules.promql import Workload
from federation.features.waves.waveevents import report_phase, report_waves
from federation.planning.waves.changerules import ChangeRules, current_wave, find_change_rules
from federation.planning.waves.policychanges import FIELD, ChangeRecord, ChangeWave, record_of, to_status
from federation.planning.waves.waverecord import Phase
from federation.runtime.assumecache import AssumeCache
from federation.runtime.controller import DONE, Result
from federation.runtime.host import Host
from federation.scheduling.policyusage import PolicyKey, PolicyUsage

_MEASURED_MAX = 50
"""Objects of a wave, and objects that wait, whose objectives are measured: as many of each namespace."""
_MATCHING_S = 1.0


class Reconciler:
    """Handles one policy per call."""

    def __init__(
        self,
        host: Host,
        usage: PolicyUsage,
        observer: Observer,
        metrics: MetricsGate,
        cached: Callable[[PolicyKey], Object | None],
    ) -> None:
        self._client = host.client
        self._recorder = host.recorder
        self._clock = host.clock
        self._looks: Looks[PolicyKey] = Looks(host.presence)
        self._observer = observer
        self._metrics = metrics
        self._usage = usage
        self._cached = cached
        self.assumed: AssumeCache[PolicyKey] = AssumeCache(cached)

    async def reconcile(self, key: PolicyKey) -> Result:
        """Bring the record of the policy's change up to date."""
        policy = self.assumed.get(key)
        if policy is not self._cached(key):
            return DONE  # What objects should have follows from the cache; its event requeues the policy.
        if policy is None or policy["metadata"].get("deletionTimestamp"):
            self._looks.forget(key)
            return DONE
        rules, before = find_change_rules(policy), record_of(policy)
        if rules is None:
            if before is not None:
                await self._write(key, policy, None)
            return DONE
        if not self._usage.is_complete:
            return Result(requeue_after_s=_MATCHING_S)  # a wave must not seem to have no objects
        subjects, look = self._observer.look(key)
        judgement = None
        if before is not None and before.phase is not Phase.COMPLETE:
            await look.prepare(_due(policy, before, subjects))
            judgement = await self._measure(key, policy, before, rules, subjects, look)
        was_away = self._looks.was_away(key)
        plan = plan_change(policy, before, rules, subjects, look, self._clock.now(), judgement, was_away=was_away)
        if before != plan.record:
            if not await self._write(key, policy, plan.record):
                return DONE
            self._report(policy, before, plan.record)
        return Result(requeue_after_s=plan.requeue_after_s)

    async def _measure(
        self,
        key: PolicyKey,
        policy: Object,
        record: ChangeRecord,
        rules: ChangeRules,
        subjects: Sequence[Subject],
        look: Look,
    ) -> Judgement | None:
        """Return the judgement about the objectives of the current wave; None without any, or before its gate holds."""
        current = current_wave(record)
        rule = next((each for each in rules.waves if current is not None and each.name == current.name), None)
        if rule is None or not rule.objectives or current is None or current.held_since is None:
            self._metrics.forget(key)
            return None
        members = members_of(policy, record, subjects)
        since = current.taken_at or current.started_at or current.held_since
        mine = _sample(
            identity
            for identity in judged_of(policy, record, subjects, rule.name)
            if not look.is_of_users(identity, since)
        )
        others = _sample(subject.identity for subject in subjects if subject.identity not in members)
        workloads, waiting = (self._workloads(each) for each in (mine, others))
        if not workloads:
            return Judgement(Verdict.HOLDS, "")
        started_at = current.started_at or current.held_since
        due = ObjectivesDue(rule.name, rule.objectives, current.held_since, started_at, rule.soak_s, (), ())
        return (await self._metrics.judge(key, workloads, due, waiting)).judgement

    def _workloads(self, identities: Sequence[str]) -> list[Workload]:
        found = map(self._observer.workload_of, identities)
        return [Workload(*each) for each in found if each is not None]

    async def _write(self, key: PolicyKey, policy: Object, record: ChangeRecord | None) -> bool:
        """Write the record; return False if the policy has changed or is gone, which requeues it."""
        present = (policy.get("status") or {}).get(FIELD)
        wanted = None if record is None else to_status(record)
        changed = wanted if present is None or wanted is None else create_merge_patch(present, wanted)
        if present is not None and wanted is not None and not changed:
            return True
        body = {
            "metadata": {"resourceVersion": policy["metadata"]["resourceVersion"]},
            "status": {FIELD: changed},
        }
        patch = self._client.patch(
            key.resource,
            key.name,
            body,
            namespace=key.namespace,
            subresource="status",
            field_manager=names.FIELD_MANAGER,
        )
        return await self.assumed.assume_result(key, patch) is not None

    def _report(self, policy: Object, before: ChangeRecord | None, record: ChangeRecord) -> None:
        """Emit Events for the phase and the waves that have changed."""
        if before is None:
            return
        is_new = record.revision != before.revision
        if record.phase is not before.phase or is_new:
            report_phase(self._recorder, policy, record.phase, f"change {record.revision}", record.reason)
        report_waves(self._recorder, policy, () if is_new else before.waves, record.waves, _started)


def _started(wave: ChangeWave) -> str:
    return f"wave {wave.name} has started with {to_count(wave.objects, 'object')}"


def _due(policy: Object, record: ChangeRecord, subjects: Sequence[Subject]) -> list[str]:
    """Return the objects that the next plan looks at: those of the current wave, or all that a roll back returns."""
    members, current = members_of(policy, record, subjects, with_new=True), current_wave(record)
    if record.phase is Phase.ROLLING_BACK or current is None:
        return list(members)
    return [identity for identity, wave in members.items() if wave == current.name]


def _sample(identities: Iterable[str]) -> list[str]:
    """Return the objects to measure, from each namespace one after the other, so that none decides alone."""
    ranks: Counter[str] = Counter()
    ranked = []
    for identity in sorted(identities):
        namespace = namespace_of(identity)
        ranked.append((ranks[namespace], identity))
        ranks[namespace] += 1
    return sorted(identity for _, identity in sorted(ranked)[:_MEASURED_MAX])
