"""Write commands of the real kubectl: create, apply, edit, patch, replace, scale, label, delete, diff.

One server for the module, one namespace per test.
"""

import json
import time
from pathlib import Path

import pytest

from tests.support.kubectl import DEPLOYMENT, Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.real_time]


def test_create_from_generators_and_files_succeeds(kubectl: Kubectl, tmp_path: Path) -> None:
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


def test_create_rejects_invalid_objects(kubectl: Kubectl) -> None:
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


def test_apply_updates_several_documents_and_removes_a_field(kubectl: Kubectl) -> None:
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


def test_server_side_apply_reports_conflicts(kubectl: Kubectl) -> None:
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


def test_edit_writes_the_changed_object(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert (
        kubectl("edit", "deploy", "web", KUBE_EDITOR="sed -i s/nginx:1.25/nginx:1.27/")
        == "deployment.apps/web edited\n"
    )
    assert "nginx:1.27" in kubectl("get", "deploy", "web", "-o", "yaml")
    unchanged = kubectl.run("edit", "deploy", "web", KUBE_EDITOR="true")
    assert "Edit cancelled, no changes made" in unchanged.stderr


def test_patch_accepts_three_patch_types(kubectl: Kubectl) -> None:
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


def test_replace_requires_a_current_resource_version(kubectl: Kubectl) -> None:
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


def test_scale_set_image_label_and_annotate_change_the_object(kubectl: Kubectl) -> None:
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
    kubectl("delete", "deploy", "web", "--cascade=foreground", "--wait=true", "--timeout=90s")
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


def test_delete_namespace_removes_its_objects(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a")
    kubectl.run("delete", "namespace", kubectl.namespace, "--timeout=90s")
    assert "NotFound" in kubectl.fails("get", "namespace", kubectl.namespace)
    assert "NotFound" in kubectl.fails("get", "configmap", "a")


def test_diff_shows_the_changes(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert kubectl("diff", "-f", "-", stdin=DEPLOYMENT) == ""
    changed = kubectl.run("diff", "-f", "-", stdin=DEPLOYMENT.replace("nginx:1.25", "nginx:1.26"))
    assert changed.returncode == 1
    assert "-      - image: nginx:1.25" in changed.stdout
    assert "+      - image: nginx:1.26" in changed.stdout
    new = kubectl.run("diff", "--server-side", "-f", "-", stdin=DEPLOYMENT.replace("name: web\n", "name: new\n", 1))
    assert new.returncode == 1
