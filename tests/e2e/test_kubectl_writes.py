"""Write commands of the real kubectl: create, apply, edit, patch, replace, scale, label, delete, diff.

What is only HTTP is in tests/conformance/apiserver: patches (`test_patch.py`), conflicts of server-side apply
(`test_server_side_apply.py`), validation (`test_field_validation.py`), deletion (`test_garbage_collector.py`).
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.kubectl import DEPLOYMENT, TIMEOUT_S, Kubectl
from tests.support.rest import Object, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.real_time]


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
    kinds = "deploy,pods,jobs,cronjobs,services,ingresses,quota,pdb,roles,rolebindings,hpa,sa,secrets,configmaps"
    assert kubectl.api.get("secrets", "s")["data"] == {"password": "aHVudGVyMg=="}
    kubectl.api.delete("priorityclasses", f"pc-{kubectl.namespace}")
    described = {line.split()[1] for line in kubectl("describe", kinds).splitlines() if line.startswith("Name:")}
    assert {"pod", "j", "manual", "cj", "svc", "nginx", "ing", "q", "pdb", "reader", "readers", "robot"} <= described
    served = kubectl("api-resources", "--verbs=list", "--namespaced", "-o", "name").split()
    served.remove("endpoints")  # deprecated: kubectl prints the server's warning
    listed = kubectl("get", ",".join(served), "-o", "name").split()
    assert {"deployment.apps/nginx", "horizontalpodautoscaler.autoscaling/nginx", "secret/s"} <= set(listed)
    tables = kubectl("get", kinds, "-o", "wide").split("\n\n")
    assert [len(table.splitlines()) >= 2 for table in tables] == [True] * 14


def test_create_rejects_invalid_objects(kubectl: Kubectl) -> None:
    kubectl.api.create("configmaps", {"metadata": {"name": "a"}})
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
    assert kubectl.api.get("configmaps", "c")["data"] == {"a": "1"}
    changed = DEPLOYMENT.replace("nginx:1.25", "nginx:1.26").replace(", ports: [{containerPort: 80}]", "")
    assert kubectl("apply", "-f", "-", stdin=changed) == "deployment.apps/web configured\n"
    found = kubectl.api.get("deployments", "web")
    container = found["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "nginx:1.26"
    assert "ports" not in container
    assert found["metadata"]["generation"] == 2
    assert "nginx:1.26" in found["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    dry = kubectl("apply", "--dry-run=server", "-f", "-", stdin=DEPLOYMENT)
    assert dry == "deployment.apps/web configured (server dry run)\n"
    assert kubectl.api.get("deployments", "web") == found


def test_server_side_apply_reports_conflicts(kubectl: Kubectl) -> None:
    assert kubectl("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web serverside-applied\n"
    managed = kubectl.json("get", "deploy", "web", "--show-managed-fields")["metadata"]["managedFields"]
    assert [(entry["manager"], entry["operation"]) for entry in managed] == [("kubectl", "Apply")]
    other = DEPLOYMENT.replace("replicas: 2", "replicas: 5")
    conflict = kubectl.fails("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=other)
    assert 'conflict with "kubectl"' in conflict
    assert ".spec.replicas" in conflict
    kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=other)
    assert replicas(kubectl) == 5
    without = DEPLOYMENT.replace("  replicas: 2\n", "")
    kubectl("apply", "--server-side", "-f", "-", stdin=without)
    assert replicas(kubectl) == 5, "the first manager goes on without the field: it stays the other's"


def replicas(kubectl: Kubectl) -> int:
    found: int = kubectl.api.get("deployments", "web")["spec"]["replicas"]
    return found


def test_edit_writes_the_changed_object(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert (
        kubectl("edit", "deploy", "web", KUBE_EDITOR="sed -i s/nginx:1.25/nginx:1.27/")
        == "deployment.apps/web edited\n"
    )
    assert containers(kubectl)[0]["image"] == "nginx:1.27"
    unchanged = kubectl.run("edit", "deploy", "web", KUBE_EDITOR="true")
    assert "Edit cancelled, no changes made" in unchanged.stderr


def containers(kubectl: Kubectl) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = kubectl.api.get("deployments", "web")["spec"]["template"]["spec"]["containers"]
    return found


def test_patch_accepts_three_patch_types(kubectl: Kubectl) -> None:
    kubectl.api.create("deployments", yaml.safe_load(DEPLOYMENT))
    strategic = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox"}]}}}}'
    kubectl("patch", "deploy", "web", "-p", strategic)
    assert {container["name"] for container in containers(kubectl)} == {"side", "web"}
    operations = '[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":7}]'
    assert kubectl("patch", "deploy", "web", "--type=json", "-p", operations) == "deployment.apps/web patched\n"
    assert replicas(kubectl) == 7
    assert kubectl("patch", "deploy", "web", "--type=merge", "-p", '{"spec":{"replicas":7}}') == (
        "deployment.apps/web patched (no change)\n"
    )
    assert "The request is invalid" in kubectl.fails("patch", "deploy", "web", "--type=json", "-p", operations)
    status = '{"status":{"replicas":7}}'
    kubectl("patch", "deploy", "web", "--subresource=status", "--type=merge", "-p", status)
    assert kubectl.api.get("deployments", "web")["status"]["replicas"] == 7


def test_replace_requires_a_current_resource_version(kubectl: Kubectl) -> None:
    kubectl.api.create("deployments", yaml.safe_load(DEPLOYMENT))
    manifest = kubectl("get", "deploy", "web", "-o", "yaml")
    assert kubectl("replace", "-f", "-", stdin=manifest.replace("replicas: 2", "replicas: 4", 1)) == (
        "deployment.apps/web replaced\n"
    )
    assert "the object has been modified" in kubectl.fails("replace", "-f", "-", stdin=manifest)
    before = uid(kubectl)
    out = kubectl("replace", "--force", "-f", "-", stdin=DEPLOYMENT)
    assert out.endswith("deployment.apps/web replaced\n")
    assert uid(kubectl) != before


def uid(kubectl: Kubectl) -> str:
    return str(kubectl.api.get("deployments", "web")["metadata"]["uid"])


def test_scale_set_image_label_and_annotate_change_the_object(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert kubectl("scale", "deploy", "web", "--replicas=6") == "deployment.apps/web scaled\n"
    assert "Expected replicas to be 2, was 6" in kubectl.fails(
        "scale", "deploy", "web", "--current-replicas=2", "--replicas=1"
    )
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
    found = kubectl.api.get("deployments", "web")
    assert found["metadata"]["labels"] == {"app": "web"}
    assert found["metadata"]["annotations"]["note"] == "hello"
    container = found["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["env"]) == ("nginx:2", [{"name": "A", "value": "b"}])
    bad = '{"metadata":{"labels":{"a":"not valid"}}}'
    assert 'metadata.labels: Invalid value: "not valid"' in kubectl.fails("patch", "deploy", "web", "-p", bad)


def a_child(name: str, owner_uid: str) -> Object:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner_uid}
    references = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    return {"metadata": {"name": name, "ownerReferences": references}}


def test_delete_cascades(kubectl: Kubectl) -> None:
    kubectl.api.create("deployments", yaml.safe_load(DEPLOYMENT))
    kubectl.api.create("configmaps", a_child("kept", uid(kubectl)))
    out = kubectl("delete", "deploy", "web", "--cascade=orphan")
    assert out == f'deployment.apps "web" deleted from {kubectl.namespace} namespace\n'
    assert "ownerReferences" not in kubectl.api.get("configmaps", "kept")["metadata"]
    kubectl.api.create("deployments", yaml.safe_load(DEPLOYMENT))
    kubectl.api.create("configmaps", a_child("gone", uid(kubectl)))
    kubectl("delete", "deploy", "web", "--cascade=foreground", "--wait=true", f"--timeout={TIMEOUT_S}s")
    assert not kubectl.api.exists("configmaps", "gone")


def test_delete_waits_for_finalizers(kubectl: Kubectl) -> None:
    held = {"name": "held", "finalizers": ["example.com/hold"]}
    kubectl.api.create("configmaps", {"metadata": held})
    process = kubectl.popen("delete", "configmap", "held", "--wait=true")
    eventually(lambda: "deletionTimestamp" in kubectl.api.get("configmaps", "held")["metadata"])
    assert process.poll() is None
    kubectl.api.patch("configmaps", "held", {"metadata": {"finalizers": None}})
    assert process.communicate(timeout=TIMEOUT_S)[0].startswith('configmap "held" deleted')
    kubectl.api.create("configmaps", {"metadata": {"name": "a", "labels": {"x": "y"}}})
    assert 'configmap "a" deleted' in kubectl("delete", "configmap", "-l", "x=y")
    assert kubectl("delete", "configmap", "absent", "--ignore-not-found") == ""
    kubectl.run("delete", "namespace", kubectl.namespace, f"--timeout={TIMEOUT_S}s")
    assert not kubectl.api.exists("namespaces", kubectl.namespace)


def test_diff_shows_the_changes(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert kubectl("diff", "-f", "-", stdin=DEPLOYMENT) == ""
    changed = kubectl.run("diff", "-f", "-", stdin=DEPLOYMENT.replace("nginx:1.25", "nginx:1.26"))
    assert changed.returncode == 1
    assert "-      - image: nginx:1.25" in changed.stdout
    assert "+      - image: nginx:1.26" in changed.stdout
    new = kubectl.run("diff", "--server-side", "-f", "-", stdin=DEPLOYMENT.replace("name: web\n", "name: new\n", 1))
    assert new.returncode == 1
