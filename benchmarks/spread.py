"""Measure WorkloadSpreads: admission latency of one WorkloadSpread, and 3,000 pods that are created at once.

Creations: `fedctl serve` (SQLite, durable writes) gets pods of one ReplicaSet from this process, with 1, 16 and 64
requests at a time, by turns without webhooks and with `fedctl spread-webhook`, three times. Nothing else works on the
pods. The figures of a turn are those of all its requests; results are medians of the three turns. A ratio compares both
halves of a turn, so that the load of the machine counts less. Reviews are the service's own time, without HTTP.

Packages: a simulated cluster, where the ReplicaSet controller creates 3,000 pods for 10 subsets of 300. The last line on
standard output is one JSON object.

    python benchmarks/spread.py                     both, about three minutes
    python benchmarks/spread.py --only packages     3,000 pods in 10 packages
    python benchmarks/spread.py --only creations --real     a real kube-apiserver (`make kubernetes`)
"""

import argparse
import asyncio
import contextlib
import json
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from loadclient import Client, Target
from realclusters import real_server
from report import print_report

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests are not installed

from tests.e2e.test_spread_webhook import spread_webhook
from tests.support.federation import Kubectl, free_clusters, start_serve

from federation.api import names
from federation.client.kubeconfig import load_kubeconfig
from federation.features.workloadspread.rules.ledger import parse_match

Results = dict[str, Any]
CONCURRENT = (1, 16, 64)
TURNS = 3
PACKAGES, PACKAGE_SIZE = 10, 300
PACKAGES_S_MAX = 60.0
GOALS = {"review_p99_ms_at_16": ("<=", 25.0), "packages_s": ("<=", PACKAGES_S_MAX)}
"""On 2 cores."""
PODS = b"/api/v1/namespaces/default/pods"


A_SERVICE_ACCOUNT = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "default", "namespace": "default"},
}
"""A real API server without controllers has none, and refuses pods."""


def a_spread(*subsets: dict[str, Any]) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
    spec = {"targetRef": target, "subsets": list(subsets)}
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "WorkloadSpread",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }


def a_replica_set(replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    annotations = {"kubeadmiral.io/no-federated-resource": "true"}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "annotations": annotations},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def create_pods(target: Target, uid: str, concurrent: int, count: int) -> list[float]:
    """Create pods with that many connections; return the latencies in ms, in ascending order."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": True}
    metadata = {
        "generateName": "web-",
        "labels": {"app": "web"},
        "annotations": {"kubeadmiral.io/no-federated-resource": "true"},
        "ownerReferences": [owner],
    }
    body = json.dumps({"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}).encode()
    clients = [await Client.open(target) for _ in range(concurrent)]
    latencies: list[float] = []

    async def work(client: Client) -> None:
        while len(latencies) < count:
            began = time.perf_counter()
            status, answer = await client.request(b"POST", PODS, body)
            if status != 201:
                raise SystemExit(f"benchmark: a pod was refused: {status} {answer[:300]!r}")
            latencies.append((time.perf_counter() - began) * 1000)

    await asyncio.gather(*map(work, clients))
    for client in clients:
        client.close()
    return sorted(latencies)


class ReviewTimes:
    """How long the service worked on admission reviews, by its own metric."""

    def __init__(self, kubectl: Kubectl) -> None:
        path = "{.items[0].webhooks[0].clientConfig.url}"
        url = kubectl("get", "mutatingwebhookconfigurations", "-o", f"jsonpath={path}")
        self._url = str(httpx.URL(url).copy_with(path="/metrics", query=None))
        self._before = self._read()

    def figures(self) -> Results:
        """Return percentiles in ms since the start; a percentile is the end of its bucket, or within it by share."""
        counts = [(le, count - self._before.get(le, 0.0)) for le, count in sorted(self._read().items())]
        return {f"p{round(share * 100)}_ms": _quantile(counts, share) * 1000 for share in (0.5, 0.99)}

    def _read(self) -> dict[float, float]:
        text = httpx.get(self._url, verify=False).text  # our own service, for figures only
        found: dict[float, float] = {}
        for le, count in re.findall(
            r'^federation_spread_review_seconds_bucket\{.*le="([^"]+)".*\} (\S+)$', text, re.MULTILINE
        ):
            found[float(le)] = found.get(float(le), 0.0) + float(count)
        return found


def _quantile(counts: list[tuple[float, float]], share: float) -> float:
    """Return a quantile of a cumulative histogram as Prometheus does: linear within a bucket."""
    wanted, low, below = share * counts[-1][1], 0.0, 0.0
    for end, count in counts:
        if count >= wanted:
            return low if end == float("inf") else low + (end - low) * (wanted - below) / max(count - below, 1e-9)
        low, below = end, count
    return low


def measure_turn(target: Target, uid: str, name: str, count: int, kubectl: Kubectl | None = None) -> Results:
    """Return the figures of one turn; with a `kubectl` those of the service's own time, too."""
    found: Results = {}
    for concurrent in CONCURRENT:
        times = ReviewTimes(kubectl) if kubectl is not None else None
        began = time.perf_counter()
        latencies = asyncio.run(create_pods(target, uid, concurrent, count if concurrent > 1 else count // 4))
        elapsed_s = time.perf_counter() - began
        found |= {
            f"{name}_p50_ms_at_{concurrent}": percentile(latencies, 0.5),
            f"{name}_p99_ms_at_{concurrent}": percentile(latencies, 0.99),
            f"{name}_pods_per_s_at_{concurrent}": len(latencies) / elapsed_s,
        }
        if times is not None:
            found |= {f"review_{figure}_at_{concurrent}": value for figure, value in times.figures().items()}
    return found


@contextlib.contextmanager
def api_server(directory: Path, *, is_real: bool) -> Iterator[Path]:
    """Run an API server without controllers of workloads during the block; yield its kubeconfig."""
    if is_real:
        with real_server(directory / "real") as kubeconfig:
            yield kubeconfig
        return
    with contextlib.closing(start_serve(directory / "host", is_fresh=True)) as running:
        # The definitions of a federation are not the webhook's, which replaces only its own.
        kubectl = running.kubectl
        for kind in kubectl("get", "crds", "-o", "name").split():
            if kind.endswith(".apps.kruise.io"):
                kubectl("label", kind, f"app.kubernetes.io/managed-by={names.FIELD_MANAGER}")
        yield kubectl.kubeconfig


def measure_creations(directory: Path, count: int, *, is_real: bool) -> Results:
    with api_server(directory, is_real=is_real) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        # Not 0: the service reads the pods of a workload that has replicas.
        kubectl.apply(a_replica_set(1), *([A_SERVICE_ACCOUNT] if is_real else []))
        uid = kubectl("get", "replicasets", "web", "-o", "jsonpath={.metadata.uid}")
        target = asyncio.run(Target.of(load_kubeconfig(kubeconfig)))
        turns: list[Results] = []
        for number in range(TURNS):
            found = measure_turn(target, uid, "plain", count)
            delete_pods(kubectl)
            with spread_webhook(kubeconfig):
                if not number:  # the service adds the kind
                    kubectl.apply(a_spread({"name": "base", "maxReplicas": 1_000_000}, {"name": "elastic"}))
                found |= measure_turn(target, uid, "webhook", count, kubectl)
                subsets = count_subsets(kubectl)
                if set(subsets) != {"base"}:
                    raise SystemExit(f"benchmark: pods without a subset: {subsets}")
            delete_pods(kubectl)
            turns.append(found)
            print(
                f"turn {number + 1}: {json.dumps({key: round(value, 1) for key, value in found.items()})}", flush=True
            )
    medians = {key: statistics.median(turn[key] for turn in turns) for key in turns[0]}
    figures = [
        f"{figure}_at_{concurrent}" for concurrent in CONCURRENT for figure in ("p50_ms", "p99_ms", "pods_per_s")
    ]
    ratios = {
        f"ratio_{figure}": statistics.median(turn[f"webhook_{figure}"] / turn[f"plain_{figure}"] for turn in turns)
        for figure in figures
    }
    return {**medians, **ratios}


def delete_pods(kubectl: Kubectl) -> None:
    kubectl("delete", "--raw", f"{PODS.decode()}?gracePeriodSeconds=0", timeout_s=120)


def count_subsets(kubectl: Kubectl) -> Counter[str]:
    """Return the number of pods per subset, "" for pods without one."""
    pods = json.loads(kubectl("get", "--raw", PODS.decode(), timeout_s=120))["items"]
    matches = [parse_match(pod) for pod in pods]
    return Counter(match.subset if match is not None else "" for match in matches)


def measure_packages(directory: Path) -> Results:
    packages_of = [f"package-{number}" for number in range(1, PACKAGES + 1)]
    with free_clusters(directory / "clusters", 1, is_fresh=True) as (kubeconfig,), spread_webhook(kubeconfig):
        kubectl = Kubectl(kubeconfig)
        packages = [
            {"name": name, "maxReplicas": PACKAGE_SIZE, "patch": {"metadata": {"annotations": {"bandwidth": name}}}}
            for name in packages_of
        ]
        kubectl.apply(a_spread(*packages, {"name": "others"}))
        began = time.perf_counter()
        kubectl.apply(a_replica_set(PACKAGES * PACKAGE_SIZE))
        while (seen := count_subsets(kubectl)).total() < PACKAGES * PACKAGE_SIZE:
            if time.perf_counter() - began > 5 * PACKAGES_S_MAX:
                raise SystemExit(f"benchmark: the pods were not created: {seen}")
            time.sleep(0.2)
        elapsed_s = time.perf_counter() - began
    print(f"packages: {elapsed_s:.1f} s, {dict(seen)}", flush=True)
    exact = seen == dict.fromkeys(packages_of, PACKAGE_SIZE)
    return {"packages_s": elapsed_s, "packages_exact": exact}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("creations", "packages"), default="")
    parser.add_argument("--count", type=int, default=1_000, help="pods per turn and number of concurrent requests")
    parser.add_argument("--real", action="store_true", help="a real kube-apiserver for the creations")
    options = parser.parse_args()
    results: Results = {}
    with tempfile.TemporaryDirectory(prefix="spread-benchmark-") as folder:
        if options.only != "packages":
            results |= measure_creations(Path(folder), options.count, is_real=options.real)
        if options.only != "creations":
            results |= measure_packages(Path(folder))
    print_report("spread", {"count": options.count, "real": options.real}, results, GOALS)


if __name__ == "__main__":
    main()
