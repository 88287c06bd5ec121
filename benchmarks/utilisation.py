"""Compare strategies of replica division by the utilisation of every member and the number of pending pods.

`python benchmarks/utilisation.py [--seed N] [--events N] [--clusters 20]`. Twenty clusters of very different sizes get
one seeded stream of Deployments that are created, scaled and deleted in bursts; total demand oscillates between 70 % and
110 % of all cpu. The real engine decides from reports that members send every five seconds. In each member the
simulator's scheduler binds pods to nodes; pods that fit on no node stay pending until resources are freed.

A cluster's utilisation rate is the cpu requested by its bound pods divided by the cpu of its schedulable nodes. It is
averaged over one minute, while total demand has been at least 98 % of all cpu for 30 seconds. The lowest single sample,
which includes the gap after a large Deployment is deleted, is reported separately. Pods request at most one core and
nodes have at least 16, because larger pods cause fragmentation that no division over clusters can avoid.

- `static`: weights by the number of nodes, as an operator sets them once (KubeFed; the seeds' starting point)
- `kubeadmiral`: its formula, weights by free cpu (`capacity: Sums`, `division: KubeAdmiral`), and auto-migration after a minute
- `best`: this project's default, capacity by node (`capacity: Nodes`), assumed replicas, and the same auto-migration

The last line is one JSON object.
"""

import argparse
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from report import print_report

from federation.planning.clusters.clusterresources import Collector
from federation.scheduling.assumedreplicas import AssumeCache
from federation.scheduling.engine import Engine
from federation.scheduling.framework.migrations import AUTO_MIGRATION, AutoMigration
from federation.scheduling.framework.profile import DEFAULT_PROFILE, Profile, apply_profile
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.types import GroupVersionKind, Preferences, SchedulingMode, SchedulingUnit
from federation.scheduling.snapshot import ClusterCache
from federation.simulator.controllers.podplacement import SchedulerCache, compute_pod_request

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
REPORT_S = 5.0
SETTLED_S = 30.0
UNSCHEDULABLE_S = 60.0
WINDOW_S = 60.0
DEMAND_MIN, DEMAND_MAX, SAMPLED_FROM = 0.70, 1.10, 0.98
SWING_S = 900.0
NODE_SHAPES = ((16, 64), (16, 128), (32, 128), (48, 192), (64, 256))
POD_SHAPES = ((100, 256), (250, 512), (500, 1_024), (500, 2_048), (1_000, 2_048), (1_000, 3_072))
POD_WEIGHTS = (2, 4, 5, 2, 4, 1)
SIZES, SIZE_WEIGHTS = (1, 2, 3, 5, 8, 20, 60, 200), (3, 4, 6, 6, 5, 4, 3, 2)
RATE_GOAL = 0.95


class Member:
    """One cluster: the simulator's scheduler selects nodes, the product's collector computes reports."""

    def __init__(self, name: str, nodes: list[tuple[int, int]]) -> None:
        self.name = name
        self.scheduler_cache = SchedulerCache()
        self.collector = Collector()
        self.nodes = len(nodes)
        self.cpu_m = 0
        self.bound_m = 0
        self.bound: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        self.pending: dict[str, tuple[str, Mapping[str, Any], float]] = {}
        self._uids = 0
        for number, (cores, gib) in enumerate(nodes):
            allocatable = {"cpu": str(cores), "memory": f"{gib}Gi", "pods": "110"}
            node_name = f"{name}-{number}"
            labels = {"kubernetes.io/hostname": node_name, "zone": f"{number % 3}"}
            node = {"metadata": {"name": node_name, "labels": labels}, "status": {"allocatable": allocatable}}
            self.scheduler_cache.set_node(node)
            self.collector.set_node(node_name, node)
            self.cpu_m += cores * 1_000

    def pending_too_long(self, now_s: float) -> set[str]:
        """Return the workloads with pods pending for longer than auto-migration's threshold."""
        return {key for key, _, since_s in self.pending.values() if now_s - since_s >= UNSCHEDULABLE_S}

    def set_replicas(self, key: str, wanted: int, spec: Mapping[str, Any], now_s: float) -> None:
        """Create or delete pods as the workload's controllers would, pending ones first."""
        waiting = [uid for uid, (owner, _, _) in self.pending.items() if owner == key]
        running = self.bound.setdefault(key, [])
        for _ in range(wanted - len(waiting) - len(running)):
            self._uids += 1
            self.pending[f"{self.name}/{self._uids}"] = (key, spec, now_s)
        surplus = len(waiting) + len(running) - wanted
        for uid in waiting[: max(0, surplus)]:
            del self.pending[uid]
            self.collector.set_pod(uid, None)
        for _ in range(max(0, surplus - len(waiting))):
            uid, spec_ = running.pop()
            self.scheduler_cache.remove_pod(uid)
            self.collector.set_pod(uid, None)
            self.bound_m -= compute_pod_request(spec_)["cpu"]
        if not running:
            del self.bound[key]
        self._bind()

    def _bind(self) -> None:
        unschedulable: set[int] = set()
        for uid, (key, spec, _) in tuple(self.pending.items()):
            request = compute_pod_request(spec)
            node = "" if id(spec) in unschedulable else self.scheduler_cache.select_node(spec, request)[0]
            if not node:
                unschedulable.add(id(spec))
                self.collector.set_pod(uid, {"spec": spec})
                continue
            self.scheduler_cache.add_pod(uid, node, request)
            self.collector.set_pod(uid, {"spec": {**spec, "nodeName": node}})
            self.bound_m += request["cpu"]
            self.bound.setdefault(key, []).append((uid, spec))
            del self.pending[uid]

    def report(self) -> dict[str, Any]:
        """Return its FederatedCluster as the cluster controller would write it."""
        return {
            "metadata": {"name": self.name},
            "status": {
                "conditions": [{"type": "Joined", "status": "True"}, {"type": "Ready", "status": "True"}],
                "apiResourceTypes": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
                "resources": self.collector.resources().to_status(),
            },
        }


@dataclass
class Event:
    """Sets a Deployment's replicas at a time; 0 deletes it."""

    at_s: float
    key: str
    replicas: int
    shape: int


def stream(events: int, cpu_m: int, rng: random.Random) -> Iterator[Event]:
    """Yield a stream whose demand oscillates between the bounds, regardless of the pods' state."""
    held: dict[str, tuple[int, int]] = {}
    demand, now_s, number = 0, 0.0, 0
    for _ in range(events):
        now_s += rng.expovariate(5.0) if rng.random() < 0.8 else rng.expovariate(0.4)
        phase = (now_s % SWING_S) / SWING_S
        share = DEMAND_MIN + (DEMAND_MAX - DEMAND_MIN) * (1 - abs(2 * phase - 1))
        is_short = demand < share * cpu_m
        if held and rng.random() < (0.45 if is_short else 0.97):
            key = rng.choice(list(held))
            replicas, shape = held[key]
            if is_short:
                wanted = replicas + max(1, int(replicas * rng.uniform(0.1, 1.0)))
            else:
                wanted = 0 if rng.random() < 0.4 else int(replicas * rng.uniform(0.3, 0.9))
        else:
            number += 1
            key, replicas = f"app-{number}", 0
            shape = rng.choices(range(len(POD_SHAPES)), POD_WEIGHTS)[0]
            wanted = rng.choices(SIZES, SIZE_WEIGHTS)[0]
        demand += (wanted - replicas) * POD_SHAPES[shape][0]
        if wanted:
            held[key] = (wanted, shape)
        else:
            held.pop(key, None)
        yield Event(now_s, key, wanted, shape)


@dataclass
class Outcome:
    """The result of one strategy: each cluster's rate per sample and mean per minute, and pending pods."""

    rates: dict[str, list[float]] = field(default_factory=dict)
    means: dict[str, list[float]] = field(default_factory=dict)
    pending: list[int] = field(default_factory=list)
    pending_with_room: list[int] = field(default_factory=list)
    cpu_s: float = 0.0
    decisions: int = 0
    _closed: int = 0

    def discard_window(self) -> None:
        """Discard the samples of an incomplete minute."""
        self._closed = len(self.pending)

    def close_window(self) -> None:
        """Record the mean of all samples since the previous mean."""
        for name, rates in self.rates.items():
            self.means[name].append(_mean(rates[self._closed :]))
        self.discard_window()


class Strategy:
    """A profile, and whether the policy has static weights, replicas migrate, and decisions see assumed replicas."""

    def __init__(
        self, name: str, profile: Profile, *, is_static: bool = False, migrates: bool = False, reserves: bool = False
    ) -> None:
        self.name = name
        self.profile = profile
        self.is_static = is_static
        self.migrates = migrates
        self.reserves = reserves


def strategies() -> list[Strategy]:
    sums = apply_profile(
        DEFAULT_PROFILE,
        {
            "metadata": {"name": "kubeadmiral"},
            "spec": {
                "plugins": {"filter": {"disabled": [{"name": "ClusterNodesFit"}]}},
                "pluginConfig": [
                    {"name": "ClusterCapacityWeight", "args": {"capacity": "Sums", "division": "KubeAdmiral"}}
                ],
            },
        },
    )
    return [
        Strategy("static", sums, is_static=True),
        Strategy("kubeadmiral", sums, migrates=True),
        Strategy("best", DEFAULT_PROFILE, migrates=True, reserves=True),
    ]


class Federation:
    """The members, their last reports, and the placements of all Deployments."""

    def __init__(self, strategy: Strategy, fleet: Mapping[str, list[tuple[int, int]]]) -> None:
        self.strategy = strategy
        self.members = {name: Member(name, nodes) for name, nodes in fleet.items()}
        self.cpu_m = sum(member.cpu_m for member in self.members.values())
        self.wanted_m = 0
        self.decisions = 0
        self._engine = Engine(load_plugins())
        self._clusters = ClusterCache()
        self._assume_cache = AssumeCache()
        self._reports = {name: REPORT_S * number / len(fleet) for number, name in enumerate(fleet)}
        self._specs = [_spec(cpu_m, mib) for cpu_m, mib in POD_SHAPES]
        self._weights = {name: member.nodes for name, member in self.members.items()} if strategy.is_static else {}
        self._current: dict[str, dict[str, int]] = {}
        self._wanted: dict[str, tuple[int, int]] = {}
        self._migrate_s = 0.0

    def process_reports(self, now_s: float) -> None:
        """Process the reports of all members that are due."""
        for name, due_s in self._reports.items():
            if due_s > now_s:
                continue
            self._reports[name] = now_s - (now_s - due_s) % REPORT_S + REPORT_S
            known = self._clusters.snapshot().by_name.get(name)
            self._clusters.update(self.members[name].report())
            if known is not None:
                available = self._clusters.snapshot().by_name[name].available
                self._assume_cache.confirm(name, known.available, available)

    def scale(self, event: Event) -> None:
        """Create, scale or delete a Deployment."""
        replicas, shape = self._wanted.pop(event.key, (0, event.shape))
        self.wanted_m += (event.replicas - replicas) * POD_SHAPES[shape][0]
        if event.replicas:
            self._wanted[event.key] = (event.replicas, shape)
            self._place(event.key, {}, event.at_s)
        else:
            self._assume_cache.forget(event.key)
            for name in self._current.pop(event.key):
                self.members[name].set_replicas(event.key, 0, self._specs[shape], event.at_s)

    def migrate(self, now_s: float) -> None:
        """Reschedule Deployments with pods that have been unschedulable for a minute, as auto-migration does."""
        if not self.strategy.migrates or now_s < self._migrate_s:
            return
        self._migrate_s = now_s + REPORT_S
        stuck: dict[str, dict[str, int]] = {}
        for name, member in self.members.items():
            for key in member.pending_too_long(now_s):
                stuck.setdefault(key, {})[name] = len(member.bound.get(key, ()))
        for key, estimated in stuck.items():
            self._place(key, estimated, now_s)

    def _place(self, key: str, estimated: Mapping[str, int], now_s: float) -> None:
        replicas, shape = self._wanted[key]
        before = self._current.get(key, {})
        cpu_m, mib = POD_SHAPES[shape]
        unit = SchedulingUnit(
            gvk=DEPLOYMENT,
            namespace="default",
            name=key,
            mode=SchedulingMode.DIVIDE,
            desired_replicas=replicas,
            request={"cpu": cpu_m, "memory": mib << 20},
            current=before,
            preferences=Preferences(weights=self._weights),
            shapes={AUTO_MIGRATION.name: AutoMigration(estimated_capacity=estimated)} if estimated else {},
            assumed=self._assume_cache.snapshot(now_s) if self.strategy.reserves else {},
        )
        decision = self._engine.decide(unit, self._clusters.snapshot(), self.strategy.profile, now=NOW)
        assert decision.is_success, decision.reason
        self.decisions += 1
        after = {name: count for name, count in decision.placements.items() if count}
        self._assume_cache.assume(key, unit.shape.request, before, after, now_s)
        self._current[key] = after
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                self.members[name].set_replicas(key, after.get(name, 0), self._specs[shape], now_s)


def run(strategy: Strategy, fleet: Mapping[str, list[tuple[int, int]]], seed: int, events: int) -> Outcome:
    """Run the stream against new clusters."""
    federation = Federation(strategy, fleet)
    outcome = Outcome({name: [] for name in fleet}, {name: [] for name in fleet})
    full_since_s: float | None = None
    started = time.process_time()
    for event in stream(events, federation.cpu_m, random.Random(seed)):
        federation.process_reports(event.at_s)
        federation.migrate(event.at_s)
        federation.scale(event)
        if federation.wanted_m < SAMPLED_FROM * federation.cpu_m:
            full_since_s = None
            outcome.discard_window()
            continue
        full_since_s = event.at_s + SETTLED_S if full_since_s is None else full_since_s
        if event.at_s >= full_since_s:
            _sample(outcome, federation.members)
        if event.at_s >= full_since_s + WINDOW_S:
            outcome.close_window()
            full_since_s = event.at_s
    outcome.cpu_s, outcome.decisions = time.process_time() - started, federation.decisions
    return outcome


def _sample(outcome: Outcome, members: Mapping[str, Member]) -> None:
    for name, member in members.items():
        outcome.rates[name].append(member.bound_m / member.cpu_m)
    outcome.pending.append(sum(len(member.pending) for member in members.values()))
    stranded = 0
    for member in members.values():
        for spec in {id(spec): spec for _, spec, _ in member.pending.values()}.values():
            request = compute_pod_request(spec)
            if any(
                other.scheduler_cache.select_node(spec, request)[0] for other in members.values() if other is not member
            ):
                stranded += sum(1 for _, held, _ in member.pending.values() if held is spec)
    outcome.pending_with_room.append(stranded)


def _spec(cpu_m: int, mib: int) -> dict[str, Any]:
    return {"containers": [{"name": "app", "resources": {"requests": {"cpu": f"{cpu_m}m", "memory": f"{mib}Mi"}}}]}


def a_fleet(count: int, rng: random.Random) -> dict[str, list[tuple[int, int]]]:
    """Return clusters of 4 to 48 nodes; most have nodes of one shape, some of two."""
    fleet = {}
    for number in range(count):
        shapes = rng.sample(NODE_SHAPES, rng.choice((1, 1, 2)))
        fleet[f"cluster-{number + 1:02d}"] = [rng.choice(shapes) for _ in range(rng.choice((4, 6, 8, 12, 20, 32, 48)))]
    return fleet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=3_000)
    parser.add_argument("--clusters", type=int, default=20)
    options = parser.parse_args()
    fleet = a_fleet(options.clusters, random.Random(options.seed))
    results = {s.name: run(s, fleet, options.seed, options.events) for s in strategies()}
    if not all(any(outcome.means.values()) for outcome in results.values()):
        raise SystemExit(f"no sample: {options.events} events do not fill the clusters; use more --events")
    _print_table(fleet, results)
    line: dict[str, Any] = {"minutes": len(next(iter(results["best"].means.values())))}
    for name, outcome in results.items():
        line[f"min_rate_{name}"] = round(min(map(min, outcome.means.values())), 4)
        line[f"min_moment_{name}"] = round(min(map(min, outcome.rates.values())), 4)
        line[f"mean_pending_{name}"] = round(_mean(outcome.pending), 1)
        line[f"mean_stranded_{name}"] = round(_mean(outcome.pending_with_room), 1)
    shape = {"seed": options.seed, "events": options.events, "clusters": options.clusters}
    print_report("utilisation", shape, line)


def _print_table(fleet: Mapping[str, list[tuple[int, int]]], results: Mapping[str, Outcome]) -> None:
    names = list(results)
    print("deployment rate in % (lowest, mean) while at least 98 % of all cpu is wanted")
    print(f"{'cluster':<12}{'nodes':>6}{'cores':>7}" + "".join(f"{name:>18}" for name in names))
    for cluster, nodes in fleet.items():
        rates = (results[name].means[cluster] for name in names)
        cells = "".join(f"{f'{min(rate) * 100:.1f}  {_mean(rate) * 100:.1f}':>18}" for rate in rates)
        print(f"{cluster:<12}{len(nodes):>6}{sum(cores for cores, _ in nodes):>7}{cells}")
    rows: dict[str, list[str]] = {
        "lowest": [f"{min(map(min, results[name].means.values())) * 100:.1f}" for name in names],
        "lowest moment": [f"{min(map(min, results[name].rates.values())) * 100:.1f}" for name in names],
        "pending pods, mean (most)": [f"{_mean(results[n].pending):.0f} ({max(results[n].pending)})" for n in names],
        "of them with room elsewhere": [f"{_mean(results[name].pending_with_room):.0f}" for name in names],
        "decisions": [str(results[name].decisions) for name in names],
        "CPU seconds": [f"{results[name].cpu_s:.1f}" for name in names],
    }
    for title, row in rows.items():
        print(f"{title:<28}"[:28].ljust(25) + "".join(f"{cell:>18}" for cell in row))


def _mean(values: list[int] | list[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
