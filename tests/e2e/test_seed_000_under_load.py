"""The first example of document 000, as a user runs it, while other processes take the CPU.

`fedctl up`, `fedctl spread-webhook` beside a member, `kubectl apply` of the example and of a Deployment with 110 replicas,
then 60, then 110 again. `SEED_000_RUNS=50` repeats it, each time in a namespace of its own, and `SEED_000_BUSY=4` sets how
many processes compute meanwhile. With `-s` each run prints its counts.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from federation.apimachinery.resources import Object
from federation.features.workloadspread.rules.ledger import parse_match
from tests.e2e.test_spread_webhook import spread_webhook
from tests.support.federation import Kubectl, eventually, federation

pytestmark = [pytest.mark.e2e, pytest.mark.slow("110 pods beside busy processes"), pytest.mark.timeout(3 * 3600)]

RUNS, BUSY = int(os.environ.get("SEED_000_RUNS", "1")), int(os.environ.get("SEED_000_BUSY", "2"))
EXAMPLE = Path(__file__).parents[2] / "examples" / "seeds" / "000" / "base-pool-then-elastic.yaml"
NAME, NORMAL, ELASTIC = "base-pool-then-elastic", "subset-normal", "subset-elastic"
LIMIT, MANY, FEW = 100, 110, 60
PATIENCE_S = 300.0
DEPLOYMENT = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {NAME}}}
spec:
  replicas: {MANY}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: nginx}}]}}
"""


@contextmanager
def busy() -> Iterator[None]:
    """Compute in other processes during the block."""
    command = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(command) for _ in range(BUSY)]  # fixed arguments
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


class Run:
    """One run in its namespace; every look checks the limit."""

    def __init__(self, member: Kubectl, namespace: str) -> None:
        self._member, self._namespace, self._api = member, namespace, member.api(namespace)

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return self._member("-n", self._namespace, *arguments, stdin=stdin)

    def pods(self) -> list[Object]:
        found = self._api.list("pods", labelSelector="app=web")["items"]
        live = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        assert self.counts(live)[NORMAL] <= LIMIT, "the limit is exceeded"
        return live

    def counts(self, pods: list[Object]) -> Counter[str]:
        """Return the number of pods by subset, "" for none."""
        matches = map(parse_match, pods)
        return Counter(match.subset if match is not None else "" for match in matches)

    def converged(self, replicas: int) -> dict[str, int]:
        """Wait until all pods are placed and the status says what they are; return the counts of pods by subset."""

        def look() -> tuple[int, dict[str, int], dict[str, int]]:
            pods = self.pods()
            placed = sum("nodeName" in pod["spec"] for pod in pods)
            return placed, _known(self.counts(pods)), self._reported()

        def is_stable(seen: tuple[int, dict[str, int], dict[str, int]]) -> bool:
            placed, counts, reported = seen
            return placed == sum(counts.values()) == replicas and reported == {
                **counts,
                "missing": LIMIT - counts[NORMAL],
            }

        _, counts, _ = eventually(
            look, is_stable, timeout_s=PATIENCE_S, pause_s=0.3, what=f"{replicas} pods as reported"
        )
        return counts

    def _reported(self) -> dict[str, int]:
        """Return what the status of the WorkloadSpread says."""
        status: Any = self._api.get("apps.kruise.io/v1alpha1/workloadspreads", NAME).get("status") or {}
        subsets = {each["name"]: each for each in status.get("subsetStatuses") or ()}
        if set(subsets) != {NORMAL, ELASTIC}:
            return {}
        assert subsets[ELASTIC]["missingReplicas"] == -1
        replicas = {name: each["replicas"] for name, each in subsets.items()}
        return _known(replicas | {"": status.get("unmatchedReplicas") or 0}) | {
            "missing": subsets[NORMAL]["missingReplicas"]
        }

    def check_nodes(self) -> None:
        """Check that matched pods run in their pool, and that an Event names those without a match."""
        pods = self.pods()
        for pod in pods:
            match = parse_match(pod)
            if match is not None:
                pool = "member-1-node-1" if match.subset == NORMAL else "member-1-node-2"
                assert pod["spec"]["nodeName"] == pool, f"{pod['metadata']['name']} of {match.subset}"
        if any(parse_match(pod) is None for pod in pods):
            reasons = {event["reason"] for event in self._api.list("events")["items"]}
            assert "PodsWithoutSubset" in reasons


def _known(counts: dict[str, int]) -> dict[str, int]:
    return {name: counts.get(name, 0) for name in (NORMAL, ELASTIC, "")}


def test_every_pod_is_matched_or_reported_and_the_limit_holds(tmp_path: Path) -> None:
    with federation(tmp_path / "fed", members=1) as fed:
        member = fed.member("member-1")
        for node, pool in (("member-1-node-1", "normal"), ("member-1-node-2", "elastic")):
            member("label", "node", node, f"app.deploy/zone={pool}")
        kubeconfig = fed.directory / "members" / "member-1.kubeconfig"
        with spread_webhook(kubeconfig), busy():
            for number in range(RUNS):
                run = Run(member, f"run-{number}")
                member("create", "namespace", f"run-{number}")
                run.kubectl("apply", "-f", str(EXAMPLE))
                run.kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
                first = run.converged(MANY)
                run.check_nodes()
                run.kubectl("scale", f"deployment/{NAME}", f"--replicas={FEW}")
                fewer = run.converged(FEW)
                run.kubectl("scale", f"deployment/{NAME}", f"--replicas={MANY}")
                last = run.converged(MANY)
                run.check_nodes()
                print(f"run {number}: {first}, then {fewer}, then {last}")
                run.kubectl("delete", "deployment,workloadspread", NAME)
                eventually(run.pods, lambda pods: not pods, timeout_s=PATIENCE_S, what="no pods")
