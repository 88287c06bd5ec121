"""The ledger of queues under any interleaving: jobs, limits, rounds, writes, events, lost clusters and crashes.

The model is that of `test_ledger_machine.py`, with the rounds that admit jobs in the place of the scheduler.

An admission that gets no answer may be on the host already, and what is admitted stays when a limit is lowered. So it
is written again to the same version of its object until a newer version is seen, also after the limit was lowered: on
the host that looks like a write that was made before. `check_admitted` compares an admission with the limits
of its first write to a version, and lets it pass afterwards for this version only.
"""

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.properties.test_ledger_machine import JOB, MEMBERS, RUNS, counts, outcomes
from tests.unit.features.queues.test_queueledger import a_cluster

from federation.api import names
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.resources import Object
from federation.features.queues.rules.entries import to_entry
from federation.features.queues.rules.queuestate import QueueState
from federation.features.queues.rules.queuestatus import compute_statuses
from federation.planning.federatedobject.finished import run_of
from federation.planning.federatedobject.placements import (
    DEPARTED,
    departed_clusters,
    effective_placement,
    to_merge_patch,
    with_placement,
)
from federation.planning.rendering.admittednodes import is_released
from federation.planning.suspending import is_suspended
from federation.scheduling.jobqueues import ADMISSION, Admission, Phase, QueueIndex, admission_of, to_lost, to_refused
from federation.scheduling.names import KUEUE_QUEUE_NAME

QUEUES, QUEUED = ("ml", "ops"), ("j1", "j2", "j3")
START = datetime(2026, 1, 1, tzinfo=UTC)
queued, queues = st.sampled_from(QUEUED), st.sampled_from(QUEUES)


class QueueMachine(RuleBasedStateMachine):
    """Acts as users, the scheduler, the delivery and members; crashes at any point."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, Object] = {}
        self.seen: dict[str, Object] = {}
        self.running: dict[str, dict[str, int]] = {name: {} for name in MEMBERS}
        """Pods, by member and job."""
        self.lost: set[str] = set()
        self.specs: dict[str, Object] = {}
        self.decided: dict[tuple[str, int, str], dict[str, Object]] = {}
        """The limits when an admission of a version of an object was decided."""
        self.events: list[tuple[str, Object | None]] = []
        self.writes: list[tuple[str, Object, Object, bool]] = []
        """Name, base, patch, and whether it is a record of a round."""
        self.revision, self.now = 0, START
        self.restart()

    # -- the host

    def store(self, name: str, federated: Object | None) -> None:
        self.revision += 1
        if federated is None:
            self.stored.pop(name, None)
        else:
            federated["metadata"]["resourceVersion"] = str(self.revision)
            self.stored[name] = federated
        self.events.append((name, deepcopy(federated)))

    def change(self, name: str, labels: Object | None = None, **spec: Any) -> None:
        federated = deepcopy(self.stored[name])
        federated["spec"]["template"]["spec"].update(spec)
        federated["spec"]["template"]["metadata"]["labels"].update(labels or {})
        federated["metadata"]["generation"] += 1
        self.store(name, federated)

    # -- users

    @initialize(first=st.integers(1, 6), second=st.integers(0, 6))
    def begin(self, first: int, second: int) -> None:
        self.set_queue("ml", first, None, None, True)
        self.set_queue("ops", second, None, None, True)
        for name in QUEUED[:2]:
            self.create(name, "ml", 2, False, 5)
            self.see_all()
        self.start_all()

    @rule(queue=queues, cores=counts, lends=st.none() | counts, borrows=st.none() | counts, reclaims=st.booleans())
    def set_queue(self, queue: str, cores: int, lends: int | None, borrows: int | None, reclaims: bool) -> None:
        quota: Object = {"name": "cpu", "nominalQuota": str(cores)}
        quota |= {"lendingLimit": str(lends)} if lends is not None else {}
        quota |= {"borrowingLimit": str(borrows)} if borrows is not None else {}
        gives_way = {"reclaimWithinCohort": "Any" if reclaims else "Never", "evictionsPerHour": 1000}
        flavors = [{"name": "any", "resources": [quota]}]
        spec = {"flavors": flavors, "namespaceSelector": {}, "cohort": "lab", "preemption": gives_way, "lossesMax": 99}
        self.specs[queue] = {"metadata": {"name": queue}, "spec": spec}
        self.state.put_queue(queue, self.specs[queue])

    @rule(name=queued, queue=queues, count=counts, suspended=st.booleans(), age=st.integers(0, 9))
    def create(self, name: str, queue: str, count: int, suspended: bool, age: int) -> None:
        if name not in self.stored:
            pod = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
            labels = {KUEUE_QUEUE_NAME: queue}
            metadata = {"name": name, "namespace": "team"}
            template = {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {**metadata, "labels": labels},
                "spec": {"parallelism": count, "suspend": suspended, "template": {"spec": pod}},
            }
            owner = {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": name,
                "uid": f"u{self.revision}",
                "controller": True,
            }
            metadata |= {"ownerReferences": [owner], "creationTimestamp": f"2025-01-01T00:00:0{9 - age}Z"}
            self.store(name, {"metadata": {**metadata, "generation": 1}, "spec": {"template": template}})

    @rule(name=queued, count=counts)
    def resize(self, name: str, count: int) -> None:
        if name in self.stored:
            self.change(name, parallelism=count)

    @rule(name=queued, suspended=st.booleans())
    def suspend(self, name: str, suspended: bool) -> None:
        if name in self.stored:
            self.change(name, suspend=suspended)

    @rule(name=queued, queue=st.sampled_from(("ml", "ops", "")))
    def rename_queue(self, name: str, queue: str) -> None:
        """Name another queue, or none."""
        if name in self.stored:
            self.change(name, {KUEUE_QUEUE_NAME: queue})

    @rule(name=queued, is_orphaned=st.booleans())
    def delete(self, name: str, is_orphaned: bool) -> None:
        """Delete an object; one that is orphaned belongs to the member from then on, and a namesake is another one."""
        if name in self.stored and (is_orphaned or not self.lost):
            for running in self.running.values():
                running.pop(name, None)
            self.store(name, None)

    @rule(name=queued)
    def finish(self, name: str) -> None:
        """Let the pods of a job end."""
        for member in [each for each in MEMBERS if name in self.running[each] and each not in self.lost]:
            self.running[member][name] = -1
            self.deliver(name)

    @rule(member=st.sampled_from(MEMBERS), is_lost=st.booleans())
    def lose(self, member: str, is_lost: bool) -> None:
        (self.lost.add if is_lost else self.lost.discard)(member)
        self.state.put_cluster(member, self.cluster(member))

    def cluster(self, member: str) -> Object:
        cluster = a_cluster(member)
        if member in self.lost:
            cluster["status"]["conditions"][1]["status"] = "False"
        return cluster

    # -- rounds

    @rule()
    def run_round(self) -> None:
        """Decide, and begin to write what is decided."""
        if any(is_record for *_, is_record in self.writes):
            return  # a round ends when its writes have
        self.now += timedelta(seconds=1)
        for key, record in self.state.records(self.state.decide(self.now.timestamp()), self.now).items():
            base = self.seen[key]
            self.state.assume(key, record, revision_of(base))
            patch = {"metadata": {"annotations": dict(record.annotations)}}
            self.writes.append((key, base, patch, True))
            if self.is_current(key, base) and record.admission.phase is Phase.ADMITTED:
                self.check_admitted(key, record.admission)
                self.check_given_back(key, record.admission)

    def check_admitted(self, key: str, admission: Admission) -> None:
        """Check that an admission that grows is within the limits, with all that is admitted on the host or runs."""
        before = self.held(self.stored[key])
        decision = key, revision_of(self.stored[key]), ADMISSION.text(admission)
        limits = self.decided.setdefault(decision, dict(self.specs))
        if self.cores(admission) <= (self.cores(before) if before is not None else 0) or limits != self.specs:
            return  # or it was decided, and perhaps written to this version, before a limit was changed
        used = dict.fromkeys(QUEUES, 0)
        for name, federated in self.stored.items():
            held = self.held(federated)
            planned = [
                ADMISSION.of(apply_merge_patch(base, patch))
                for each, base, patch, is_record in self.writes
                if each == name and is_record and self.is_current(name, base)
            ]
            for each in [each for each in (held, *planned) if each is not None][-1:]:
                used[each.pays] += max(self.cores(each), self.cores(held) if held is not None else 0)
        taken, lendable = 0, 0
        for queue in QUEUES:
            quota = self.specs[queue]["spec"]["flavors"][0]["resources"][0]
            nominal = int(quota["nominalQuota"])
            kept = max(0, nominal - int(quota["lendingLimit"])) if "lendingLimit" in quota else 0
            if queue == admission.pays and "borrowingLimit" in quota:
                assert used[queue] <= nominal + int(quota["borrowingLimit"]), "more is borrowed than the limit"
            taken, lendable = taken + max(0, used[queue] - kept), lendable + nominal - kept
        assert taken <= lendable, "more is admitted than the cohort has"

    def check_given_back(self, key: str, admission: Admission) -> None:
        """Check that an object which stays admitted, with less than before, runs no more than that in its cluster."""
        before, placed = admission_of(self.stored[key]), effective_placement(self.stored[key])
        if before is not None and before.phase is Phase.ADMITTED:
            wanted = self.stored[key]["spec"]["template"]["spec"]["parallelism"]
            runs = sum(self.running[member].get(key, 0) for member in placed - self.lost)
            assert runs <= max(self.cores(admission), wanted), "what runs still is given back"

    def is_current(self, name: str, base: Object) -> bool:
        return name in self.stored and revision_of(self.stored[name]) == revision_of(base)

    def cores(self, admission: Admission) -> int:
        return admission.holds.get("any", {}).get("cpu", 0) // 1000

    def held(self, federated: Object) -> Admission | None:
        """Return the admission of an object that is admitted, or not gone yet from a cluster that answers."""
        admission, placed = admission_of(federated), effective_placement(federated)
        if admission is None or admission.phase in (Phase.REFUSED, Phase.LOST) or self.has_finished(federated):
            return None
        if admission.phase is Phase.ADMITTED and (placed or admission.queue == self.queue_of(federated)):
            return admission
        leaving = placed or departed_clusters(federated) - self.lost
        return admission if admission.phase is Phase.EVICTED and leaving else None

    def queue_of(self, federated: Object) -> str:
        return self.index.queue_of(federated, JOB)

    def has_finished(self, federated: Object) -> bool:
        placed = effective_placement(federated)
        entries = (federated.get("status") or {}).get("clusters") or ()
        ended = {each["cluster"] for each in entries if (each.get("finished") or {}).get("run") == run_of(federated)}
        return bool(placed) and placed <= ended

    @rule(found=st.lists(outcomes, max_size=4), is_seen=st.booleans())
    def work(self, found: list[str], is_seen: bool) -> None:
        """Run a round, with all events seen or not; some of its writes end."""
        if is_seen:
            self.see_all()
        self.run_round()
        for outcome in found[: len(self.writes)]:
            self.finish_write(outcome)

    @rule(name=queued, member=st.sampled_from(MEMBERS), is_delivered=st.booleans(), is_seen=st.booleans())
    def carry_out(self, name: str, member: str, is_delivered: bool, is_seen: bool) -> None:
        """Place an object, or take it out of its cluster, and deliver it."""
        if is_seen:
            self.see_all()
        self.schedule(name, member, False)
        self.finish_all()
        if is_delivered:
            self.deliver(name)

    @precondition(lambda self: self.writes)
    @rule(outcome=outcomes)
    def finish_write(self, outcome: str) -> None:
        name, base, patch, is_record = self.writes.pop(0)
        if not self.is_current(name, base):
            return  # a conflict: an event is under way
        if outcome == "refused":
            if is_record:
                self.state.revoke(name)
        elif outcome != "lost":
            federated = deepcopy(apply_merge_patch(self.stored[name], patch))
            federated["metadata"]["generation"] += "spec" in patch
            if federated != self.stored[name]:
                self.store(name, federated)
            if outcome == "made":
                self.seen[name] = self.stored[name]
                if is_record:
                    self.read(name, self.seen[name])

    # -- events

    @precondition(lambda self: self.events)
    @rule()
    def observe(self) -> None:
        name, federated = self.events.pop(0)
        if federated is None:
            self.seen.pop(name, None)
            self.state.remove(name, self.now.timestamp())
        elif revision_of(federated) >= revision_of(self.seen.get(name)):
            self.seen[name] = federated
            self.read(name, federated)

    @precondition(lambda self: self.events)
    @rule()
    def catch_up(self) -> None:
        self.see_all()

    def see_all(self) -> None:
        while self.events:
            self.observe()

    def read(self, name: str, federated: Object) -> None:
        queue = self.index.queue_of(federated, JOB)
        if queue:
            entry = to_entry(name, federated, JOB, queue)
            self.state.put(entry, self.now.timestamp(), revision_of(federated))
        else:
            self.state.remove(name, self.now.timestamp())

    @rule(is_written=st.booleans())
    def crash(self, is_written: bool) -> None:
        """Lose all memory; a write that was under way has reached the host, or not."""
        if is_written and self.writes:
            self.finish_write("unanswered")
        self.restart()

    def restart(self) -> None:
        self.writes, self.events, self.seen, self.decided = [], [], dict(self.stored), {}
        self.state, self.index = QueueState(), QueueIndex()
        self.state.put_flavor("any", {"metadata": {"name": "any"}, "spec": {}})
        self.state.put_namespace("team", {})
        for queue in QUEUES:
            self.index.put({"metadata": {"namespace": "team", "name": queue}})
            self.state.put_job_queue("team", queue, {"clusterJobQueue": queue})
        for queue, source in self.specs.items():
            self.state.put_queue(queue, source)
        for member in MEMBERS:
            self.state.put_cluster(member, self.cluster(member))
        for name, federated in self.seen.items():
            self.read(name, federated)

    # -- the scheduler

    @rule(name=queued, member=st.sampled_from(MEMBERS), refuses=st.booleans())
    def schedule(self, name: str, member: str, refuses: bool) -> None:
        """Begin to write where an object goes, or that it leaves."""
        if name not in self.seen or any(each == name and not is_record for each, *_, is_record in self.writes):
            return
        base = self.seen[name]
        admission, placed = admission_of(base), effective_placement(base)
        if admission is None:
            return
        lost = placed & self.lost
        if placed and (lost or admission.phase in (Phase.EVICTED, Phase.LOST)):
            record = to_lost(admission, lost, self.now) if lost and admission.phase is Phase.ADMITTED else admission
            self.write_placement(name, base, (), record)
        elif admission.phase is Phase.ADMITTED and not placed and admission.queue == self.queue_of(base):
            member = member if member in admission.clusters else min(admission.clusters, default="")
            if member and not refuses:
                self.write_placement(name, base, (member,), admission)
            elif refuses:
                self.write_placement(name, base, (), to_refused(admission, None, "no room", self.now))

    def write_placement(self, name: str, base: Object, clusters: tuple[str, ...], admission: Admission) -> None:
        part = {"metadata": {"annotations": ADMISSION.entry(admission)}}
        patch = to_merge_patch(base, with_placement(base, names.GLOBAL_SCHEDULER, clusters), part)
        assert patch is not None
        self.writes.append((name, base, patch, False))

    def start_all(self) -> None:
        self.run_round()
        self.finish_all()
        for name in list(self.stored):
            self.schedule(name, "a", False)
            self.finish_all()
            self.deliver(name)
        self.see_all()

    def finish_all(self) -> None:
        while self.writes:
            self.finish_write("made")

    # -- the delivery, and members

    @rule(name=queued)
    def deliver(self, name: str) -> None:
        if name not in self.stored:
            return
        federated = deepcopy(self.stored[name])
        placed, template = effective_placement(federated), federated["spec"]["template"]
        gone, entries = set(), []
        for member, running in self.running.items():
            status, finished = "OK", running.get(name) == -1
            if member in self.lost:
                status = "ClusterNotReady"
            elif member not in placed:
                running.pop(name, None)
                gone.add(member)
            elif not finished:
                is_idle = is_suspended(template) and not is_released(federated)
                running[name] = 0 if is_idle else template["spec"]["parallelism"]
            if member in placed or name in running:
                entry: Object = {"cluster": member, "status": status, "lastObservedGeneration": int(name in running)}
                if finished and member in placed:
                    entry["finished"] = {"run": run_of(federated), "succeeded": True}
                entries.append(entry)
        status_ = {"syncedGeneration": federated["metadata"]["generation"], "clusters": entries}
        left = departed_clusters(federated) - gone
        after = {**federated, "status": status_}
        if left != departed_clusters(federated):
            after = apply_merge_patch(after, {"metadata": {"annotations": DEPARTED.entry(frozenset(left))}})
        if after != self.stored[name]:
            self.store(name, deepcopy(after))

    # -- what holds

    @invariant()
    def the_ledger_counts_what_is_admitted(self) -> None:
        """No object on the host has an admission that the ledger does not count."""
        for name, federated in self.stored.items():
            if (held := self.held(federated)) is not None and self.cores(held):
                counted = self.state.job_of(name).holds if name in self.state.entries else None
                assert (counted or {}).get(("any", "cpu"), 0) >= 1000 * self.cores(held)

    def settle(self) -> None:
        for member in MEMBERS:
            self.lose(member, False)
        for _ in range(24):
            before = self.revision
            self.now += timedelta(seconds=400)  # no refusal holds a job any longer
            self.finish_all()
            self.see_all()
            self.run_round()
            self.finish_all()
            for name in list(self.stored):
                self.schedule(name, "a", False)
                self.finish_all()
                self.deliver(name)
                self.see_all()
            if self.revision == before:
                return
        raise AssertionError("it never comes to an end")

    @rule()
    def rest(self) -> None:
        """Without anything under way, each queue counts what runs, and nothing else."""
        self.settle()
        now = self.now.timestamp()
        statuses = compute_statuses(self.state, self.state.decide(now), now).cluster_queues
        running = dict.fromkeys(QUEUES, 0)
        for federated in self.stored.values():
            if (admission := admission_of(federated)) is not None and admission.pays:
                name = federated["metadata"]["name"]
                running[admission.pays] += sum(max(0, each.get(name, 0)) for each in self.running.values())
        assert {queue: int(statuses[queue]["usage"][0]["used"]) for queue in QUEUES} == running

    def teardown(self) -> None:
        self.rest()


TestQueueLedger = pytest.mark.timeout(max(300, 2 * RUNS))(QueueMachine.TestCase)
TestQueueLedger.settings = settings(
    max_examples=RUNS,
    stateful_step_count=30,
    report_multiple_bugs=False,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
