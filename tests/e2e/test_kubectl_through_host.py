"""The real kubectl against a member, by way of the host: reads, watches, logs and exec."""

import subprocess
from collections.abc import Iterator

import pytest

from tests.support.federation import Kubectl
from tests.support.proxiedmember import proxied_member
from tests.support.rest import eventually

pytestmark = pytest.mark.xdist_group("member-proxy")


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """Return kubectl of the host's administrator, who administers the member as well."""
    with proxied_member(tmp_path_factory.mktemp("proxied")) as running:
        found = Kubectl(running.member)
        eventually(lambda: found.run("get", "pods").returncode == 0)
        yield found


def test_reads_and_writes(kubectl: Kubectl) -> None:
    assert kubectl("get", "pods", "--no-headers").split()[:3] == ["web", "1/1", "Running"]
    kubectl("create", "configmap", "settings", "--from-literal=a=b")
    assert kubectl.json("get", "configmap", "settings")["data"] == {"a": "b"}
    kubectl("delete", "configmap", "settings")


def test_a_watch(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "first")
    process = kubectl.popen("get", "configmaps", "--watch", "-o", "name")
    assert process.stdout is not None
    try:
        assert "configmap/first\n" in iter(process.stdout.readline, "")
        # kubectl watches from the revision of its list, so nothing after this line is missed.
        kubectl("create", "configmap", "second")
        assert "configmap/second\n" in iter(process.stdout.readline, "")
    finally:
        process.kill()
        process.communicate()


def test_logs(kubectl: Kubectl) -> None:
    assert kubectl("logs", "web", "--tail=1").startswith("nginx of web on node-1: alive ")
    assert kubectl("logs", "web", "--tail=3", "--timestamps").count("Z nginx of web") == 3


def test_followed_logs(kubectl: Kubectl) -> None:
    process = kubectl.popen("logs", "web", "-f", "--tail=1")
    assert process.stdout is not None
    try:
        assert len({process.stdout.readline() for _ in range(2)}) == 2
    finally:
        process.kill()
        process.communicate()


def test_exec(kubectl: Kubectl) -> None:
    assert kubectl("exec", "web", "--", "echo", "hello") == "hello\n"
    assert kubectl("exec", "-i", "web", "--", "cat", stdin="x" * 300_000) == "x" * 300_000


def test_the_exit_code_of_exec(kubectl: Kubectl) -> None:
    done: subprocess.CompletedProcess[str] = kubectl.run("exec", "web", "--", "sh", "-c", "exit 7")
    assert done.returncode == 7
    assert "exit code 7" in done.stderr


def test_refusals_of_the_member_are_shown(kubectl: Kubectl) -> None:
    assert 'pods "none" not found' in kubectl.run("exec", "none", "--", "echo").stderr
    assert "container x is not valid for pod web" in kubectl.run("logs", "web", "-c", "x").stderr
