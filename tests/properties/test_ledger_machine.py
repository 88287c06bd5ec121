"""The ledger of quotas under any interleaving: objects, quotas, writes, events, deliveries, lost clusters and crashes.

`LEDGER_RUNS=2000` enlarges it (docs/testing.md). The model has the host's objects, the versions of them that the control plane has seen, what
runs in each member, the control plane's memory (`Quotas`), and writes and events that are under way. A write is made, refused, or gets no
answer, whether it was made or not. Product code plans claims, keeps the ledger and permits deliveries.
"""

import os
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.tenants import admitted_by_hand

from federation.api import names
from federation.api.federatedtype import FederatedType, PathDefinition
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.resources import JOBS, Object
from federation.planning.accounts.claim import CLAIM, Use, find_unpaid
from federation.planning.rendering.memberobject import Renderer
from federation.scheduling.quotas import Quotas, use_in

JOB = FederatedType("jobs.batch", JOBS, (), PathDefinition(replicas_spec=("spec", "parallelism")))
MEMBERS = ("a", "b", "c")
NAMES = ("j1", "j2")
RUNS = int(os.environ.get("LEDGER_RUNS", "20"))
counts, cpus = st.integers(0, 5), st.sampled_from(("1", "2"))
CONTAINER = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
placements = st.sets(st.sampled_from(MEMBERS), min_size=1, max_size=2)


jobs = st.sampled_from(NAMES)
outcomes = st.sampled_from(("made", "made", "refused", "unanswered", "lost"))


def placement_in(clusters: set[str]) -> Object:
    placement = [{"cluster": each} for each in sorted(clusters)]
    return {"placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": placement}]}


def cores(uses: Mapping[str, Use]) -> int:
    return sum(use.amounts().get("cpu", 0) for use in uses.values())


class LedgerMachine(RuleBasedStateMachine):
    """Acts as users, the scheduler, the delivery and members; crashes at any point."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, Object] = {}
        self.seen: dict[str, Object] = {}
        """What the scheduler knows: the newest event of each object, or answer to a write."""
        self.members: dict[str, dict[str, Use]] = {name: {} for name in MEMBERS}
        self.lost: set[str] = set()
        self.limits: dict[str, int] = {}
        self.earlier: set[str] = set()
        """Objects that were there when the first quota came, until they have a claim: what runs of them stays."""
        self.events: list[tuple[str, Object | None]] = []
        self.writes: list[tuple[str, Object, Object]] = []
        self.revision = 0
        self.quotas = Quotas()

    # -- the host

    def store(self, name: str, federated: Object | None) -> None:
        self.revision += 1
        if federated is None:
            self.stored.pop(name, None)
            self.earlier.discard(name)
        else:
            if CLAIM.of(federated) is not None:
                self.earlier.discard(name)
            federated["metadata"]["resourceVersion"] = str(self.revision)
            self.stored[name] = federated
        self.events.append((name, deepcopy(federated)))

    def change(self, name: str, **spec: Any) -> None:
        federated = deepcopy(self.stored[name])
        federated["spec"]["template"]["spec"].update(spec)
        federated["metadata"]["generation"] += 1
        self.store(name, federated)

    # -- users

    @initialize(limit=st.integers(2, 8))
    def begin(self, limit: int) -> None:
        """Begin with a quota, and with jobs that run."""
        self.set_quota("q1", limit)
        for name in NAMES:
            self.create(name, 2, "1", False)
            self.decide_and_deliver(name, {"a"}, 9, True)

    @rule(name=jobs, count=counts, cpu=cpus, suspended=st.booleans())
    def create(self, name: str, count: int, cpu: str, suspended: bool) -> None:
        if name not in self.stored:
            container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
            spec = {"parallelism": count, "suspend": suspended, "template": {"spec": {"containers": [container]}}}
            metadata = {"name": name, "namespace": "team"}
            template = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
            self.store(name, {"metadata": {**metadata, "generation": 1}, "spec": {"template": template}})

    @rule(name=jobs, clusters=placements, count=counts, has_pods=st.booleans())
    def write_by_hand(self, name: str, clusters: set[str], count: int, has_pods: bool) -> None:
        """Create an object with a placement, or give one a placement and other pods, without the scheduler."""
        old = self.stored.get(name)
        if old is None:
            self.create(name, count, "1", False)
        federated = deepcopy(self.stored[name])
        federated["spec"] |= placement_in(clusters)
        spec = federated["spec"]["template"]["spec"]
        spec["parallelism"] = count
        spec["template"] = {"spec": {"containers": [CONTAINER]}} if has_pods else {}
        federated["metadata"]["generation"] += old is not None
        if old is None:
            self.events.pop()
        self.store(name, admitted_by_hand(federated, old))

    @rule(name=jobs, count=counts)
    def resize(self, name: str, count: int) -> None:
        if name in self.stored:
            self.change(name, parallelism=count)

    @rule(name=jobs, cpu=cpus)
    def raise_requests(self, name: str, cpu: str) -> None:
        if name in self.stored:
            container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
            self.change(name, template={"spec": {"containers": [container]}})

    @rule(name=jobs, is_suspended=st.booleans())
    def suspend(self, name: str, is_suspended: bool) -> None:
        if name in self.stored:
            self.change(name, suspend=is_suspended)

    @rule(name=jobs, member=st.sampled_from(MEMBERS), count=counts)
    def override(self, name: str, member: str, count: int) -> None:
        if name in self.stored:
            federated = deepcopy(self.stored[name])
            patch = {"op": "replace", "path": "/spec/parallelism", "value": count}
            own = [{"cluster": member, "patches": [patch]}]
            federated["spec"]["overrides"] = [{"controller": names.OVERRIDE_CONTROLLER, "clusters": own}]
            federated["metadata"]["generation"] += 1
            self.store(name, federated)

    @rule(name=jobs, is_orphaned=st.booleans())
    def delete(self, name: str, is_orphaned: bool) -> None:
        """Delete an object; one that is orphaned belongs to the member from then on, and a namesake is another one."""
        if name in self.stored and (is_orphaned or not self.lost):
            for running in self.members.values():
                running.pop(name, None)
            self.store(name, None)

    @rule(quota=st.sampled_from(("q1", "q2")), limit=st.integers(0, 8))
    def set_quota(self, quota: str, limit: int) -> None:
        if not self.limits:
            self.earlier = set(self.stored)  # a write that removes a claim may be under way
        self.limits[quota] = limit
        self.put_quotas()

    @rule(quota=st.sampled_from(("q1", "q2")))
    def remove_quota(self, quota: str) -> None:
        self.limits.pop(quota, None)
        self.quotas.remove("team", quota)

    def put_quotas(self) -> None:
        for name, limit in self.limits.items():
            metadata = {"name": name, "namespace": "team"}
            if self.quotas.put({"metadata": metadata, "spec": {"overall": {"cpu": str(limit)}}}):
                self.read_all()

    def read_all(self) -> None:
        for name, federated in self.seen.items():
            self.quotas.observe(name, federated, JOB)

    # -- the scheduler

    @rule(name=jobs, clusters=placements)
    def place(self, name: str, clusters: set[str]) -> None:
        """Begin to write a decision, or the present placement if there is none to write."""
        if self.may_decide(name):
            self.plan(name, {"spec": placement_in(clusters)})

    @rule(name=jobs, clusters=placements, events=st.integers(0, 9), is_delivered=st.booleans())
    def decide_and_deliver(self, name: str, clusters: set[str], events: int, is_delivered: bool) -> None:
        """Place an object and deliver it, with some of the events seen."""
        self.place(name, clusters)
        while self.writes:
            self.finish_write("made")
        if is_delivered:
            self.deliver(name)
        for _ in range(min(events, len(self.events))):
            self.observe()

    @rule(name=jobs)
    def look_again(self, name: str) -> None:
        if self.may_decide(name):
            self.plan(name, None)

    def may_decide(self, name: str) -> bool:
        """Return whether the scheduler knows this object, and does not write it already."""
        return name in self.seen and all(each != name for each, _, _ in self.writes)

    def plan(self, name: str, patch: Object | None) -> None:
        base = self.seen[name]
        held = CLAIM.of(base)
        patch = self.quotas.with_claim(name, base, JOB, patch, {})
        if patch is None:
            return
        if self.quotas.withheld("team", name) and patch.get("spec"):
            self.quotas.revoke("team", name)
            self.plan(name, None)  # the engine keeps the placement
            return
        self.writes.append((name, base, patch))
        claim = CLAIM.of(apply_merge_patch(base, patch))
        if claim is None or not self.limits or (held is None and name in self.earlier):
            return
        if (
            name not in self.stored
            or self.stored[name]["metadata"]["resourceVersion"] != base["metadata"]["resourceVersion"]
        ):
            return  # this write ends with a conflict
        if cores(claim.may) > max(cores(held.may) if held else 0, (held.pays if held else {}).get("cpu", 0)):
            others = sum(self.use(each) for each in self.stored if each != name)
            assert others + cores(claim.may) <= 1000 * min(self.limits.values()), "more is admitted than the limit"

    def use(self, name: str) -> int:
        """Return what an object may run, or runs; the two copies of one that moves count once."""
        placed = {
            each["cluster"] for entry in self.stored[name]["spec"].get("placements", ()) for each in entry["placement"]
        }
        here = sum(
            running[name].amounts().get("cpu", 0)
            for m, running in self.members.items()
            if name in running and m in placed
        )
        left = sum(
            running[name].amounts().get("cpu", 0)
            for m, running in self.members.items()
            if name in running and m not in placed
        )
        claim = CLAIM.of(self.stored[name])
        version = self.stored[name]["metadata"]["resourceVersion"]  # another one lets a write end with a conflict
        planned = [
            CLAIM.of(apply_merge_patch(base, patch))
            for each, base, patch in self.writes
            if each == name and base["metadata"]["resourceVersion"] == version
        ]
        return max(here, left, *(cores(each.may) for each in (claim, *planned) if each is not None), 0)

    @precondition(lambda self: self.writes)
    @rule(outcome=outcomes)
    def finish_write(self, outcome: str) -> None:
        name, base, patch = self.writes.pop(0)
        stored = self.stored.get(name)
        if stored is None or stored["metadata"]["resourceVersion"] != base["metadata"]["resourceVersion"]:
            return  # a conflict: an event is under way
        if outcome == "refused":
            self.quotas.revoke("team", name)
        elif outcome != "lost":
            federated = deepcopy(apply_merge_patch(stored, patch))
            federated["metadata"]["generation"] += "spec" in patch
            if federated != stored:
                self.store(name, federated)
            if outcome == "made":
                self.seen[name] = self.stored[name]
                if federated == stored:
                    self.quotas.settle("team", name, base)

    @precondition(lambda self: self.events)
    @rule()
    def observe(self) -> None:
        name, federated = self.events.pop(0)
        if federated is None:
            self.seen.pop(name, None)
            self.quotas.forget("team", name)
            return
        if revision_of(federated) >= revision_of(self.seen.get(name)):
            self.seen[name] = federated
        self.quotas.observe(name, federated, JOB)

    @precondition(lambda self: self.events)
    @rule()
    def catch_up(self) -> None:
        while self.events:
            self.observe()

    @rule(is_written=st.booleans())
    def crash(self, is_written: bool) -> None:
        """Lose all memory; a write that was under way has reached the host, or not."""
        if is_written and self.writes:
            self.finish_write("unanswered")
        self.writes, self.events, self.quotas, self.seen = [], [], Quotas(), dict(self.stored)
        self.put_quotas()
        self.read_all()

    # -- the delivery, and members

    @rule(name=jobs)
    def deliver(self, name: str) -> None:
        if name not in self.stored:
            return
        federated = deepcopy(self.stored[name])
        placed = {each["cluster"] for entry in federated["spec"].get("placements", ()) for each in entry["placement"]}
        entries, renderer = [], Renderer(federated, JOB)
        for member, running in self.members.items():
            status = "OK"
            if member in self.lost:
                status = "ClusterNotReady"
            elif member in placed:
                use = use_in(renderer.render(member).object, federated, JOB)
                if use is None:
                    running.pop(name, None)
                elif find_unpaid(federated, member, use):
                    status = "QuotaExceeded"
                else:
                    running[name] = use
            else:
                running.pop(name, None)
            if member in placed or name in running:
                entries.append({"cluster": member, "status": status, "lastObservedGeneration": int(name in running)})
        status = {"syncedGeneration": federated["metadata"]["generation"], "clusters": entries}
        if federated.get("status") != status:
            self.store(name, {**federated, "status": status})

    @rule(member=st.sampled_from(MEMBERS), is_lost=st.booleans())
    def lose(self, member: str, is_lost: bool) -> None:
        (self.lost.add if is_lost else self.lost.discard)(member)

    # -- what holds

    @invariant()
    def the_ledger_counts_what_runs(self) -> None:
        """No object runs more, or may run more, than the ledger counts for it."""
        if self.limits:
            used, _ = self.quotas.used("team", min(self.limits), {})
            assert used["cpu"] >= sum(self.use(each) for each in self.stored if CLAIM.of(self.stored[each]))

    def settle(self) -> None:
        self.lost.clear()
        for _ in range(8):
            before = self.revision
            while self.writes:
                self.finish_write("made")
            while self.events:
                self.observe()
            for name in list(self.stored):
                self.plan(name, None)
                while self.writes:
                    self.finish_write("made")
                self.deliver(name)
                while self.events:
                    self.observe()
            while self.events:
                self.observe()
            if self.revision == before:
                return
        raise AssertionError("it never comes to an end")

    @rule()
    def rest(self) -> None:
        """Without anything under way, the ledger counts what runs, and nothing else."""
        self.settle()
        if self.limits:
            used, by_cluster = self.quotas.used("team", min(self.limits), {})
            running = {member: cores(uses) for member, uses in self.members.items()}
            if any(self.quotas.withheld("team", name) for name in self.stored):
                assert used["cpu"] >= sum(running.values())  # what is withheld may keep what was given up beside it
                return
            assert used["cpu"] == sum(running.values())
            assert {member: amounts["cpu"] for member, amounts in by_cluster.items()} == {
                member: amount for member, amount in running.items() if amount
            }

    def teardown(self) -> None:
        self.rest()


TestLedger = pytest.mark.timeout(max(300, 2 * RUNS))(LedgerMachine.TestCase)
TestLedger.settings = settings(
    max_examples=RUNS,
    stateful_step_count=30,
    report_multiple_bugs=False,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
