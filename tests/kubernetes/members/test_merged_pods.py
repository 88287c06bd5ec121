"""kubectl on the host with pods of a real cluster: lists, logs, exec, forwarded ports, and the rights of the member."""

from collections.abc import Iterator

import httpx
import pytest
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import RealFederation, real_federation
from tests.support.federation import eventually
from tests.support.joining import DEPLOYMENT, POLICY
from tests.support.vectors import ROOT

GRANTS = ROOT / "examples" / "member-proxy"


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    with real_federation(tmp_path_factory.mktemp("pods"), {"paris": real[0]}) as running:
        running.kubectl.apply(POLICY, DEPLOYMENT)
        running.kubectl("rollout", "status", "deploy/web", "--timeout=90s")
        yield running
        running.member("paris")("delete", "-f", str(GRANTS), "--ignore-not-found")


@pytest.fixture(scope="module")
def pod(fed: RealFederation) -> str:
    """The name on the host of a pod that runs in the member, whose administrator lets the host's administrators act."""
    refused = fed.kubectl.run("get", "pods")
    assert refused.stdout == ""
    assert "does not let the federation act for its users" in refused.stderr
    fed.member("paris")("apply", "-f", str(GRANTS))
    found = eventually(lambda: fed.kubectl("get", "pods", "-o", "name").split(), bool, what="pods on the host")
    return str(found[0]).removeprefix("pod/")


def test_pods_are_listed_described_and_waited_for(fed: RealFederation, pod: str) -> None:
    raw = fed.member("paris")("get", "pods", "-o", "jsonpath={.items[*].metadata.name}").split()
    assert sorted(fed.kubectl("get", "pods", "-o", "name").split()) == sorted(f"pod/paris-{name}" for name in raw)
    fed.kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=60s")
    described = fed.kubectl("describe", "pod", pod)
    assert "Controlled By:  ReplicaSet/web-" in described
    assert "Successfully assigned default/web-" in described
    assert len(fed.kubectl("get", "nodes", "-o", "name").split()) == 2


def test_a_watch_shows_what_happens_in_the_member(fed: RealFederation, pod: str) -> None:
    process = fed.kubectl.popen("get", "pods", "--watch", "-o", "name")
    assert process.stdout is not None
    try:
        # kubectl watches from the revision of its list, so nothing after these lines is missed.
        listed = [process.stdout.readline() for _ in fed.kubectl("get", "pods", "-o", "name").split()]
        assert f"pod/{pod}\n" in listed
        fed.member("paris")("annotate", "pod", pod.removeprefix("paris-"), "touched=yes")
        assert process.stdout.readline() == f"pod/{pod}\n"
    finally:
        process.kill()
        process.communicate()


def test_logs_exec_and_forwarded_ports(fed: RealFederation, pod: str) -> None:
    raw = pod.removeprefix("paris-")
    assert fed.kubectl("logs", pod).endswith(f" of {raw}: ready\n")
    assert fed.kubectl("exec", pod, "--", "echo", "hello", "world") == "hello world\n"
    process = fed.kubectl.popen("port-forward", pod, ":80")
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[2]
        assert httpx.get(f"http://{address}/a", trust_env=False).text == f"pod {raw}, port 80\nGET /a HTTP/1.1\n"
    finally:
        process.kill()
        process.communicate()


def test_members_without_metrics_are_named(fed: RealFederation, pod: str) -> None:
    assert pod
    done = fed.kubectl.run("top", "pods")
    assert "pods of cluster paris are missing: the server could not find the requested resource" in done.stderr
