"""Pull mode with real processes: a member that the host never connects to joins, converges and survives lost connections."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from operator import le
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it has no stubs of its own
import pytest
import yaml

from tests.support.federation import FEDCTL, Federation, Kubectl, eventually, fedctl, free_clusters, start_serve
from tests.support.forwarder import DroppingForwarder, free_ports
from tests.support.joining import DEPLOYMENT, POLICY

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("pull-mode")]
DROPS = 100
CONNECTED = "] connected to the host"


@contextmanager
def agent(directory: Path, kubeconfig: Path, token: str) -> Iterator[subprocess.Popen[str]]:
    """Run an agent during the block."""
    command = [*FEDCTL, "agent", "--dir", str(directory), "--kubeconfig", str(kubeconfig), "--register", token]
    with (directory.parent / "agent.log").open("a") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def token_for(fed: Federation, name: str, port: int) -> str:
    """Return a registration token for an agent that reaches the federation at another port."""
    arguments = ("token", "create", name, "--server", f"https://127.0.0.1:{port}", "--output", "token")
    return fedctl(*arguments, KUBECONFIG=str(fed.kubectl.kubeconfig)).stdout.strip()


def ports_reached(process: int) -> set[int]:
    """Return the ports to which a process has connections."""
    return {each.raddr.port for each in psutil.Process(process).net_connections("tcp") if each.raddr}


def ready_replicas(cluster: Kubectl) -> str:
    return cluster("get", "deploy", "web", "--ignore-not-found", "-o", "jsonpath={.status.readyReplicas}")


def test_a_member_that_is_never_connected_to_converges_and_survives_lost_connections_and_a_restart_of_the_host(
    tmp_path: Path,
) -> None:
    port = free_ports(1)[0]
    with free_clusters(tmp_path / "clusters", 1) as [kubeconfig], closing(DroppingForwarder(port)) as line:
        member = Kubectl(kubeconfig)
        member_port = int(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"].rsplit(":", 1)[1])
        with closing(start_serve(tmp_path / "host", arguments=("--port", str(port)))) as fed:
            fed.kubectl.apply(POLICY, DEPLOYMENT)
            token = token_for(fed, "paris", line.port)
            with agent(tmp_path / "agent", kubeconfig, token):
                eventually(lambda: ready_replicas(member), lambda seen: seen == "3", what="web in the member")
                eventually(lambda: ready_replicas(fed.kubectl), lambda seen: seen == "3", what="status on the host")
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
                eventually(lambda: ready_replicas(member), lambda seen: seen == "4", what="the change in the member")

                fed.stop()
                member("scale", "deploy/web", "--replicas=1")
                with closing(start_serve(tmp_path / "host", arguments=("--port", str(port)))) as again:
                    eventually(lambda: ready_replicas(member), lambda seen: seen == "4", what="drift repaired")
                    assert member_port not in ports_reached(again.process.pid)
                    _assert_token_is_used(again, tmp_path, kubeconfig, token)

                    # The end of the cluster is the end of its agent.
                    fedctl("unjoin", "paris", KUBECONFIG=str(again.kubectl.kubeconfig))
                    eventually(log, lambda seen: "does not accept this agent any more" in seen, what="agent refused")


def _assert_token_is_used(fed: Federation, tmp_path: Path, kubeconfig: Path, token: str) -> None:
    command = ("agent", "--dir", str(tmp_path / "thief"), "--kubeconfig", str(kubeconfig), "--register", token)
    done = fedctl(*command, check=False)
    assert done.returncode == 1
    assert "the registration token is unknown, expired or used" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    eventually(
        lambda: fed.kubectl("get", "events", "-A", "-o", "jsonpath={.items[*].reason}"),
        lambda seen: "AgentRefused" in seen,
        what="the event of the refused token",
    )
