"""A member dies by kill -9: its replicas run elsewhere and return, even if the control plane is killed meanwhile.

Then two members are drained at once, and the second one waits for the budget.

The control plane and each member have their own processes. Options shorten the times; all else is the default.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from federation.simulator.control import send_command
from federation.simulator.failures import FailureCommand, Verb
from tests.support.federation import FEDCTL, Federation, Kubectl, eventually, fedctl, free_clusters, start_serve
from tests.support.sources import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow("a control plane and a member are killed")]
REPLICAS = 9
OPTIONS = {
    "FAILOVER_TOLERATION_S": "3",
    "FAILOVER_SETTLE_S": "1",
    "FAILBACK_STABLE_S": "5",
    "FAILBACK_INTERVAL_S": "1",
}


@pytest.fixture
def members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Kubectl]]:
    for name, value in OPTIONS.items():
        monkeypatch.setenv(f"FEDERATION_{name}", value)
    with free_clusters(tmp_path / "clusters", 3) as kubeconfigs:
        yield {path.name.removesuffix(".kubeconfig"): Kubectl(path) for path in kubeconfigs}


def simulated(directory: Path, verb: Verb, name: str = "") -> list[dict[str, Any]]:
    return asyncio.run(send_command(directory / "clusters", FailureCommand(verb, name)))


def join(fed: Federation, name: str, member: Kubectl) -> None:
    fedctl("join", name, "--kubeconfig", str(member.kubeconfig), KUBECONFIG=str(fed.kubectl.kubeconfig))


def counts(member: Kubectl) -> tuple[int, int]:
    """Return the wanted and the ready replicas of the Deployment in a member, zeros without it."""
    found = member.api().find("deployments", "web")
    return (found["spec"]["replicas"], found.get("status", {}).get("readyReplicas", 0)) if found else (0, 0)


def ready_status(fed: Federation, name: str) -> str:
    conditions = fed.api().get("federatedclusters", name)["status"]["conditions"]
    return next(each["status"] for each in conditions if each["type"] == "Ready")


BUDGET = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "ClusterDisruptionBudget",
    "metadata": {"name": "all"},
    "spec": {"maxUnavailable": 1},
}


def start_drain(fed: Federation, name: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "KUBECONFIG": str(fed.kubectl.kubeconfig)}
    command = [*FEDCTL, "drain", name, "--timeout", "170s"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def drain_two_at_once(fed: Federation) -> None:
    """Drain two members from two terminals; the budget allows one at a time, and the other goes on after it."""
    fed.kubectl.apply(BUDGET)
    drains = {name: start_drain(fed, name) for name in ("member-1", "member-3")}
    try:
        eventually(lambda: [each.poll() for each in drains.values()], lambda codes: 0 in codes)
        (first,) = [name for name, each in drains.items() if each.poll() == 0]
        (second,) = drains.keys() - {first}
        assert f'cluster "{first}" is drained' in drains[first].communicate()[0]
        printed = iter(drains[second].stdout.readline, "")
        assert any("waiting: ClusterDisruptionBudget all allows 1 unavailable clusters" in line for line in printed)
        assert drains[second].poll() is None
        assert f"failover of {second} halts: ClusterDisruptionBudget all allows 1" in clusters(fed)
        ready = fed.kubectl("get", "deploy", "web", "-o", "jsonpath={.status.readyReplicas}")
        assert int(ready) >= REPLICAS
        fedctl("uncordon", first, timeout_s=90, KUBECONFIG=str(fed.kubectl.kubeconfig))
        text = drains[second].stdout.read()
        assert (drains[second].wait(180), f'cluster "{second}" is drained' in text) == (0, True), text
        fed.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    finally:
        for each in drains.values():
            with each:
                each.kill()


def clusters(fed: Federation) -> str:
    return fedctl("clusters", timeout_s=90, KUBECONFIG=str(fed.kubectl.kubeconfig)).stdout


def test_replicas_of_a_killed_member_run_elsewhere_although_the_control_plane_is_killed_too(
    members: dict[str, Kubectl], tmp_path: Path
) -> None:
    survivors = [member for name, member in members.items() if name != "member-2"]
    even = dict.fromkeys(members, (3, 3))
    patient = {"FEDERATION_FAILOVER_TOLERATION_S": "300"}
    with closing(start_serve(tmp_path / "host", **patient)) as fed:
        for name, member in members.items():
            join(fed, name, member)
        fed.kubectl("apply", "-f", str(ROOT / "examples" / "failover"))
        eventually(lambda: {name: counts(each) for name, each in members.items()}, lambda seen: seen == even)
        (victim,) = [each["pid"] for each in simulated(tmp_path, Verb.STATUS) if each["name"] == "member-2"]
        psutil.Process(victim).kill()
        eventually(lambda: ready_status(fed, "member-2"), lambda status: status == "Unknown")
        fed.kill()  # after the detection, before the toleration ends
    assert sum(counts(member)[0] for member in survivors) < REPLICAS
    with closing(start_serve(tmp_path / "host")) as fed:
        moved = eventually(
            lambda: [counts(member) for member in survivors],
            lambda seen: sum(ready for _, ready in seen) == REPLICAS,
            timeout_s=90,
        )
        assert sum(wanted for wanted, _ in moved) == REPLICAS
        fed.kubectl("rollout", "status", "deploy/web", "--timeout=90s")
        eventually(lambda: simulated(tmp_path, Verb.STATUS)[1]["state"], lambda state: state == "Stopped")
        fed.process.send_signal(signal.SIGSTOP)  # it would remove them
        simulated(tmp_path, Verb.START, "member-2")
        assert counts(members["member-2"])[0] == 3, "it still has its copies"
        fed.process.send_signal(signal.SIGCONT)
        eventually(
            lambda: {name: counts(each) for name, each in members.items()}, lambda seen: seen == even, timeout_s=120
        )
        fed.kubectl("rollout", "status", "deploy/web", "--timeout=90s")
        shown = fedctl("rollout", "status", "deploy/web", timeout_s=90, KUBECONFIG=str(fed.kubectl.kubeconfig)).stdout
        assert "deploy/web: Complete, 3/3 clusters" in shown
        drain_two_at_once(fed)
