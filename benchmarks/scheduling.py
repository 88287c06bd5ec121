"""Measure scheduling decisions per second on one core: default profile, Divide with dynamic weights, explanations.

`python benchmarks/scheduling.py [--clusters 10,100,500,1000] [--decisions N] [--seed N] [--profile FILE] [--spread]`.
A decision is everything that the schedule controller computes for one federated object: assumed replicas of earlier
decisions, the trigger text and its assessment, the scheduling unit from manifest and policy, Filter → Score → Select →
Replicas, the patch, its own assumed replicas, the event text, and the explanation as JSON for the journal. No I/O. Pod
shapes, replicas and policies are drawn from a seed; half of the objects are new, the others are placed and are scaled.
The clock advances by 1 ms per decision.

- `warm`: members report as in production (each every 10 s, at 1,000 decisions per second), so results that several
  objects share are computed once between two reports.
- `cold`: every member has reported since the previous decision, so cached results about clusters are invalid.

The last line is one JSON object. Figures without a suffix are `warm`; `algorithm_ms` is the engine only, `report_ms` the
cost of processing a member's report.
"""

import argparse
import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import orjson
from goals import DECISION_GOALS_MS
from report import print_report

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.apimachinery.memory import tune_collector
from federation.features.catalogue import decision_chain
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.status.schedulingsummary import describe_move
from federation.scheduling.answers import Due
from federation.scheduling.assessment import assess
from federation.scheduling.assumedreplicas import AssumeCache
from federation.scheduling.attempt import SchedulingAttempt, assume, start_attempt
from federation.scheduling.attemptpatches import placement_patch
from federation.scheduling.decisioninputs import inputs_of
from federation.scheduling.engine import Decision, Engine
from federation.scheduling.explain import to_json
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.types import ClusterChange
from federation.scheduling.occasions import Occasion
from federation.scheduling.policyspec import compile_policy
from federation.scheduling.snapshot import to_resources
from federation.scheduling.world import World

Clock = Callable[[], float]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICIES, SHAPES = 8, 12
BUCKETS_MAX = 32
WARM_UP = 500
SIZES = (1, 2, 3, 5, 10, 30, 100, 400)
REPORT_PERIOD_S, DECISIONS_PER_S = 10, 1_000
GOALS = {
    f"latency_p50_ms_{size}{suffix}": ("<=", goal)
    for size, goals in DECISION_GOALS_MS.items()
    for suffix, goal in zip(("", "_cold"), goals, strict=True)
}
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}
SERVED = (("apps", "v1", "Deployment"), ("", "v1", "ConfigMap"), ("", "v1", "Service"), ("batch", "v1", "Job"))
ZONES = ("a", "b", "c")
REGIONS = 5
SPREAD = [
    {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": action}
    for key, action in (("spread-region", "DoNotSchedule"), ("zone", "ScheduleAnyway"))
]


@dataclass(frozen=True)
class Result:
    """Sorted seconds per decision, in the engine alone, and per report."""

    decisions_s: list[float]
    engine_s: list[float]
    reports_s: list[float]

    def per_s(self) -> float:
        return len(self.decisions_s) / sum(self.decisions_s)

    def percentile_ms(self, share: float) -> float:
        ordered = sorted(self.decisions_s)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1_000

    def engine_ms(self) -> float:
        return sum(self.engine_s) / len(self.engine_s) * 1_000

    def report_ms(self) -> float:
        return sum(self.reports_s) / max(1, len(self.reports_s)) * 1_000


def a_cluster(number: int, rng: random.Random) -> dict[str, Any]:
    """Return a FederatedCluster with 5 to 500 nodes, some of it in use."""
    nodes = rng.choice((5, 20, 50, 100, 500))
    return {
        "metadata": {
            "name": f"cluster-{number:04d}",
            "labels": {
                "region": f"r{number % 7}",
                "spread-region": f"s{number % REGIONS}",
                "zone": ZONES[number % 3],
                "tier": rng.choice(("gold", "silver")),
            },
        },
        "spec": {"taints": [{"key": "spot", "effect": "PreferNoSchedule"}] if number % 10 == 0 else []},
        "status": {
            "conditions": [{"type": "Joined", "status": "True"}, {"type": "Ready", "status": "True"}],
            "apiResourceTypes": [{"group": g, "version": v, "kind": k} for g, v, k in SERVED],
            "resources": resources_of(nodes, rng),
        },
    }


def resources_of(nodes: int, rng: random.Random) -> dict[str, Any]:
    """Return the reported resources of a member with `nodes` nodes of 16 cores: sums, and free resources by node."""
    buckets = [nodes // BUCKETS_MAX + (at < nodes % BUCKETS_MAX) for at in range(min(nodes, BUCKETS_MAX))]
    free = [(count, rng.randrange(0, 16_000, 250), rng.randrange(0, 64), rng.randrange(10, 100)) for count in buckets]
    return {
        "allocatable": amounts(nodes * 16_000, nodes * 64, nodes * 110),
        "available": amounts(*(sum(entry[0] * entry[at] for entry in free) for at in (1, 2, 3))),
        "nodeClasses": [
            {
                "nodes": nodes,
                "labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
                "largest": amounts(16_000, 64, 110),
                "free": [{"nodes": count, "resources": amounts(*rest)} for count, *rest in free],
            }
        ],
    }


def amounts(millicores: int, gibibytes: int, pods: int) -> dict[str, str]:
    return {"cpu": f"{millicores}m", "memory": f"{gibibytes}Gi", "pods": str(pods)}


def a_policy(number: int, profile: str, *, is_spread: bool) -> dict[str, Any]:
    """Return a typical policy that divides replicas by free capacity."""
    spec: dict[str, Any] = {
        "schedulingMode": "Divide",
        "schedulingProfile": profile,
        "reschedulePolicy": {"rescheduleWhen": {"policyContentChanged": True}},
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": f"team-{number}"}] if number % 2 else [],
    }
    if is_spread:
        spec["topologySpread"] = SPREAD
    if number % 3 == 1:
        spec["clusterAffinity"] = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]
    if number % 4 == 3:
        spec["maxClusters"] = 20
    return {"metadata": {"namespace": "default", "name": f"policy-{number}"}, "spec": spec}


class Load(World):
    """Federated Deployments, drawn from a seed, with the controller's state of each."""

    def __init__(
        self,
        clusters: int,
        seed: int,
        profile: Mapping[str, Any] | None = None,
        clock: Clock = time.perf_counter,
        *,
        is_spread: bool = False,
    ) -> None:
        self.chain = decision_chain()
        super().__init__(self.chain.reads)
        self.clock = clock
        self.rng = random.Random(seed)
        self.sources = [a_cluster(number, self.rng) for number in range(clusters)]
        self.assume_cache = AssumeCache()
        self.now_s = 0.0
        self.period_s = 1 / DECISIONS_PER_S
        """Between two decisions."""
        for source in self.sources:
            self.clusters.update(source)
        self.type: FederatedType = next(
            from_config(config) for config in default_type_configs() if config["metadata"]["name"] == "deployments.apps"
        )
        stages = pendingcontrollers.normalise(self.type.controllers)
        self.pending = {names.PENDING_CONTROLLERS: pendingcontrollers.to_annotation(stages)}
        if profile is not None:
            self.profiles.put(profile)
        for number in range(POLICIES):
            name = profile["metadata"]["name"] if profile else ""
            self.policies.put(compile_policy(a_policy(number, name, is_spread=is_spread)))
        self.shapes = [
            {
                "cpu": f"{self.rng.choice((100, 250, 500, 1_000, 2_000))}m",
                "memory": f"{self.rng.choice((128, 256, 1024))}Mi",
            }
            for _ in range(SHAPES)
        ]
        self.engine = Engine(load_plugins())

    def an_object(self, number: int) -> dict[str, Any]:
        name = f"service-{self.rng.randrange(10**6):06d}-{number}"
        replicas = self.rng.choice(SIZES)
        container = {"name": "main", "image": "nginx", "resources": {"requests": self.rng.choice(self.shapes)}}
        return {
            "metadata": {
                "namespace": "default",
                "name": f"{name}-deployments.apps",
                "resourceVersion": "1",
                "labels": {names.PROPAGATION_POLICY_LABEL: f"policy-{number % POLICIES}"},
                "annotations": self.pending,
            },
            "spec": {
                "template": {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": name, "namespace": "default", "labels": {"app": name}, "generation": 1},
                    "spec": {
                        "replicas": replicas,
                        "selector": {"matchLabels": {"app": name}},
                        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
                    },
                }
            },
        }

    def rescaled(self, federated: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
        """Return the object after its decision was written, all controllers have processed it, and it was scaled."""
        metadata, spec, template = federated["metadata"], federated["spec"], federated["spec"]["template"]
        replicas = self.rng.choice([size for size in SIZES if size != template["spec"]["replicas"]])
        scaled = {**template, "spec": {**template["spec"], "replicas": replicas}}
        annotations = patch["metadata"]["annotations"] | self.pending
        return {
            "metadata": {**metadata, "annotations": annotations},
            "spec": {**spec, **patch["spec"], "template": scaled},
        }

    def on_decision(self, attempt: SchedulingAttempt, due: Due, decision: Decision) -> None:
        """Do what a benchmark adds to a decision."""

    def on_report(self, source: dict[str, Any]) -> None:
        """Do what a benchmark adds to a report."""

    def report(self, member: int) -> float:
        """Process a changed report of a member; return the seconds that it took."""
        source = self.sources[member]
        nodes = source["status"]["resources"]["nodeClasses"][0]["nodes"]
        resources = resources_of(nodes, self.rng)
        new = self.sources[member] = {**source, "status": {**source["status"], "resources": resources}}
        started = self.clock()
        self.on_report(new)
        if self.clusters.update(new) & ClusterChange.RESOURCES:
            before, after = (to_resources(each["status"]["resources"]["available"]) for each in (source, new))
            self.assume_cache.confirm(new["metadata"]["name"], before, after)
        return self.clock() - started

    def decide(self, federated: dict[str, Any]) -> tuple[dict[str, Any], float, float]:
        """Make one decision; return the patch, its seconds, and the engine's part of them."""
        self.now_s += self.period_s
        now = NOW + timedelta(seconds=self.now_s)
        started = self.clock()
        snapshot = self.clusters.snapshot()
        attempt = start_attempt(federated, self.type, self.policies)
        assert attempt is not None
        assumed = self.assume_cache.snapshot(self.now_s)
        due = assess(attempt, self, self.chain, snapshot, Occasion(now, assumed=assumed))
        assert isinstance(due, Due), due
        before = self.clock()
        decision = self.engine.decide(due.unit, snapshot, due.profile, now=now)
        engine_s = self.clock() - before
        assert decision.is_success, decision.reason
        self.on_decision(attempt, due, decision)
        inputs = inputs_of(federated, snapshot, policy_hash=due.policy.content_hash, assumed=due.unit.assumed)
        patch, is_moved = placement_patch(attempt, due, decision.placements, decision.reason)
        assume(self.assume_cache, federated["metadata"]["name"], decision, self.now_s)
        if is_moved:
            describe_move(decision.unit.current, decision.placements)
        to_json(decision, {"policy": due.policy.ref.name, "because": due.comparison.changed, "inputs": inputs})
        return patch or {}, self.clock() - started, engine_s


def measure(load: Load, count: int, *, is_cold: bool) -> Result:
    """Make `count` decisions, half of them about placed objects."""
    members = len(load.sources)
    decisions_s: list[float] = []
    engine_s: list[float] = []
    reports_s: list[float] = []
    running: list[dict[str, Any]] = []
    due = 0.0
    for number in range(count):
        due += members / REPORT_PERIOD_S / DECISIONS_PER_S
        reporting = range(members) if is_cold else [load.rng.randrange(members) for _ in range(int(due))]
        reports_s += [load.report(member) for member in reporting]
        due -= int(due)
        again = number % 2 == 1
        federated = running.pop() if again else load.an_object(number)
        patch, total_s, part_s = load.decide(federated)
        decisions_s.append(total_s)
        engine_s.append(part_s)
        if not again:
            running.append(load.rescaled(federated, patch))
    return Result(decisions_s, engine_s, reports_s)


def run(
    size: int, seed: int, profile: Mapping[str, Any] | None, clock: str, count: int, *, is_cold: bool, is_spread: bool
) -> Result:
    """Measure once, after enough decisions to have used every policy and pod shape."""
    load = Load(size, seed, profile, CLOCKS[clock], is_spread=is_spread)
    measure(load, WARM_UP, is_cold=False)
    tune_collector()  # as the control plane does
    return measure(load, count, is_cold=is_cold)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", default="10,100,500,1000", help="numbers of clusters, comma-separated")
    parser.add_argument("--decisions", type=int, default=2_000, help="decisions per warm measurement")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", type=Path, help="a SchedulingProfile as JSON, used in place of the default")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: exclude time used by other processes")
    parser.add_argument(
        "--spread", action="store_true", help=f"spread over {REGIONS} regions and {len(ZONES)} zones in each"
    )
    options = parser.parse_args()
    profile = orjson.loads(options.profile.read_bytes()) if options.profile else None
    line: dict[str, float] = {}
    print(f"{'clusters':>8} {'':5} {'decisions/s':>12} {'P50 ms':>8} {'P99 ms':>8} {'engine ms':>10} {'report ms':>10}")
    sizes = [int(size) for size in options.clusters.split(",")]
    # Each measurement runs in a new process, so that none uses a heap fragmented by another.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        for size, name in product(sizes, ("warm", "cold")):
            is_cold = name == "cold"
            count = max(50, options.decisions // 20) if is_cold else options.decisions
            result = processes.submit(
                run, size, options.seed, profile, options.clock, count, is_cold=is_cold, is_spread=options.spread
            ).result()
            per_s, p50, p99 = result.per_s(), result.percentile_ms(0.5), result.percentile_ms(0.99)
            costs = f"{result.engine_ms():>10.2f} {result.report_ms():>10.2f}"
            print(f"{size:>8} {name:5} {per_s:>12,.0f} {p50:>8.2f} {p99:>8.2f} {costs}")
            suffix = f"_{size}" if name == "warm" else f"_{size}_cold"
            line |= {
                f"decisions_per_s{suffix}": round(per_s),
                f"latency_p50_ms{suffix}": round(p50, 3),
                f"latency_p99_ms{suffix}": round(p99, 3),
                f"algorithm_ms{suffix}": round(result.engine_ms(), 3),
                f"report_ms{suffix}": round(result.report_ms(), 3),
            }
    shape = {"clusters": sizes, "decisions": options.decisions, "clock": options.clock, "spread": options.spread}
    print_report("scheduling", shape, line, GOALS)


if __name__ == "__main__":
    main()
