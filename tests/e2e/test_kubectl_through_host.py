"""The real kubectl against a member, by way of the host: reads, watches, logs and exec."""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.resources import PODS
from federation.client.kubeconfig import load_kubeconfig
from federation.client.pool import ClusterPool
from federation.memberproxy.connector import MemberProxy
from federation.simulator.podconnections import PodExec, PodLogs
from tests.support.apiserver import api_server
from tests.support.federation import Kubectl
from tests.support.rest import Api, eventually

pytestmark = pytest.mark.xdist_group("member-proxy")
PROXY = "/apis/core.kubeadmiral.io/v1alpha1/federatedclusters/east/proxy"
POD = {
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "nginx", "image": "nginx"}], "nodeName": "node-1"},
}
RUNNING = {"name": "nginx", "ready": True, "restartCount": 0, "image": "nginx", "imageID": "nginx"}
STATUS = {
    "phase": "Running",
    "containerStatuses": [{**RUNNING, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
}


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """Return kubectl of the host's administrator, who administers the member as well."""
    pool, ours = ClusterPool(), ("core.kubeadmiral.io", "v1alpha1", "federatedclusters", "proxy")
    with (
        api_server(tmp_path_factory.mktemp("member")) as east,
        api_server(tmp_path_factory.mktemp("host"), connectors={ours: MemberProxy(pool)}) as host,
        closing(Api(load_kubeconfig(east.kubeconfig), "default")) as member,
    ):
        for name, connector in (("log", PodLogs), ("exec", PodExec)):
            east.connect(PODS, name, connector(east.registry, SystemClock()))
        group = {"kind": "Group", "name": "federation:system:masters", "apiGroup": "rbac.authorization.k8s.io"}
        role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
        member.create("clusterrolebindings", {"metadata": {"name": "hosts"}, "subjects": [group], "roleRef": role})
        member.create("pods", POD)
        member.patch("pods", "web", {"status": STATUS}, "status")
        pool.set_connection("east", load_kubeconfig(east.kubeconfig))
        config = yaml.safe_load(host.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] += PROXY
        kubeconfig: Path = tmp_path_factory.mktemp("client") / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(config))
        found = Kubectl(kubeconfig)
        eventually(lambda: found.run("get", "pods").returncode == 0)
        yield found
        host.run(pool.close())


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
