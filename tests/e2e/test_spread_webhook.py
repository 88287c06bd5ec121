"""`fedctl spread-webhook` beside a cluster: real processes, kubectl, HTTPS, and a cluster that survives its end."""

import json
import select
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

from tests.support.federation import (
    CLI,
    PATIENCE_S,
    Kubectl,
    eventually,
    fedctl,
    federation,
    free_clusters,
    start_serve,
)
from tests.support.forkserver import Process, start_process
from tests.support.forwarder import forwarding
from tests.support.ports import lasting_port

pytestmark = [pytest.mark.e2e, pytest.mark.slow("services beside clusters")]

SPREAD = """
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  subsets:
  - name: first
    maxReplicas: 2
    requiredNodeSelectorTerm:
      matchExpressions:
      - {key: kubernetes.io/hostname, operator: In, values: [member-1-node-1]}
    patch: {metadata: {labels: {subset: first}}}
  - name: rest
    patch: {metadata: {labels: {subset: rest}}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""


@contextmanager
def spread_webhook(cluster: Path, *arguments: str) -> Iterator[Process]:
    """Run the service during the block, which begins when it is ready."""
    with TemporaryFile() as errors:
        command = ("spread-webhook", "--kubeconfig", str(cluster), *arguments)
        process = start_process(CLI, command, stderr=errors.fileno())
        assert process.stdout is not None
        with process.stdout:
            try:
                readable, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
                line = process.stdout.readline() if readable else ""
                errors.seek(0)
                assert line.startswith("ready https://"), errors.read().decode() or line
                yield process
            finally:
                process.kill()
                process.wait(PATIENCE_S)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    with free_clusters(tmp_path / "clusters", 1) as (kubeconfig,):
        yield kubeconfig


def subsets(kubectl: Kubectl) -> Counter[str]:
    pods: list[Any] = kubectl.api().list("pods", labelSelector="app=web")["items"]
    live = [pod["metadata"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return Counter(metadata["labels"].get("subset", "") for metadata in live)


def webhooks(kubectl: Kubectl) -> list[str]:
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    return [name for kind in kinds for name in kubectl.api().names(kind)]


def test_pods_are_spread_while_it_runs_and_created_without_it(cluster: Path) -> None:
    kubectl = Kubectl(cluster)
    with spread_webhook(cluster) as process:
        assert len(webhooks(kubectl)) == 2
        assert "workloadspread.apps.kruise.io/web created" in kubectl("apply", "-f", "-", stdin=SPREAD)
        kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
        _becomes(lambda: subsets(kubectl), Counter(first=2, rest=3))
        _becomes(lambda: _nodes(kubectl, "first"), {"member-1-node-1"})
        _check_what_users_see(kubectl)
        kubectl("scale", "deployment/web", "--replicas=2")
        _becomes(lambda: subsets(kubectl), Counter(first=2))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    assert webhooks(kubectl) == []
    kubectl("scale", "deployment/web", "--replicas=4")
    _becomes(lambda: subsets(kubectl), Counter({"first": 2, "": 2}))


def test_a_killed_service_stops_no_pod_and_the_next_one_takes_over(cluster: Path) -> None:
    kubectl = Kubectl(cluster)
    kubectl(
        "apply",
        "-f",
        "-",
        stdin=DEPLOYMENT.replace("name: web}", "name: other}", 1).replace("replicas: 5", "replicas: 1"),
    )
    with spread_webhook(cluster) as process:
        kubectl("apply", "-f", "-", stdin=SPREAD)
        process.kill()
        process.wait(PATIENCE_S)
    assert len(webhooks(kubectl)) == 2
    kubectl("scale", "deployment/other", "--replicas=3")
    kubectl("rollout", "status", "deployment/other", "--timeout=90s")
    with spread_webhook(cluster) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert webhooks(kubectl) == []
    assert (
        "stays, because there are objects"
        in fedctl("spread-webhook", "--kubeconfig", str(cluster), "--uninstall").stdout
    )
    kubectl("delete", "workloadspread", "--all")
    assert "are removed" in fedctl("spread-webhook", "--kubeconfig", str(cluster), "--uninstall").stdout
    assert "workloadspreads" not in kubectl("get", "crds", "-o", "name")
    assert "workloadspread" not in kubectl("get", "secrets", "-n", "kube-system", "-o", "name")


def test_processes_behind_one_url_share_a_certificate_and_replace_each_other(cluster: Path) -> None:
    kubectl, port = Kubectl(cluster), lasting_port()
    ports = [port, lasting_port(port)]
    with forwarding(ports) as address, ExitStack() as stack:

        def start(port: int) -> Process:
            arguments = ("--bind", f"127.0.0.1:{port}", "--url", f"https://{address}")
            return stack.enter_context(spread_webhook(cluster, *arguments))

        first, second = start(ports[0]), start(ports[1])
        secret = kubectl.json("get", "secret", "-n", "kube-system", "workloadspread.kubeadmiral.io")
        assert _bundles(kubectl) == {secret["data"]["ca.crt"]}
        kubectl("apply", "-f", "-", stdin=SPREAD)
        kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
        _becomes(lambda: subsets(kubectl), Counter(first=2, rest=3))
        first.kill()
        first.wait(PATIENCE_S)
        kubectl("scale", "deployment/web", "--replicas=8")
        _becomes(lambda: subsets(kubectl), Counter(first=2, rest=6))
        third = start(ports[0])
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE_S) == 0
        assert len(webhooks(kubectl)) == 2
        kubectl("scale", "deployment/web", "--replicas=10")
        _becomes(lambda: subsets(kubectl), Counter(first=2, rest=8))
        assert _bundles(kubectl) == {secret["data"]["ca.crt"]}
        third.send_signal(signal.SIGTERM)
        assert third.wait(PATIENCE_S) == 0
    assert webhooks(kubectl) == []


def _bundles(kubectl: Kubectl) -> set[str]:
    kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
    found = kubectl.json("get", kinds)["items"]
    return {webhook["clientConfig"]["caBundle"] for configuration in found for webhook in configuration["webhooks"]}


def _becomes(look: Callable[[], Any], expected: Any) -> None:
    eventually(look, lambda seen: seen == expected, what=f"{expected}")


def _nodes(kubectl: Kubectl, subset: str) -> set[str]:
    pods = kubectl.api().list("pods", labelSelector=f"subset={subset}")["items"]
    return {pod["spec"].get("nodeName", "") for pod in pods}


def _check_what_users_see(kubectl: Kubectl) -> None:
    header, row = kubectl("get", "ws", "web").splitlines()
    assert header.split() == ["NAME", "WORKLOADNAME", "WORKLOADKIND", "ADAPTIVE", "AGE"]
    assert "Deployment" in row
    assert "requiredNodeSelectorTerm" in kubectl(
        "explain", "workloadspread.spec.subsets", "--api-version=apps.kruise.io/v1alpha1"
    )
    stored = json.loads(kubectl("get", "workloadspreads.v1alpha1.apps.kruise.io", "web", "-o", "json"))
    assert stored["spec"]["subsets"][0]["requiredNodeSelectorTerm"]
    refused = kubectl.run("patch", "ws", "web", "--type=merge", "-p", '{"spec":{"targetRef":{"name":"another"}}}')
    assert "immutable" in refused.stderr
    second = SPREAD.replace("metadata: {name: web}", "metadata: {name: second}")
    assert "has the same target" in kubectl.run("apply", "-f", "-", stdin=second).stderr
    warned = kubectl.run(
        "patch",
        "ws",
        "web",
        "--type=json",
        "-p",
        '[{"op":"add","path":"/spec/subsets/1/patch/spec","value":{"priority2":1}}]',
    )
    assert 'unknown field "spec.subsets[1].patch.spec.priority2"' in warned.stderr


def test_serve_spreads_the_pods_of_a_cluster(cluster: Path, tmp_path: Path) -> None:
    kubectl = Kubectl(cluster)
    mount = f"{cluster}=127.0.0.1:0"
    with closing(start_serve(tmp_path / "host", arguments=["--spread-webhook", mount])) as running:
        eventually(lambda: webhooks(kubectl), lambda seen: len(seen) == 2, what="webhooks")
        kubectl("apply", "-f", "-", stdin=SPREAD)
        kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
        _becomes(lambda: subsets(kubectl), Counter(first=2, rest=3))
        assert "workloadspread" not in running.kubectl("get", "mutatingwebhookconfigurations", "-o", "name")
        assert running.stop() == 0
    assert webhooks(kubectl) == []


def test_serve_runs_although_a_cluster_cannot_be_reached(tmp_path: Path) -> None:
    unreachable = tmp_path / "kubeconfig"
    cluster = {"name": "x", "cluster": {"server": f"http://127.0.0.1:{lasting_port()}"}}
    context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
    config = {"clusters": [cluster], "contexts": [context], "users": [{"name": "x", "user": {}}]}
    unreachable.write_text(json.dumps({**config, "current-context": "x"}))
    mount = f"{unreachable}=127.0.0.1:0"
    with closing(start_serve(tmp_path / "host", arguments=["--spread-webhook", mount])) as running:
        assert "default" in running.kubectl("get", "namespaces", "-o", "name")
        eventually(lambda: running.log, lambda log: "spread-webhook" in log, what="a logged failure")
    refused = fedctl("serve", "--dir", str(tmp_path / "host"), "--spread-webhook", "nowhere", check=False)
    assert "write FILE=ADDRESS:PORT" in refused.stderr


def test_members_of_fedctl_up_spread_pods_without_another_process(tmp_path: Path) -> None:
    with federation(tmp_path / "up", members=1, arguments=["--workload-spreads"]) as running:
        kubectl = running.member("member-1")
        kubectl("apply", "-f", "-", stdin=SPREAD)
        kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
        _becomes(lambda: subsets(kubectl), Counter(first=2, rest=3))
        _becomes(lambda: _nodes(kubectl, "first"), {"member-1-node-1"})
