"""SIGKILL at a random time: every acknowledged object survives and members converge to the scheduled replicas.

The time is drawn from a seed that a failure prints; FEDERATION_TEST_SEED reproduces it.
"""

import json
import os
import random
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.federation import PATIENCE_S, Federation, eventually, start_federation

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("starts a federation three times and delivers its Deployments"),
    pytest.mark.xdist_group("crash"),
]
BATCH = 10
PROBE = "probe"


def name_of(index: int) -> str:
    return f"app-{index:03d}"


def manifest(name: str, replicas: int) -> dict[str, object]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
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
    """Creates Deployments in small batches and scales half of them, noting what was acknowledged.

    kubectl prints a line per object when the server has acknowledged it, so lines are counted as they arrive. The
    federation is killed at one of them: a thread that looked at the number could be too late.
    """

    def __init__(self, fed: Federation, deployments: int, kill_at: int = 0) -> None:
        super().__init__(daemon=True)
        self._fed = fed
        self._deployments = deployments
        self._kill_at = kill_at
        self.writes_max = deployments + (deployments - BATCH) // 2
        self.writes = 0
        self.acknowledged: dict[str, int] = {}
        self.attempted: dict[str, int] = {}

    def run(self) -> None:
        for start in range(0, self._deployments, BATCH):
            created = [name_of(i) for i in range(start, start + BATCH)]
            scaled = [name_of(i) for i in range(start - BATCH, start) if i >= 0 and i % 2]
            if not (self._apply(created, 3) and self._apply(scaled, 7)):
                return

    def _apply(self, names: list[str], replicas: int) -> bool:
        """Apply and return whether all was acknowledged."""
        if not names:
            return True
        self.attempted |= dict.fromkeys(names, replicas)
        stdin = "\n---\n".join(json.dumps(manifest(name, replicas)) for name in names)
        with self._fed.kubectl.popen("apply", "--server-side", "-f", "-") as kubectl:
            assert kubectl.stdin is not None
            assert kubectl.stdout is not None
            kubectl.stdin.write(stdin)
            kubectl.stdin.close()
            for line in kubectl.stdout:
                self.acknowledged[line.split("/")[1].split()[0]] = replicas
                self.writes += 1
                if self.writes == self._kill_at:
                    self._fed.kill()
        return kubectl.returncode == 0


def host_replicas(fed: Federation) -> dict[str, int]:
    return {d["metadata"]["name"]: d["spec"]["replicas"] for d in fed.api().list("deployments")["items"]}


def scheduled(fed: Federation) -> dict[str, dict[str, int]]:
    """Placement with replicas by Deployment, from the federated objects."""
    found: dict[str, dict[str, int]] = {}
    for item in fed.api().list("federatedobjects")["items"]:
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
        for item in fed.api(member=member).list("deployments")["items"]:
            found.setdefault(item["metadata"]["name"], {})[member] = item["spec"]["replicas"]
    return found


def member_versions(fed: Federation) -> dict[str, dict[str, str]]:
    """The resourceVersion of everything that the federation keeps in a member: it changes with any write whatsoever."""
    found = {}
    for member in fed.members:
        api = fed.api("", member=member)
        found[member] = {
            f"{plural} {item['metadata']['name']}": item["metadata"]["resourceVersion"]
            for plural in ("namespaces", "deployments")
            for item in api.list(plural, labelSelector="kubeadmiral.io/managed=true")["items"]
            if item["metadata"]["name"] != PROBE
        }
    return found


def kill_while_writing(directory: Path, seed: int, deployments: int) -> Writer:
    """Start a federation, kill it at a moment of the seed's choice while the writer writes, and return the writer."""
    with closing(start_federation(directory)) as fed:
        fed.kubectl.apply(policy())
        wanted = random.Random(seed).randrange(10, Writer(fed, deployments).writes_max - 20)
        writer = Writer(fed, deployments, wanted)
        writer.start()
        writer.join(PATIENCE_S)
        assert fed.process.poll() is not None, f"{writer.writes} of {wanted} writes"
    print(f"seed {seed}: killed after {wanted} of {writer.writes_max} writes, {writer.writes} were acknowledged")
    assert wanted <= writer.writes < writer.writes_max, "killed in the middle"
    return writer


@pytest.mark.real_time
@pytest.mark.parametrize("deployments", [60, pytest.param(200, marks=pytest.mark.nightly)])
def test_acknowledged_writes_survive_a_crash_and_members_converge(tmp_path: Path, deployments: int) -> None:
    seed = int(os.environ.get("FEDERATION_TEST_SEED") or random.randrange(1 << 30))
    directory = tmp_path / "fed"
    writer = kill_while_writing(directory, seed, deployments)

    with closing(start_federation(directory)) as fed:
        found = host_replicas(fed)
        for name, replicas in writer.acknowledged.items():
            assert name in found, f"{name} was acknowledged and is gone (seed {seed})"
            assert found[name] in (replicas, writer.attempted[name]), f"{name} (seed {seed})"
        Writer(fed, deployments).run()
        wanted = host_replicas(fed)
        assert len(wanted) == deployments
        eventually(
            lambda: {n: sum(p.values()) for n, p in scheduled(fed).items()},
            lambda seen: seen == wanted,
            what=f"scheduling (seed {seed})",
        )
        plan = scheduled(fed)
        eventually(lambda: in_members(fed), lambda seen: seen == plan, what=f"members (seed {seed})")
        eventually(
            lambda: [
                d["metadata"]["name"]
                for d in fed.api().list("deployments")["items"]
                if d.get("status", {}).get("readyReplicas") != d["spec"]["replicas"]
            ],
            lambda late: not late,
            what=f"merged status (seed {seed})",
        )
        before = member_versions(fed)
        assert sum(map(len, before.values())) >= deployments
        assert fed.stop() == 0

    with closing(start_federation(directory)) as fed:
        # Something new has to arrive in every member, so that the restarted controllers have been through their queues.
        fed.kubectl.apply(manifest(PROBE, 3))
        eventually(lambda: in_members(fed).get(PROBE, {}), lambda seen: sum(seen.values()) == 3, what="a new one")
        assert member_versions(fed) == before, f"a restart after convergence wrote to a member (seed {seed})"
