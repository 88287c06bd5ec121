"""Pull mode with real processes: a member that the host never connects to joins, converges and survives lost connections."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from enum import StrEnum
from functools import partial
from operator import le
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it has no stubs of its own
import pytest
import yaml

from federation.api import names
from tests.e2e.test_replicas import is_leader
from tests.support.agentchart import NAMESPACE, TOKEN, render
from tests.support.federation import (
    CLI,
    PATIENCE_S,
    Federation,
    Kubectl,
    eventually,
    fedctl,
    free_clusters,
    start_serve,
)
from tests.support.forkserver import Process, start_process
from tests.support.forwarder import DroppingForwarder
from tests.support.joining import DEPLOYMENT, POLICY, Member
from tests.support.ports import lasting_port
from tests.support.postgres import PostgresServer

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("agents that lose their connections"),
    pytest.mark.xdist_group("pull-mode"),
]
DROPS = 100
CONNECTED = "] connected to the host"
CERTIFICATE_LIFETIME_S = 60
REFUSED = "does not accept this agent any more"


@contextmanager
def agent(directory: Path, kubeconfig: Path, token: str) -> Iterator[Process]:
    """Run an agent during the block."""
    command = ("agent", "--dir", str(directory), "--kubeconfig", str(kubeconfig), "--register", token)
    with (directory.parent / f"{directory.name}.log").open("a") as log:
        process = start_process(CLI, command, stdout=log.fileno(), stderr=log.fileno())
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


def start_host(directory: Path, port: int) -> Federation:
    """Start a federation whose agents renew their certificates within the test."""
    lifetime = {"FEDERATION_AGENT_CERTIFICATE_LIFETIME_S": str(CERTIFICATE_LIFETIME_S)}
    return start_serve(directory, arguments=("--port", str(port)), **lifetime)


def address_of(fed: Federation) -> str:
    server: str = yaml.safe_load(fed.kubectl.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    return server


def token_for(fed: Federation, name: str, addresses: str) -> str:
    """Return a registration token for an agent that reaches the federation at these addresses."""
    arguments = ("token", "create", name, "--server", addresses, "--output", "token")
    return fedctl(*arguments, KUBECONFIG=str(fed.kubectl.kubeconfig)).stdout.strip()


def agent_account(member: Kubectl) -> Path:
    """Install the rights of the chart, and return a kubeconfig of the account that has them."""
    objects = render({"token": TOKEN})
    kinds = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    member("create", "namespace", NAMESPACE)
    member.apply(*(each for (kind, _), each in objects.items() if kind in kinds))
    token = member("create", "token", "federation-agent", "-n", NAMESPACE).strip()
    config = yaml.safe_load(member.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    kubeconfig = member.kubeconfig.with_suffix(".agent")
    kubeconfig.write_text(yaml.safe_dump(config))
    assert Kubectl(kubeconfig).run("get", "secrets", "-A").returncode
    return kubeconfig


def ports_reached(process: int) -> set[int]:
    """Return the ports to which a process has connections."""
    return {each.raddr.port for each in psutil.Process(process).net_connections("tcp") if each.raddr}


FORESEEN = ("nothing that concerns the federation", "leaves", "takes over")
"""What a join says beforehand: of an empty cluster, of one that kept its objects, and after one of them was adopted."""


class Leaving(StrEnum):
    """How a cluster leaves."""

    UNJOINED = "fedctl unjoin"
    DELETED = "kubectl delete"
    FORCED = "fedctl unjoin --force, while its agent is gone"


def leave_by(member: Member, way: Leaving) -> None:
    match way:
        case Leaving.UNJOINED:
            member.unjoin()
        case Leaving.DELETED:
            member.fed.kubectl("delete", "federatedcluster", member.name, "--timeout=60s")
        case Leaving.FORCED:
            member.unjoin("--force", "--reason", "its agent is gone")


def web_in(member: Member) -> tuple[str, bool]:
    """Return the uid of the Deployment in the member, and whether the federation manages it; "" without one."""
    found = member.kubectl.api().find("deployments", "web")
    if found is None:
        return "", False
    return found["metadata"]["uid"], names.MANAGED_LABEL in (found["metadata"].get("labels") or {})


def ready_replicas(cluster: Kubectl) -> int:
    found = cluster.api().find("deployments", "web")
    return found.get("status", {}).get("readyReplicas", 0) if found else 0


def test_a_member_that_is_never_connected_to_converges_and_survives_lost_connections_and_a_restart_of_the_host(
    tmp_path: Path,
) -> None:
    port = lasting_port()
    with free_clusters(tmp_path / "clusters", 1) as [kubeconfig], closing(DroppingForwarder(port)) as line:
        member = Kubectl(kubeconfig)
        member_port = int(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"].rsplit(":", 1)[1])
        with closing(start_host(tmp_path / "host", port)) as fed:
            fed.kubectl.apply(POLICY, DEPLOYMENT)
            token = token_for(fed, "paris", f"https://127.0.0.1:{line.port}")
            with agent(tmp_path / "agent", kubeconfig, token):
                eventually(lambda: ready_replicas(member), lambda seen: seen == 3, what="web in the member")
                eventually(lambda: ready_replicas(fed.kubectl), lambda seen: seen == 3, what="status on the host")
                assert member_port not in ports_reached(fed.process.pid), "the host connects to the member itself"

                [pod, *_] = fed.kubectl("get", "pods", "-o", "name").split()
                assert pod.startswith("pod/paris-web-")
                assert "starting" in fed.kubectl("logs", pod)
                assert fed.kubectl("exec", pod, "--", "echo", "hello") == "hello\n"

                log = (tmp_path / "agent.log").read_text
                for number in range(1, DROPS + 1):
                    eventually(
                        lambda: log().count(CONNECTED),
                        partial(le, number),
                        pause_s=0.02,
                        what=f"connection {number}",
                    )
                    line.drop()
                fed.kubectl("scale", "deploy/web", "--replicas=4")
                eventually(lambda: ready_replicas(member), lambda seen: seen == 4, what="the change in the member")

                eventually(log, lambda seen: "renewed the certificate" in seen, what="a renewed certificate")
                fed.stop()
                member("scale", "deploy/web", "--replicas=1")
                with closing(start_host(tmp_path / "host", port)) as again:
                    eventually(lambda: ready_replicas(member), lambda seen: seen == 4, what="drift repaired")
                    assert member_port not in ports_reached(again.process.pid)
                    _assert_token_is_used(again, tmp_path, kubeconfig, token)

                    # Who registers again ends the connected agent; the end of the cluster is the end of the other one.
                    with agent(
                        tmp_path / "successor", kubeconfig, token_for(again, "paris", f"https://127.0.0.1:{line.port}")
                    ):
                        eventually(log, lambda seen: REFUSED in seen, what="the previous agent refused")
                        successor = (tmp_path / "successor.log").read_text
                        eventually(successor, lambda seen: CONNECTED in seen, what="the connection of its successor")
                        fedctl("unjoin", "paris", KUBECONFIG=str(again.kubectl.kubeconfig))
                        eventually(successor, lambda seen: REFUSED in seen, what="the successor refused")


def test_what_a_cluster_kept_is_left_by_every_agent_that_joins_it_again(tmp_path: Path) -> None:
    """The cluster leaves in every way, and joins again by another agent each time, and without one at the end."""
    port = lasting_port()
    with free_clusters(tmp_path / "clusters", 1) as [kubeconfig], closing(start_host(tmp_path / "host", port)) as fed:
        member, host = Member(fed, "paris", kubeconfig), f"https://127.0.0.1:{port}"
        fed.kubectl.apply(POLICY, DEPLOYMENT)
        adopt = ("adopt", "deployment/web", "-n", "default", "--cluster", "paris")
        uid = ""
        for number, leave in enumerate(Leaving):
            foreseen = member.join(kubeconfig, "--dry-run")
            assert FORESEEN[number] in foreseen, foreseen
            with agent(tmp_path / f"agent-{number}", kubeconfig, token_for(fed, "paris", host)) as process:
                eventually(member.is_joined, bool, what="the registration")
                eventually(lambda: member.condition("Ready"), lambda seen: seen.get("status") == "True", what="ready")
                if number == 1:
                    assert web_in(member) == (uid, False), "it is taken over on demand only"
                    adopting = partial(fedctl, *adopt, check=False, KUBECONFIG=str(fed.kubectl.kubeconfig))
                    eventually(adopting, lambda done: done.returncode == 0, what="it is adopted")
                eventually(lambda: web_in(member)[1], bool, what="web is managed")
                uid = uid or web_in(member)[0]
                if leave is Leaving.FORCED:
                    process.kill()
                    process.wait(PATIENCE_S)
                leave_by(member, leave)
                eventually(member.is_joined, lambda seen: not seen, what="the cluster has left")
            assert web_in(member) == (uid, leave is Leaving.FORCED)
        assert "takes over" in member.join(kubeconfig, "--yes")
        eventually(lambda: ready_replicas(fed.kubectl), lambda seen: seen == 3, what="status on the host")
        assert web_in(member)[0] == uid


@pytest.mark.postgres
def test_an_agent_follows_the_leader_of_two_control_planes(tmp_path: Path) -> None:
    with PostgresServer() as database, free_clusters(tmp_path / "clusters", 1) as [kubeconfig], ExitStack() as running:
        member, url = Kubectl(kubeconfig), database.create_database()
        one = running.enter_context(closing(start_serve(tmp_path / "one", FEDERATION_STORE_URL=url)))
        eventually(lambda: is_leader(one), bool, what="the first one leads")
        two = running.enter_context(closing(start_serve(tmp_path / "two", FEDERATION_STORE_URL=url)))
        two.kubectl.apply(POLICY, DEPLOYMENT)
        # The agent tries the one that does not lead before the other.
        addresses = ",".join(address_of(each) for each in (two, one))
        token = token_for(two, "paris", addresses)
        with agent(tmp_path / "agent", agent_account(member), token):
            eventually(lambda: ready_replicas(member), lambda seen: seen == 3, what="web in the member")
            log = (tmp_path / "agent.log").read_text
            # The agent has what it asked for, and keeps no right to ask for more.
            member("delete", "clusterrolebinding", "federation-agent")
            assert f"server={address_of(one)}" in log()
            one.kill()
            two.kubectl("scale", "deploy/web", "--replicas=4")
            eventually(lambda: ready_replicas(member), lambda seen: seen == 4, what="the change of the other leader")
            eventually(lambda: ready_replicas(two.kubectl), lambda seen: seen == 4, what="its status")
            assert f"server={address_of(two)}" in log()


def _assert_token_is_used(fed: Federation, tmp_path: Path, kubeconfig: Path, token: str) -> None:
    command = ("agent", "--dir", str(tmp_path / "thief"), "--kubeconfig", str(kubeconfig), "--register", token)
    done = fedctl(*command, check=False)
    assert done.returncode == 1
    assert "the registration token is unknown, expired or used" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    eventually(
        lambda: {each["reason"] for each in fed.api("").list("events")["items"]},
        lambda seen: "AgentRefused" in seen,
        what="the event of the refused token",
    )
