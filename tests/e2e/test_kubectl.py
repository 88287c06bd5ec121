"""The real kubectl against a real HTTPS server: every command that a user of a Kubernetes cluster knows.

One server for the module, one namespace per test. Nothing acts on the objects here (no controllers), so tests that need
a status write it through the API themselves.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.apiserver import Parts, api_server

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.real_time]
KUBECTL = Path(sys.executable).parent / "kubectl"
TIMEOUT_S = 60

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1.25", ports: [{containerPort: 80}]}
"""


class Kubectl:
    """Runs kubectl in one namespace."""

    def __init__(self, parts: Parts, home: Path, namespace: str) -> None:
        self.parts = parts
        self.namespace = namespace
        self.environment = {
            "KUBECONFIG": str(parts.kubeconfig),
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "KUBECTL_KUBERC": "false",
        }

    def popen(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [str(KUBECTL), "--namespace", self.namespace, *arguments],
            env=self.environment | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command that may fail."""
        process = self.popen(*arguments, **environment)
        try:
            out, err = process.communicate(stdin, timeout=TIMEOUT_S)
        finally:
            process.kill()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        """Run a command that must succeed without a warning and return what it prints."""
        result = self.run(*arguments, stdin=stdin, **environment)
        assert result.returncode == 0, f"kubectl {' '.join(arguments)}: {result.stderr}{result.stdout}"
        assert result.stderr == "", f"kubectl {' '.join(arguments)}: {result.stderr}"
        return result.stdout

    def fails(self, *arguments: str, stdin: str = "") -> str:
        """Run a command that must fail and return its error."""
        result = self.run(*arguments, stdin=stdin)
        assert result.returncode != 0, result.stdout
        return result.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def put_status(self, kind: str, name: str, status: dict[str, Any]) -> None:
        patch = json.dumps({"status": status})
        self("patch", kind, name, "--subresource=status", "--type=merge", "-p", patch)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    with api_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(parts: Parts, home: Path, request: pytest.FixtureRequest) -> Kubectl:
    name = request.node.name.removeprefix("test_").split("[")[0].replace("_", "-")[:40].strip("-")
    Kubectl(parts, home, "default")("create", "namespace", name)
    return Kubectl(parts, home, name)


def test_version_names_the_server(kubectl: Kubectl) -> None:
    version = kubectl.json("version")
    assert version["serverVersion"]["gitVersion"] == "v1.36.0+federation"
    assert "Server Version: v1.36.0+federation" in kubectl("version")


def test_api_resources_and_versions(kubectl: Kubectl) -> None:
    table = kubectl("api-resources")
    lines = {line.split()[0]: line.split() for line in table.splitlines()}
    assert lines["deployments"] == ["deployments", "deploy", "apps/v1", "true", "Deployment"]
    assert lines["namespaces"] == ["namespaces", "ns", "v1", "false", "Namespace"]
    assert "deployments.apps" in kubectl("api-resources", "--namespaced=true", "-o", "name", "--verbs=list,get")
    assert "selfsubjectaccessreviews" in lines
    versions = kubectl("api-versions").split()
    assert {"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "authorization.k8s.io/v1"} <= set(versions)
    assert "pods" in kubectl("api-resources", "--categories=all")


def test_get_in_all_forms(kubectl: Kubectl) -> None:
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


def test_get_selects(kubectl: Kubectl) -> None:
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


def test_get_errors_say_what_is_missing(kubectl: Kubectl) -> None:
    assert kubectl.fails("get", "deploy", "nope") == (
        'Error from server (NotFound): deployments.apps "nope" not found\n'
    )
    assert "the server doesn't have a resource type" in kubectl.fails("get", "nonsense")
    assert "unable to parse requirement" in kubectl.fails("get", "pods", "-l", "a==b==c")
    assert "field label not supported" in kubectl.fails("get", "pods", "--field-selector", "nope=x")


def test_get_watches(kubectl: Kubectl) -> None:
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


def test_create_from_generators_and_files(kubectl: Kubectl, tmp_path: Path) -> None:
    assert (
        kubectl("create", "deployment", "nginx", "--image=nginx", "--replicas=3") == "deployment.apps/nginx created\n"
    )
    kubectl("create", "secret", "generic", "s", "--from-literal=password=hunter2")
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "job", "j", "--image=busybox", "--", "true")
    kubectl("create", "cronjob", "cj", "--image=busybox", "--schedule=*/5 * * * *", "--", "true")
    kubectl("create", "job", "manual", "--from=cronjob/cj")
    kubectl("create", "service", "clusterip", "svc", "--tcp=80:8080")
    kubectl("create", "ingress", "ing", "--rule=foo.com/bar=svc:80")
    kubectl("create", "quota", "q", "--hard=pods=10")
    kubectl("create", "poddisruptionbudget", "pdb", "--selector=app=nginx", "--min-available=1")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "readers", "--role=reader", "--user=bob")
    kubectl("create", "priorityclass", f"pc-{kubectl.namespace}", "--value=10")
    kubectl("run", "pod", "--image=nginx", "--restart=Never")
    kubectl("expose", "deployment", "nginx", "--port=80")
    kubectl("autoscale", "deployment", "nginx", "--min=1", "--max=5")
    file = tmp_path / "cm.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: gen-}\ndata: {a: b}\n")
    assert kubectl("create", "-f", str(file)).startswith("configmap/gen-")
    assert kubectl("get", "secret", "s", "-o", "jsonpath={.data.password}") == "aHVudGVyMg=="
    for kind in (
        "pods",
        "jobs",
        "cronjobs",
        "services",
        "ingresses",
        "quota",
        "pdb",
        "roles",
        "rolebindings",
        "hpa",
        "sa",
    ):
        assert kubectl("get", kind).count("\n") >= 2, kind
        assert kubectl("get", kind, "-o", "wide").count("\n") >= 2, kind
        kubectl("describe", kind)


def test_create_refuses_what_is_wrong(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a")
    assert (
        kubectl.fails("create", "configmap", "a")
        == 'error: failed to create configmap: configmaps "a" already exists\n'
    )
    unknown = DEPLOYMENT.replace("replicas:", "replicaz:")
    assert 'unknown field "spec.replicaz"' in kubectl.fails("create", "-f", "-", stdin=unknown)
    negative = DEPLOYMENT.replace("replicas: 2", "replicas: -1")
    error = kubectl.fails("create", "-f", "-", stdin=negative)
    assert 'The Deployment "web" is invalid: spec.replicas: Invalid value: -1' in error
    assert "must be greater than or equal to 0" in error
    wrong = DEPLOYMENT.replace("replicas: 2", "replicas: two")
    assert "cannot be handled as a Deployment" in kubectl.fails("create", "-f", "-", stdin=wrong)
    assert 'namespaces "absent" not found' in kubectl.fails("-n", "absent", "create", "configmap", "a")
    warned = kubectl.run("create", "--validate=warn", "-f", "-", stdin=unknown)
    assert warned.returncode == 0
    assert 'Warning: unknown field "spec.replicaz"' in warned.stderr


def test_apply_several_documents_again_and_with_a_field_removed(kubectl: Kubectl) -> None:
    configmap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1', b: '2'}\n"
    both = f"{configmap}---{DEPLOYMENT}"
    assert kubectl("apply", "-f", "-", stdin=both) == "configmap/c created\ndeployment.apps/web created\n"
    assert kubectl("apply", "-f", "-", stdin=both) == "configmap/c unchanged\ndeployment.apps/web unchanged\n"
    without = configmap.replace(", b: '2'", "")
    assert kubectl("apply", "-f", "-", stdin=without) == "configmap/c configured\n"
    assert kubectl.json("get", "configmap", "c")["data"] == {"a": "1"}
    changed = DEPLOYMENT.replace("nginx:1.25", "nginx:1.26").replace(", ports: [{containerPort: 80}]", "")
    assert kubectl("apply", "-f", "-", stdin=changed) == "deployment.apps/web configured\n"
    container = kubectl.json("get", "deploy", "web")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "nginx:1.26"
    assert "ports" not in container
    assert kubectl.json("get", "deploy", "web")["metadata"]["generation"] == 2
    last = kubectl("apply", "view-last-applied", "deployment", "web")
    assert "nginx:1.26" in last
    dry = kubectl("apply", "--dry-run=server", "-f", "-", stdin=DEPLOYMENT)
    assert dry == "deployment.apps/web configured (server dry run)\n"
    assert kubectl.json("get", "deploy", "web")["metadata"]["generation"] == 2


def test_apply_server_side(kubectl: Kubectl) -> None:
    assert kubectl("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web serverside-applied\n"
    managed = json.loads(kubectl("get", "deploy", "web", "-o", "json", "--show-managed-fields"))["metadata"][
        "managedFields"
    ]
    assert [(entry["manager"], entry["operation"]) for entry in managed] == [("kubectl", "Apply")]
    other = DEPLOYMENT.replace("replicas: 2", "replicas: 5")
    conflict = kubectl.fails("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=other)
    assert 'conflict with "kubectl"' in conflict
    assert ".spec.replicas" in conflict
    kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=other)
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "5"
    without = DEPLOYMENT.replace("  replicas: 2\n", "")
    kubectl("apply", "--server-side", "-f", "-", stdin=without)
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "5"


def test_edit(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert (
        kubectl("edit", "deploy", "web", KUBE_EDITOR="sed -i s/nginx:1.25/nginx:1.27/")
        == "deployment.apps/web edited\n"
    )
    assert "nginx:1.27" in kubectl("get", "deploy", "web", "-o", "yaml")
    unchanged = kubectl.run("edit", "deploy", "web", KUBE_EDITOR="true")
    assert "Edit cancelled, no changes made" in unchanged.stderr


def test_patch_in_three_types(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    strategic = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox"}]}}}}'
    kubectl("patch", "deploy", "web", "-p", strategic)
    names = "jsonpath={.spec.template.spec.containers[*].name}"
    assert sorted(kubectl("get", "deploy", "web", "-o", names).split()) == ["side", "web"]
    merge = '{"spec":{"template":{"spec":{"containers":[{"name":"only","image":"busybox"}]}}}}'
    kubectl("patch", "deploy", "web", "--type=merge", "-p", merge)
    assert kubectl("get", "deploy", "web", "-o", names) == "only"
    operations = '[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":7}]'
    assert kubectl("patch", "deploy", "web", "--type=json", "-p", operations) == "deployment.apps/web patched\n"
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "7"
    assert kubectl("patch", "deploy", "web", "--type=merge", "-p", '{"spec":{"replicas":7}}') == (
        "deployment.apps/web patched (no change)\n"
    )
    assert "The request is invalid" in kubectl.fails("patch", "deploy", "web", "--type=json", "-p", operations)
    assert "is invalid" in kubectl.fails("patch", "deploy", "web", "-p", '{"spec":{"replicas":-3}}')


def test_replace(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    manifest = kubectl("get", "deploy", "web", "-o", "yaml")
    assert kubectl("replace", "-f", "-", stdin=manifest.replace("replicas: 2", "replicas: 4", 1)) == (
        "deployment.apps/web replaced\n"
    )
    assert "the object has been modified" in kubectl.fails("replace", "-f", "-", stdin=manifest)
    before = kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.uid}")
    out = kubectl("replace", "--force", "-f", "-", stdin=DEPLOYMENT)
    assert out.endswith("deployment.apps/web replaced\n")
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.uid}") != before


def test_scale_set_image_label_annotate(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert kubectl("scale", "deploy", "web", "--replicas=6") == "deployment.apps/web scaled\n"
    assert "Expected replicas to be 2, was 6" in kubectl.fails(
        "scale", "deploy", "web", "--current-replicas=2", "--replicas=1"
    )
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "6"
    assert (
        kubectl("get", "deploy", "web", "--subresource=scale", "-o", "jsonpath={.kind} {.spec.replicas}") == "Scale 6"
    )
    assert kubectl("set", "image", "deploy/web", "web=nginx:2") == "deployment.apps/web image updated\n"
    kubectl("set", "env", "deploy/web", "A=b")
    kubectl("set", "resources", "deploy/web", "--limits=cpu=200m")
    assert kubectl("label", "deploy", "web", "tier=front") == "deployment.apps/web labeled\n"
    assert "already has a value" in kubectl.fails("label", "deploy", "web", "tier=back")
    kubectl("label", "deploy", "web", "tier=back", "--overwrite")
    kubectl("label", "deploy", "web", "tier-")
    kubectl("annotate", "deploy", "web", "note=hello")
    found = kubectl.json("get", "deploy", "web")
    assert found["metadata"]["labels"] == {"app": "web"}
    assert found["metadata"]["annotations"]["note"] == "hello"
    container = found["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["env"]) == ("nginx:2", [{"name": "A", "value": "b"}])
    bad = '{"metadata":{"labels":{"a":"not valid"}}}'
    assert 'metadata.labels: Invalid value: "not valid"' in kubectl.fails("patch", "deploy", "web", "-p", bad)


def test_delete_waits_and_cascades(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    uid = kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.uid}")

    def child(name: str, owner: str, owner_uid: str) -> str:
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": name,
                    "ownerReferences": [
                        {
                            "apiVersion": "apps/v1",
                            "kind": "Deployment",
                            "name": owner,
                            "uid": owner_uid,
                            "controller": True,
                            "blockOwnerDeletion": True,
                        }
                    ],
                },
            }
        )

    kubectl("create", "-f", "-", stdin=child("kept", "web", uid))
    out = kubectl("delete", "deploy", "web", "--cascade=orphan")
    assert out == f'deployment.apps "web" deleted from {kubectl.namespace} namespace\n'
    assert kubectl("get", "configmap", "kept", "-o", "jsonpath={.metadata.ownerReferences}") == ""
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    uid = kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.uid}")
    kubectl("create", "-f", "-", stdin=child("gone", "web", uid))
    kubectl("delete", "deploy", "web", "--cascade=foreground", "--wait=true", "--timeout=30s")
    assert "NotFound" in kubectl.fails("get", "configmap", "gone")
    kubectl("create", "configmap", "held")
    kubectl("patch", "configmap", "held", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    process = kubectl.popen("delete", "configmap", "held", "--wait=true")
    deadline = time.monotonic() + 20
    while not kubectl("get", "configmap", "held", "-o", "jsonpath={.metadata.deletionTimestamp}"):
        assert time.monotonic() < deadline
    assert process.poll() is None
    kubectl("patch", "configmap", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert process.communicate(timeout=20)[0].startswith('configmap "held" deleted')
    kubectl("create", "configmap", "a")
    kubectl("label", "configmap", "a", "x=y")
    assert 'configmap "a" deleted' in kubectl("delete", "configmap", "-l", "x=y")
    assert kubectl("delete", "configmap", "absent", "--ignore-not-found") == ""
    kubectl("delete", "configmaps", "--all")


def test_delete_namespace(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a")
    kubectl.run("delete", "namespace", kubectl.namespace, "--timeout=30s")
    assert "NotFound" in kubectl.fails("get", "namespace", kubectl.namespace)
    assert "NotFound" in kubectl.fails("get", "configmap", "a")


def test_rollout_status_and_wait(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    process = kubectl.popen("rollout", "status", "deployment/web", "--timeout=30s")
    waiting = kubectl.popen("wait", "--for=condition=Available", "deployment/web", "--timeout=30s")
    path = kubectl.popen("wait", "--for=jsonpath={.status.readyReplicas}=2", "deployment/web", "--timeout=30s")
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
    gone = kubectl.popen("wait", "--for=delete", "deployment/web", "--timeout=30s")
    kubectl("delete", "deploy", "web")
    assert gone.communicate(timeout=20)[1] == ""
    created = kubectl.popen("wait", "--for=create", "configmap/later", "--timeout=30s")
    kubectl("create", "configmap", "later")
    assert "condition met" in created.communicate(timeout=20)[0]
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "pause", "deployment/web")
    kubectl("rollout", "resume", "deployment/web")


def test_explain(kubectl: Kubectl) -> None:
    text = kubectl("explain", "deployment.spec.replicas")
    assert "GROUP:      apps" in text
    assert "FIELD: replicas <integer>" in text
    assert "strategy" in kubectl("explain", "deployments.spec")
    assert "containers" in kubectl("explain", "pod", "--recursive")
    assert "does not exist" in kubectl.fails("explain", "deployment.spec.nope")


def test_diff(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert kubectl("diff", "-f", "-", stdin=DEPLOYMENT) == ""
    changed = kubectl.run("diff", "-f", "-", stdin=DEPLOYMENT.replace("nginx:1.25", "nginx:1.26"))
    assert changed.returncode == 1
    assert "-      - image: nginx:1.25" in changed.stdout
    assert "+      - image: nginx:1.26" in changed.stdout
    new = kubectl.run("diff", "--server-side", "-f", "-", stdin=DEPLOYMENT.replace("name: web\n", "name: new\n", 1))
    assert new.returncode == 1


def test_auth(kubectl: Kubectl) -> None:
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
    assert kubectl("get", "configmaps", "-o", "name", "--as=bob") == "configmap/seen\n"
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


def test_custom_resources(kubectl: Kubectl) -> None:
    definition = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns:
    - {name: Spec, type: string, jsonPath: .spec.cronSpec}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [cronSpec]
            properties:
              cronSpec: {type: string, description: "When it runs."}
              replicas: {type: integer, minimum: 1, default: 1}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
    kubectl("apply", "-f", "-", stdin=definition)
    kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=20s")
    resource = "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: a}\nspec: {cronSpec: '* * *'}\n"
    assert kubectl("apply", "-f", "-", stdin=resource) == "crontab.stable.example.com/a created\n"
    assert kubectl("apply", "-f", "-", stdin=resource) == "crontab.stable.example.com/a unchanged\n"
    table = kubectl("get", "ct").splitlines()
    assert table[0].split() == ["NAME", "SPEC", "REPLICAS"]
    assert table[1].split() == ["a", "*", "*", "*", "1"]
    kubectl("scale", "ct", "a", "--replicas=3")
    assert kubectl("get", "ct", "a", "-o", "jsonpath={.spec.replicas}") == "3"
    kubectl("patch", "ct", "a", "--type=merge", "-p", '{"spec":{"cronSpec":"1"}}')
    assert "When it runs." in kubectl("explain", "crontab.spec.cronSpec")
    assert "spec.replicas in body should be greater than or equal to 1" in kubectl.fails(
        "apply", "-f", "-", stdin=resource.replace("cronSpec:", "replicas: 0, cronSpec:")
    )
    assert 'unknown field "spec.nope"' in kubectl.fails(
        "apply", "-f", "-", stdin=resource.replace("cronSpec:", "nope: 0, cronSpec:")
    )
    assert "spec.cronSpec: Required value" in kubectl.fails(
        "create", "-f", "-", stdin=resource.replace("cronSpec: '* * *'", "replicas: 1").replace("name: a", "name: b")
    )
    kubectl("describe", "ct", "a")
    kubectl.run("delete", "crd", "crontabs.stable.example.com", "--timeout=30s")
    assert "NotFound" in kubectl.fails("get", "ct")


def test_raw_paths(kubectl: Kubectl) -> None:
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
