"""A member dies by kill -9: its replicas run elsewhere and return, even if the control plane is killed meanwhile.

The control plane and each member have their own processes. Options shorten the times; all else is the default.
"""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from federation.simulator.control import send_command
from federation.simulator.failures import FailureCommand, Verb
from tests.support.federation import Federation, Kubectl, eventually, fedctl, free_clusters, start_serve
from tests.support.sources import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
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
    path = "jsonpath={.spec.replicas},{.status.readyReplicas}"
    text = member("get", "deploy", "web", "--ignore-not-found", "-o", path)
    wanted, _, ready = text.partition(",")
    return int(wanted or 0), int(ready or 0)


def ready_status(fed: Federation, name: str) -> str:
    path = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    return fed.kubectl("get", "fcluster", name, "-o", path)


def test_replicas_of_a_killed_member_run_elsewhere_although_the_control_plane_is_killed_too(
    members: dict[str, Kubectl], tmp_path: Path
) -> None:
    survivors = [member for name, member in members.items() if name != "member-2"]
    even = dict.fromkeys(members, (3, 3))
    with closing(start_serve(tmp_path / "host")) as fed:
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
        simulated(tmp_path, Verb.START, "member-2")
        assert counts(members["member-2"])[0] == 3, "it still has its copies"
        eventually(
            lambda: {name: counts(each) for name, each in members.items()}, lambda seen: seen == even, timeout_s=120
        )
        fed.kubectl("rollout", "status", "deploy/web", "--timeout=90s")
