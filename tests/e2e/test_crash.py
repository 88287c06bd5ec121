"""Kill -9 at a random moment: every acknowledged object survives and members converge to the scheduled replicas."""

import json
import random
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.support.federation import Federation, eventually, start_federation

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("crash")]
DEPLOYMENTS = 200


def manifest(index: int, replicas: int) -> dict[str, object]:
    labels = {"app": f"app-{index}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"app-{index:03d}", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}},
        },
    }


def policy() -> dict[str, object]:
    return {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {
            "schedulingMode": "Divide",
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": [{"cluster": f"member-{n}", "preferences": {"weight": n}} for n in (1, 2, 3)],
        },
    }


class Writer(threading.Thread):
    """Creates Deployments in small batches and scales the earlier ones, noting what was acknowledged."""

    def __init__(self, fed: Federation) -> None:
        super().__init__(daemon=True)
        self._fed = fed
        self.acknowledged: dict[str, int] = {}
        self.attempted: dict[str, set[int]] = {}

    def run(self) -> None:
        for start in range(0, DEPLOYMENTS, 10):
            created = [manifest(i, 3) for i in range(start, start + 10)]
            scaled = [manifest(i, 7) for i in range(max(0, start - 20), max(0, start - 10))]
            self._apply(created, 3)
            self._apply(scaled, 7)

    def _apply(self, manifests: list[dict[str, object]], replicas: int) -> None:
        if not manifests:
            return
        for item in manifests:
            self.attempted.setdefault(item["metadata"]["name"], set()).add(replicas)  # type: ignore[index]
        stdin = "\n---\n".join(json.dumps(m) for m in manifests)
        try:
            done = self._fed.kubectl.run("apply", "--server-side", "-f", "-", stdin=stdin, timeout_s=30)
        except subprocess.TimeoutExpired:
            return
        for line in done.stdout.splitlines():
            if line.startswith("deployment.apps/"):
                self.acknowledged[line.split("/")[1].split()[0]] = replicas


def host_replicas(fed: Federation) -> dict[str, int]:
    return {d["metadata"]["name"]: d["spec"]["replicas"] for d in fed.kubectl.json("get", "deploy")["items"]}


def scheduled(fed: Federation) -> dict[str, dict[str, int]]:
    """Placement with replicas by Deployment, from the federated objects."""
    found: dict[str, dict[str, int]] = {}
    for item in fed.kubectl.json("get", "federatedobjects")["items"]:
        template = item["spec"]["template"]
        if template["kind"] != "Deployment":
            continue
        replicas = {
            c["cluster"]: p["value"]
            for o in item["spec"].get("overrides", ())
            if o["controller"] == "kubeadmiral.io/global-scheduler"
            for c in o.get("clusters", o.get("override", ()))
            for p in c["patches"]
            if p["path"] == "/spec/replicas"
        }
        found[template["metadata"]["name"]] = {c: n for c, n in replicas.items() if n}
    return found


def in_members(fed: Federation) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for member in fed.members:
        for item in fed.member(member).json("get", "deploy", "-n", "default")["items"]:
            found.setdefault(item["metadata"]["name"], {})[member] = item["spec"]["replicas"]
    return found


def member_versions(fed: Federation) -> dict[str, dict[str, tuple[int, str]]]:
    """What would change if the federation wrote to a member: generation and the federation's own managed-fields time."""
    found = {}
    for member in fed.members:
        items = fed.member(member).json("get", "deploy", "-n", "default", "--show-managed-fields")["items"]
        found[member] = {
            d["metadata"]["name"]: (
                d["metadata"]["generation"],
                next(m["time"] for m in d["metadata"]["managedFields"] if m["manager"] == "federation"),
            )
            for d in items
        }
    return found


def test_nothing_acknowledged_is_lost_and_members_converge(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    directory = tmp_path / "fed"
    fed = start_federation(directory)
    try:
        fed.kubectl.apply(policy())
        writer = Writer(fed)
        writer.start()
        delay_s = random.Random(seed).uniform(0.5, 6)
        time.sleep(delay_s)  # the random moment is the point of this test
        fed.kill()
        writer.join(120)
    finally:
        if fed.process.poll() is None:
            fed.kill()
        fed.process.stdout.close()  # type: ignore[union-attr]
    print(f"seed {seed}: killed after {delay_s:.2f} s with {len(writer.acknowledged)} acknowledged")

    fed = start_federation(directory)
    try:
        found = host_replicas(fed)
        for name, replicas in writer.acknowledged.items():
            assert name in found, f"{name} was acknowledged and is gone (seed {seed})"
            assert found[name] == replicas or found[name] in writer.attempted[name], f"{name} (seed {seed})"
        Writer(fed).run()
        wanted = host_replicas(fed)
        assert len(wanted) == DEPLOYMENTS
        eventually(
            lambda: {n: sum(p.values()) for n, p in scheduled(fed).items()},
            lambda seen: seen == wanted,
            timeout_s=60,
            what="scheduling",
        )
        plan = scheduled(fed)
        eventually(lambda: in_members(fed), lambda seen: seen == plan, timeout_s=60, what="members")
        eventually(
            lambda: fed.kubectl.json("get", "deploy")["items"],
            lambda items: all(d["status"].get("readyReplicas") == d["spec"]["replicas"] for d in items),
            timeout_s=90,
            what="merged status",
        )
        before = member_versions(fed)
        fed.stop()
    finally:
        if fed.process.poll() is None:
            fed.kill()
        fed.process.stdout.close()  # type: ignore[union-attr]

    fed = start_federation(directory)
    try:
        # Something new has to arrive, so that the restarted controllers have been through their whole queue.
        fed.kubectl.apply(manifest(999, 3))
        eventually(lambda: in_members(fed), lambda seen: "app-999" in seen, timeout_s=60, what="a new Deployment")
        after = member_versions(fed)
        for versions in after.values():
            versions.pop("app-999", None)
        assert after == before, "a restart after convergence wrote to a member"
    finally:
        if fed.process.poll() is None:
            fed.stop()
        fed.process.stdout.close()  # type: ignore[union-attr]
