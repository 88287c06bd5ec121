"""The real kubectl's rarer verbs: prune and apply sets, the last applied manifest, nodes, rollouts, `set`.

No controllers run, so tests create the objects of controllers.
"""

from pathlib import Path

import pytest
import yaml

from tests.support.kubectl import DEPLOYMENT, TIMEOUT_S, Kubectl
from tests.support.rest import Object, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.real_time]

ONE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {app: x}}
data: {key: value}
"""
TWO = ONE.replace("one", "two")
CONTAINER = {"name": "main", "image": "nginx"}


def test_apply_prunes_by_label_and_by_apply_set(kubectl: Kubectl) -> None:
    kinds = "--prune-allowlist=core/v1/ConfigMap"
    kubectl("apply", "-f", "-", "--prune", "-l", "app=x", kinds, stdin=f"{ONE}---{TWO}")
    assert "configmap/two pruned" in kubectl("apply", "-f", "-", "--prune", "-l", "app=x", kinds, stdin=ONE)
    with_set = ("apply", "-f", "-", "--prune", "--applyset=configmaps/set")
    kubectl(*with_set, stdin=f"{ONE}---{TWO}", KUBECTL_APPLYSET="true")
    assert "configmap/two pruned" in kubectl(*with_set, stdin=ONE, KUBECTL_APPLYSET="true")
    parent = kubectl.api.get("configmaps", "set")["metadata"]
    assert parent["annotations"]["applyset.kubernetes.io/contains-group-kinds"] == "ConfigMap"
    one = kubectl.api.get("configmaps", "one")["metadata"]
    assert one["labels"]["applyset.kubernetes.io/part-of"] == parent["labels"]["applyset.kubernetes.io/id"]


def test_the_last_applied_manifest_is_viewed_edited_and_set(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("apply", "-f", "-", stdin=ONE)
    assert "key: value" in kubectl("apply", "view-last-applied", "configmap", "one")
    edited = kubectl.run("apply", "edit-last-applied", "configmap", "one", EDITOR="sed -i s/value/other/")
    assert edited.stdout == "configmap/one edited\n"
    assert "key: other" in kubectl("apply", "view-last-applied", "configmap", "one")
    manifest = tmp_path / "one.yaml"
    manifest.write_text(ONE)
    kubectl("apply", "set-last-applied", "-f", str(manifest))
    assert "key: value" in kubectl("apply", "view-last-applied", "configmap", "one")


def test_a_manifest_moves_from_client_side_to_server_side_apply(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=ONE)
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", stdin=ONE)
    fields = kubectl.json("get", "configmap", "one", "--show-managed-fields")["metadata"]["managedFields"]
    owners = {(entry["manager"], entry["operation"]) for entry in fields if "f:data" in entry["fieldsV1"]}
    assert owners == {("kubectl", "Apply")}


def test_a_node_is_tainted_cordoned_and_drained(kubectl: Kubectl) -> None:
    node = kubectl.namespace
    kubectl.api.create("nodes", {"metadata": {"name": node}})
    assert kubectl("taint", "nodes", node, "a=b:NoSchedule") == f"node/{node} tainted\n"
    assert "already has a taint" in kubectl.fails("taint", "nodes", node, "a=b:NoSchedule")
    kubectl("taint", "nodes", node, "a-")
    assert kubectl("cordon", node) == f"node/{node} cordoned\n"
    assert "SchedulingDisabled" in kubectl("get", "node", node)
    kubectl("uncordon", node)
    pod = {"metadata": {"name": "p", "labels": {"run": "p"}}, "spec": {"nodeName": node, "containers": [CONTAINER]}}
    kubectl.api.create("pods", pod)
    kubectl.put_status("pods", "p", {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
    kubectl("create", "pdb", "b", "--selector=run=p", "--min-available=1")
    kubectl.put_status("poddisruptionbudgets", "b", {"observedGeneration": 1, "expectedPods": 1, "desiredHealthy": 1})
    with kubectl.popen("drain", node, "--force", f"--timeout={TIMEOUT_S}s") as refused:
        assert refused.stderr is not None
        budget = "Cannot evict pod as it would violate the pod's disruption budget"
        assert any(budget in line for line in refused.stderr)
        refused.kill()
    kubectl.put_status("poddisruptionbudgets", "b", {"disruptionsAllowed": 1})
    draining = kubectl.popen("drain", node, "--force", f"--timeout={TIMEOUT_S}s", "--grace-period=7")
    try:
        eventually(lambda: kubectl.api.get("pods", "p")["metadata"].get("deletionGracePeriodSeconds") == 7)
        assert "deletionTimestamp" in kubectl.api.get("pods", "p")["metadata"]
        assert kubectl.api.get("poddisruptionbudgets", "b")["status"]["disruptionsAllowed"] == 0
        kubectl.run("delete", "pod", "p", "--grace-period=0", "--force")  # what the kubelet does when all has stopped
        out, err = draining.communicate(timeout=TIMEOUT_S)
    finally:
        draining.kill()
    assert (draining.returncode, f"node/{node} drained" in out) == (0, True), err
    kubectl.api.delete("nodes", node)


def a_revision(deployment: Object, number: int, image: str) -> Object:
    """Return the ReplicaSet that the deployment controller would have made for a revision."""
    labels = {"app": "web", "pod-template-hash": str(number)}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": image}]}}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": deployment["metadata"]["uid"]}
    metadata = {
        "name": f"web-{number}",
        "labels": labels,
        "annotations": {"deployment.kubernetes.io/revision": str(number)},
        "ownerReferences": [{**owner, "controller": True}],
    }
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": metadata, "spec": spec}


def test_a_rollout_is_paused_resumed_restarted_and_undone(kubectl: Kubectl) -> None:
    deployment = kubectl.api.create("deployments", yaml.safe_load(DEPLOYMENT))
    for number, image in ((1, "nginx:1.24"), (2, "nginx:1.25")):
        kubectl.api.create("replicasets", a_revision(deployment, number, image))
    kubectl("annotate", "deploy", "web", "deployment.kubernetes.io/revision=2")
    history = kubectl("rollout", "history", "deploy/web").splitlines()
    assert [line.split()[0] for line in history[2:] if line] == ["1", "2"]
    assert "nginx:1.24" in kubectl("rollout", "history", "deploy/web", "--revision=1")
    assert kubectl("rollout", "undo", "deploy/web", "--to-revision=1") == "deployment.apps/web rolled back\n"
    assert template(kubectl)["spec"]["containers"][0]["image"] == "nginx:1.24"
    assert kubectl("rollout", "pause", "deploy/web") == "deployment.apps/web paused\n"
    assert "can't restart paused deployment" in kubectl.fails("rollout", "restart", "deploy/web")
    kubectl("rollout", "resume", "deploy/web")
    kubectl("rollout", "restart", "deploy/web")
    assert "kubectl.kubernetes.io/restartedAt" in template(kubectl)["metadata"]["annotations"]


def template(kubectl: Kubectl) -> Object:
    found: Object = kubectl.api.get("deployments", "web")["spec"]["template"]
    return found


def test_set_changes_accounts_selectors_and_subjects(kubectl: Kubectl) -> None:
    kubectl.api.create("deployments", yaml.safe_load(DEPLOYMENT))
    kubectl("set", "serviceaccount", "deploy/web", "bob")
    assert template(kubectl)["spec"]["serviceAccountName"] == "bob"
    kubectl("expose", "deploy", "web", "--port=80", "--name=front")
    kubectl("set", "selector", "service", "front", "app=other")
    assert kubectl.api.get("services", "front")["spec"]["selector"] == {"app": "other"}
    kubectl("create", "rolebinding", "rb", "--clusterrole=view", "--user=alice")
    kubectl("set", "subject", "rolebinding", "rb", f"--serviceaccount={kubectl.namespace}:bob")
    subjects = kubectl.api.get("rolebindings", "rb")["subjects"]
    assert [subject["name"] for subject in subjects] == ["alice", "bob"]
    kubectl("autoscale", "deploy", "web", "--min=1", "--max=3", "--cpu=50%")
    assert "cpu: <unknown>/50%" in kubectl("get", "hpa", "web")
    assert "Metrics API not available" in kubectl.fails("top", "pods")


def test_events_are_listed_for_their_object(kubectl: Kubectl) -> None:
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": kubectl.namespace},
        "reportingController": "example.com/controller",
        "reportingInstance": "controller-0",
        "action": "Starting",
        "reason": "Started",
        "note": "it runs",
        "type": "Normal",
    }
    kubectl.api.create("events.k8s.io/v1/events", event)
    for arguments in (
        ("events", "--for=pod/p"),
        ("get", "events.v1.events.k8s.io", "--field-selector=regarding.name=p"),
    ):
        header, line = kubectl(*arguments).splitlines()
        assert header.split()[:2] == ["LAST", "SEEN"]
        assert line.split()[1:] == ["Normal", "Started", "pod/p" if arguments[0] == "get" else "Pod/p", "it", "runs"]
