"""Read commands of the real kubectl against a real HTTPS server.

What is only HTTP is in tests/conformance/apiserver. No controllers run, so tests that need a status write it through the
API. Writes are in `test_kubectl_writes.py`.
"""

import json
from typing import Any

import pytest
import yaml

from tests.support.kubectl import DEPLOYMENT, TIMEOUT_S, Kubectl
from tests.support.rest import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.real_time]


def test_the_server_and_its_resources_are_named(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36.0+federation" in kubectl("version")
    assert "control plane" in kubectl("cluster-info")
    assert kubectl("get", "--raw", "/readyz") == "ok"
    table = kubectl("api-resources")
    lines = {line.split()[0]: line.split() for line in table.splitlines()}
    assert lines["deployments"] == ["deployments", "deploy", "apps/v1", "true", "Deployment"]
    assert lines["namespaces"] == ["namespaces", "ns", "v1", "false", "Namespace"]
    assert "selfsubjectaccessreviews" in lines
    chosen = kubectl("api-resources", "--namespaced=true", "-o", "name", "--verbs=list,get", "--categories=all").split()
    assert {"deployments.apps", "pods"} <= set(chosen)
    assert "configmaps" not in chosen
    versions = kubectl("api-versions").split()
    assert {"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "authorization.k8s.io/v1"} <= set(versions)


def test_get_prints_tables(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    header, line = kubectl("get", "deploy", "--show-labels", "-L", "app").splitlines()
    assert header.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "APP", "LABELS"]
    assert line.split()[:4] == ["web", "0/2", "0", "0"]
    assert line.split()[-2:] == ["web", "app=web"]
    wide = kubectl("get", "deployments.apps", "-o", "wide").splitlines()
    assert wide[0].split()[-3:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert wide[1].split()[-3:] == ["web", "nginx:1.25", "app=web"]
    assert kubectl("get", "deploy", "-o", "custom-columns=N:.metadata.name,R:.spec.replicas").split()[2:] == [
        "web",
        "2",
    ]
    assert "deployment.apps/web" in kubectl("get", "all")


def test_get_filters_by_selectors(kubectl: Kubectl) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "blue")):
        kubectl.api.create("configmaps", {"metadata": {"name": name, "labels": {"color": color}}})
    names = ("get", "configmaps", "-o", "name")
    assert kubectl(*names, "-l", "color notin (blue),color").split() == ["configmap/a"]
    assert kubectl(*names, "-l", "color=blue", "--chunk-size=1").split() == ["configmap/b", "configmap/c"]
    assert kubectl(*names, "--field-selector", "metadata.name=b").split() == ["configmap/b"]
    everywhere = kubectl("get", "configmaps", "-A", "-l", "color", "--sort-by=.metadata.name").splitlines()
    assert everywhere[0].split() == ["NAMESPACE", "NAME", "DATA", "AGE"]
    mine = [line.split()[1] for line in everywhere if line.split()[0] == kubectl.namespace]
    assert mine == ["a", "b", "c"]
    result = kubectl.run("get", "secrets")
    assert result.stderr == f"No resources found in {kubectl.namespace} namespace.\n"


def test_get_errors_name_the_missing_object(kubectl: Kubectl) -> None:
    assert kubectl.fails("get", "deploy", "nope") == (
        'Error from server (NotFound): deployments.apps "nope" not found\n'
    )
    assert "the server doesn't have a resource type" in kubectl.fails("get", "nonsense")
    assert "unable to parse requirement" in kubectl.fails("get", "pods", "-l", "a==b==c")
    assert "field label not supported" in kubectl.fails("get", "pods", "--field-selector", "nope=x")
    assert "NotFound" in kubectl.fails("get", "--raw", "/nonsense")


def test_get_watch_prints_changes(kubectl: Kubectl) -> None:
    kubectl.api.create("configmaps", {"metadata": {"name": "first"}})
    process = kubectl.popen("get", "configmaps", "-w", "--field-selector", "metadata.name!=kube-root-ca.crt")
    assert process.stdout is not None
    try:
        assert process.stdout.readline().split() == ["NAME", "DATA", "AGE"]
        assert process.stdout.readline().split()[:2] == ["first", "0"]
        kubectl.api.create("configmaps", {"metadata": {"name": "second"}, "data": {"a": "1"}})
        assert process.stdout.readline().split()[:2] == ["second", "1"]
        kubectl.api.delete("configmaps", "first")
        assert process.stdout.readline().split()[:2] == ["first", "0"]
    finally:
        process.kill()
        process.communicate()


def an_event(kubectl: Kubectl, uid: str) -> dict[str, Any]:
    regarding = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "namespace": kubectl.namespace,
        "uid": uid,
    }
    return {
        "metadata": {"name": "web.1", "namespace": kubectl.namespace},
        "involvedObject": regarding,
        "reason": "Scheduled",
        "message": "placed in three clusters",
        "type": "Normal",
        "count": 1,
        "source": {"component": "test"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }


def test_describe_shows_the_object_and_its_events(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl.api.create("events", an_event(kubectl, kubectl.api.get("deployments", "web")["metadata"]["uid"]))
    described = kubectl("describe", "deploy", "web")
    assert "Replicas:               2 desired" in described
    assert "placed in three clusters" in described
    assert "Name:         " + kubectl.namespace in kubectl("describe", "namespace", kubectl.namespace)
    header, line = kubectl("get", "events").splitlines()
    assert header.split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "deployment/web" in line
    assert "placed in three clusters" in kubectl("events", "--for", "deployment/web")


def test_rollout_status_and_wait_return_on_success(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    patience = f"--timeout={TIMEOUT_S}s"
    process = kubectl.popen("rollout", "status", "deployment/web", patience)
    waiting = kubectl.popen("wait", "--for=condition=Available", "deployment/web", patience)
    gone = kubectl.popen("wait", "--for=delete", "deployment/web", patience)
    created = kubectl.popen("wait", "--for=create", "configmap/later", patience)
    path = kubectl.popen("wait", "--for=jsonpath={.status.readyReplicas}=2", "deployment/web", patience)
    assert process.stdout is not None
    assert "Waiting for deployment" in process.stdout.readline()
    ready = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    condition = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}
    kubectl.put_status("deployments", "web", {"observedGeneration": 1, **ready, "conditions": [condition]})
    assert 'deployment "web" successfully rolled out' in process.communicate(timeout=TIMEOUT_S)[0]
    assert waiting.communicate(timeout=TIMEOUT_S)[0] == "deployment.apps/web condition met\n"
    assert path.communicate(timeout=TIMEOUT_S)[0] == "deployment.apps/web condition met\n"
    kubectl.api.delete("deployments", "web")
    kubectl.api.create("configmaps", {"metadata": {"name": "later"}})
    assert (gone.communicate(timeout=TIMEOUT_S)[1], gone.returncode) == ("", 0)
    assert "condition met" in created.communicate(timeout=TIMEOUT_S)[0]


def test_explain_describes_fields(kubectl: Kubectl) -> None:
    text = kubectl("explain", "deployment.spec.replicas")
    assert "GROUP:      apps" in text
    assert "FIELD: replicas <integer>" in text
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
    robot = f"--serviceaccount={kubectl.namespace}:robot"
    kubectl("create", "rolebinding", "reader", "--role=reader", "--user=bob", robot)
    attributes = {"namespace": kubectl.namespace, "verb": "list", "resource": "configmaps"}
    review = {"spec": {"user": "bob", "resourceAttributes": attributes}}
    reviews = "authorization.k8s.io/v1/subjectaccessreviews"
    cluster = kubectl.api.within("")
    eventually(lambda: cluster.create(reviews, review)["status"]["allowed"])
    assert "configmaps" in kubectl("auth", "can-i", "--list", "--as=bob")
    assert kubectl("get", "configmaps", "-o", "name", "--as=bob") == "configmap/kube-root-ca.crt\n"
    assert kubectl.fails("get", "secrets", "--as=bob") == (
        'Error from server (Forbidden): secrets is forbidden: User "bob" cannot list resource "secrets" '
        f'in API group "" in the namespace "{kubectl.namespace}"\n'
    )


def test_a_service_account_uses_its_token(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    bare = Kubectl(kubectl.parts, kubectl.api)
    config = kubectl.parts.kubeconfig.with_name(f"{kubectl.namespace}.kubeconfig")
    bare.environment["KUBECONFIG"] = str(config)

    def use(token: str) -> None:
        document = yaml.safe_load(kubectl.parts.kubeconfig.read_text())
        document["users"][0]["user"] = {"token": token}
        config.write_text(yaml.safe_dump(document))

    use(kubectl("create", "token", "robot", "--duration=1h").strip())
    who = json.loads(bare("auth", "whoami", "-o", "json"))["status"]["userInfo"]["username"]
    assert who == f"system:serviceaccount:{kubectl.namespace}:robot"
    assert f'User "{who}" cannot list resource "pods"' in bare.fails("get", "pods")
    use("nonsense")
    assert "You must be logged in to the server" in bare.fails("get", "configmaps")
