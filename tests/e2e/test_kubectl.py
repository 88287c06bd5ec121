"""Read commands of the real kubectl against a real HTTPS server.

One server for the module, one namespace per test. No controllers run, so tests that need
a status write it through the API. Writes are in `test_kubectl_writes.py`.
"""

import json
import time
from pathlib import Path

import pytest

from tests.support.kubectl import DEPLOYMENT, Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.real_time]


def test_version_names_the_server(kubectl: Kubectl) -> None:
    version = kubectl.json("version")
    assert version["serverVersion"]["gitVersion"] == "v1.36.0+federation"
    assert "Server Version: v1.36.0+federation" in kubectl("version")


def test_api_resources_and_versions_are_listed(kubectl: Kubectl) -> None:
    table = kubectl("api-resources")
    lines = {line.split()[0]: line.split() for line in table.splitlines()}
    assert lines["deployments"] == ["deployments", "deploy", "apps/v1", "true", "Deployment"]
    assert lines["namespaces"] == ["namespaces", "ns", "v1", "false", "Namespace"]
    assert "deployments.apps" in kubectl("api-resources", "--namespaced=true", "-o", "name", "--verbs=list,get")
    assert "selfsubjectaccessreviews" in lines
    versions = kubectl("api-versions").split()
    assert {"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "authorization.k8s.io/v1"} <= set(versions)
    assert "pods" in kubectl("api-resources", "--categories=all")


def test_get_prints_all_output_formats(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    table = kubectl("get", "deploy")
    assert table.splitlines()[0].split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert table.splitlines()[1].split()[:4] == ["web", "0/2", "0", "0"]
    wide = kubectl("get", "deployments.apps", "-o", "wide").splitlines()
    assert wide[0].split()[-3:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert wide[1].split()[-3:] == ["web", "nginx:1.25", "app=web"]
    assert "kind: Deployment" in kubectl("get", "deploy", "web", "-o", "yaml")
    assert kubectl.json("get", "deploy")["items"][0]["metadata"]["name"] == "web"
    assert kubectl("get", "deploy", "-o", "name") == "deployment.apps/web\n"
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "2"
    assert kubectl("get", "deploy", "web", "-o", "custom-columns=N:.metadata.name").split() == ["N", "web"]
    assert kubectl("get", "deploy", "--show-labels").splitlines()[1].endswith("app=web")
    assert kubectl("get", "deploy", "-L", "app").splitlines()[1].endswith("web")
    assert "deployment.apps/web" in kubectl("get", "all")


def test_get_filters_by_selectors(kubectl: Kubectl) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "blue")):
        kubectl("create", "configmap", name)
        kubectl("label", "configmap", name, f"color={color}")
    names = ("get", "configmaps", "-o", "name")
    assert kubectl(*names, "-l", "color=blue").split() == ["configmap/b", "configmap/c"]
    assert kubectl(*names, "-l", "color notin (blue),color").split() == ["configmap/a"]
    assert kubectl(*names, "--field-selector", "metadata.name=b").split() == ["configmap/b"]
    everywhere = kubectl("get", "configmaps", "-A", "-l", "color")
    assert everywhere.splitlines()[0].split() == ["NAMESPACE", "NAME", "DATA", "AGE"]
    assert everywhere.count(kubectl.namespace) == 3
    assert kubectl(*names, "-l", "color", "--chunk-size=1").count("\n") == 3
    assert kubectl("get", "configmaps", "--sort-by=.metadata.name", "-l", "color").splitlines()[1].startswith("a")
    result = kubectl.run("get", "secrets")
    assert result.stderr == f"No resources found in {kubectl.namespace} namespace.\n"


def test_get_errors_name_the_missing_object(kubectl: Kubectl) -> None:
    assert kubectl.fails("get", "deploy", "nope") == (
        'Error from server (NotFound): deployments.apps "nope" not found\n'
    )
    assert "the server doesn't have a resource type" in kubectl.fails("get", "nonsense")
    assert "unable to parse requirement" in kubectl.fails("get", "pods", "-l", "a==b==c")
    assert "field label not supported" in kubectl.fails("get", "pods", "--field-selector", "nope=x")


def test_get_watch_prints_changes(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "first")
    process = kubectl.popen("get", "configmaps", "-w", "--field-selector", "metadata.name!=kube-root-ca.crt")
    assert process.stdout is not None
    try:
        assert process.stdout.readline().split() == ["NAME", "DATA", "AGE"]
        assert process.stdout.readline().split()[:2] == ["first", "0"]
        kubectl("create", "configmap", "second", "--from-literal=a=1")
        assert process.stdout.readline().split()[:2] == ["second", "1"]
        kubectl("delete", "configmap", "first")
        assert process.stdout.readline().split()[:2] == ["first", "0"]
    finally:
        process.kill()
        process.communicate()
    process = kubectl.popen("get", "configmap", "second", "-o", "name", "--watch-only")
    process.kill()
    process.communicate()


def test_describe_shows_the_object_and_its_events(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    uid = kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.uid}")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": kubectl.namespace},
        "involvedObject": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "web",
            "namespace": kubectl.namespace,
            "uid": uid,
        },
        "reason": "Scheduled",
        "message": "placed in three clusters",
        "type": "Normal",
        "count": 1,
        "source": {"component": "test"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    kubectl("create", "-f", "-", stdin=json.dumps(event))
    described = kubectl("describe", "deploy", "web")
    assert "Replicas:               2 desired" in described
    assert "placed in three clusters" in described
    assert "Name:         " + kubectl.namespace in kubectl("describe", "namespace", kubectl.namespace)
    for kind in ("configmap", "secret", "service", "pod", "job", "serviceaccount"):
        kubectl("describe", kind) if kubectl("get", kind, "-o", "name") else None
    events = kubectl("get", "events").splitlines()
    assert events[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "deployment/web" in events[1]
    assert "placed in three clusters" in kubectl("events", "--for", "deployment/web")


def test_rollout_status_and_wait_return_on_success(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    process = kubectl.popen("rollout", "status", "deployment/web", "--timeout=90s")
    waiting = kubectl.popen("wait", "--for=condition=Available", "deployment/web", "--timeout=90s")
    path = kubectl.popen("wait", "--for=jsonpath={.status.readyReplicas}=2", "deployment/web", "--timeout=90s")
    assert process.stdout is not None
    assert "Waiting for deployment" in process.stdout.readline()
    kubectl.put_status(
        "deploy",
        "web",
        {
            "observedGeneration": 1,
            "replicas": 2,
            "updatedReplicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}],
        },
    )
    assert 'deployment "web" successfully rolled out' in process.communicate(timeout=20)[0]
    assert waiting.communicate(timeout=20)[0] == "deployment.apps/web condition met\n"
    assert path.communicate(timeout=20)[0] == "deployment.apps/web condition met\n"
    assert kubectl("get", "deploy", "web").splitlines()[1].split()[:4] == ["web", "2/2", "2", "2"]
    gone = kubectl.popen("wait", "--for=delete", "deployment/web", "--timeout=90s")
    kubectl("delete", "deploy", "web")
    assert gone.communicate(timeout=20)[1] == ""
    created = kubectl.popen("wait", "--for=create", "configmap/later", "--timeout=90s")
    kubectl("create", "configmap", "later")
    assert "condition met" in created.communicate(timeout=20)[0]
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "pause", "deployment/web")
    kubectl("rollout", "resume", "deployment/web")


def test_explain_describes_fields(kubectl: Kubectl) -> None:
    text = kubectl("explain", "deployment.spec.replicas")
    assert "GROUP:      apps" in text
    assert "FIELD: replicas <integer>" in text
    assert "strategy" in kubectl("explain", "deployments.spec")
    assert "containers" in kubectl("explain", "pod", "--recursive")
    assert "does not exist" in kubectl.fails("explain", "deployment.spec.nope")


def test_auth_reports_user_and_permissions(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "deployments") == "yes\n"
    who = kubectl("auth", "whoami")
    assert "federation-admin" in who
    assert "system:masters" in who
    refused = kubectl.run("auth", "can-i", "delete", "pods", "--as=bob")
    assert (refused.stdout, refused.returncode) == ("no\n", 1)
    kubectl("create", "role", "reader", "--verb=get,list,watch", "--resource=configmaps")
    kubectl(
        "create", "rolebinding", "reader", "--role=reader", "--user=bob", f"--serviceaccount={kubectl.namespace}:robot"
    )
    kubectl("create", "serviceaccount", "robot")
    deadline = time.monotonic() + 10
    while kubectl.run("auth", "can-i", "list", "configmaps", "--as=bob").returncode:
        assert time.monotonic() < deadline
    assert "configmaps" in kubectl("auth", "can-i", "--list", "--as=bob")
    kubectl("create", "configmap", "seen")
    assert "configmap/seen\n" in kubectl("get", "configmaps", "-o", "name", "--as=bob")
    assert kubectl.fails("get", "secrets", "--as=bob") == (
        'Error from server (Forbidden): secrets is forbidden: User "bob" cannot list resource "secrets" '
        f'in API group "" in the namespace "{kubectl.namespace}"\n'
    )
    token = kubectl("create", "token", "robot").strip()
    bare = Kubectl(kubectl.parts, Path(kubectl.environment["HOME"]), kubectl.namespace)
    config = kubectl.parts.kubeconfig.with_name(f"{kubectl.namespace}.kubeconfig")
    bare.environment["KUBECONFIG"] = str(config)
    bare(
        "config",
        "set-cluster",
        "c",
        f"--server={kubectl.parts.server}",
        f"--certificate-authority={kubectl.parts.pki.ca_certificate}",
    )
    bare("config", "set-credentials", "u", f"--token={token}")
    bare("config", "set-context", "x", "--cluster=c", "--user=u")
    bare("config", "use-context", "x")
    bare("get", "configmaps")
    assert f'User "system:serviceaccount:{kubectl.namespace}:robot" cannot list resource "pods"' in bare.fails(
        "get", "pods"
    )
    bare("config", "set-credentials", "u", "--token=nonsense")
    assert "You must be logged in to the server" in bare.fails("get", "configmaps")


def test_raw_paths_are_served(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert "[+]rbac ok" in kubectl("get", "--raw", "/readyz?verbose")
    assert "federation_server_requests_total" in kubectl("get", "--raw", "/metrics")
    assert "/apis" in kubectl("get", "--raw", "/")
    assert json.loads(kubectl("get", "--raw", "/openapi/v2"))["swagger"] == "2.0"
    decisions = json.loads(kubectl("get", "--raw", "/federation/v1/decisions?kind=Deployment&name=web&namespace=a"))
    assert decisions["items"] == []
    assert "NotFound" in kubectl.fails("get", "--raw", "/nonsense")
    assert kubectl("cluster-info").startswith("\x1b[0;32mKubernetes control plane") or "control plane" in kubectl(
        "cluster-info"
    )
