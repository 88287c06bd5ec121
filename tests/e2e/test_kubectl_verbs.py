"""The real kubectl's rarer verbs: prune and apply sets, the last applied manifest, nodes, rollouts, every kind described.

One server for the module, one namespace per test. No controllers run, so tests create the objects of controllers.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.kubectl import DEPLOYMENT, Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.real_time]

ONE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {app: x}}
data: {key: value}
"""
TWO = ONE.replace("one", "two")


def test_apply_prunes_by_label_and_by_apply_set(kubectl: Kubectl) -> None:
    kinds = "--prune-allowlist=core/v1/ConfigMap"
    kubectl("apply", "-f", "-", "--prune", "-l", "app=x", kinds, stdin=f"{ONE}---{TWO}")
    assert "configmap/two pruned" in kubectl("apply", "-f", "-", "--prune", "-l", "app=x", kinds, stdin=ONE)
    with_set = ("apply", "-f", "-", "--prune", "--applyset=configmaps/set")
    kubectl(*with_set, stdin=f"{ONE}---{TWO}", KUBECTL_APPLYSET="true")
    assert "configmap/two pruned" in kubectl(*with_set, stdin=ONE, KUBECTL_APPLYSET="true")
    parent = kubectl.json("get", "configmap", "set")["metadata"]
    assert parent["annotations"]["applyset.kubernetes.io/contains-group-kinds"] == "ConfigMap"
    part_of = kubectl("get", "configmap", "one", "-o", r"jsonpath={.metadata.labels.applyset\.kubernetes\.io/part-of}")
    assert part_of == parent["labels"]["applyset.kubernetes.io/id"]


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
    other = ("apply", "--server-side", "-f", "-", "--field-manager=other")
    refusal = kubectl.fails(*other, stdin=ONE.replace("value", "changed"))
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.key' in refusal
    kubectl(*other, "--force-conflicts", stdin=ONE.replace("value", "changed"))
    # The first manager goes on with a manifest that does not name the field any more: it stays the other's.
    kubectl("apply", "--server-side", "-f", "-", stdin=ONE.replace("data: {key: value}", "data: {}"))
    assert kubectl("get", "configmap", "one", "-o", "jsonpath={.data.key}") == "changed"


def test_a_node_is_tainted_cordoned_and_drained(kubectl: Kubectl) -> None:
    node = kubectl.namespace
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}))
    assert kubectl("taint", "nodes", node, "a=b:NoSchedule") == f"node/{node} tainted\n"
    assert "already has a taint" in kubectl.fails("taint", "nodes", node, "a=b:NoSchedule")
    kubectl("taint", "nodes", node, "a-")
    assert kubectl("cordon", node) == f"node/{node} cordoned\n"
    assert "SchedulingDisabled" in kubectl("get", "node", node)
    kubectl("uncordon", node)
    kubectl("run", "p", "--image=nginx", "--overrides", json.dumps({"spec": {"nodeName": node}}))
    kubectl.put_status("pod", "p", {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
    kubectl("create", "pdb", "b", "--selector=run=p", "--min-available=1")
    kubectl.put_status("pdb", "b", {"observedGeneration": 1, "expectedPods": 1, "desiredHealthy": 1})
    refusal = kubectl.fails("drain", node, "--force", "--timeout=1s")
    assert "Cannot evict pod as it would violate the pod's disruption budget" in refusal
    kubectl.put_status("pdb", "b", {"disruptionsAllowed": 1})
    draining = kubectl.popen("drain", node, "--force", "--timeout=90s", "--grace-period=7")
    try:
        deletion = "jsonpath={.metadata.deletionTimestamp} {.metadata.deletionGracePeriodSeconds}"
        kubectl("wait", "pod/p", "--for=jsonpath={.metadata.deletionGracePeriodSeconds}=7", "--timeout=90s")
        assert kubectl("get", "pod", "p", "-o", deletion).endswith("Z 7")
        assert kubectl("get", "pdb", "b", "-o", "jsonpath={.status.disruptionsAllowed}") == "0"
        kubectl.run("delete", "pod", "p", "--grace-period=0", "--force")  # what the kubelet does when all has stopped
        out, err = draining.communicate(timeout=30)
    finally:
        draining.kill()
    assert (draining.returncode, f"node/{node} drained" in out) == (0, True), err
    kubectl.run("delete", "node", node)


def a_revision(deployment: dict[str, Any], number: int, image: str) -> str:
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
    return json.dumps({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec})


def test_a_rollout_is_paused_resumed_restarted_and_undone(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    deployment = kubectl.json("get", "deploy", "web")
    for number, image in ((1, "nginx:1.24"), (2, "nginx:1.25")):
        kubectl("create", "-f", "-", stdin=a_revision(deployment, number, image))
    kubectl("annotate", "deploy", "web", "deployment.kubernetes.io/revision=2")
    history = kubectl("rollout", "history", "deploy/web").splitlines()
    assert [line.split()[0] for line in history[2:] if line] == ["1", "2"]
    assert "nginx:1.24" in kubectl("rollout", "history", "deploy/web", "--revision=1")
    assert kubectl("rollout", "undo", "deploy/web", "--to-revision=1") == "deployment.apps/web rolled back\n"
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={..image}") == "nginx:1.24"
    assert kubectl("rollout", "pause", "deploy/web") == "deployment.apps/web paused\n"
    assert "can't restart paused deployment" in kubectl.fails("rollout", "restart", "deploy/web")
    kubectl("rollout", "resume", "deploy/web")
    kubectl("rollout", "restart", "deploy/web")
    stamp = r"jsonpath={.spec.template.metadata.annotations.kubectl\.kubernetes\.io/restartedAt}"
    assert kubectl("get", "deploy", "web", "-o", stamp).startswith("20")


def test_set_changes_accounts_selectors_and_subjects(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl("create", "serviceaccount", "bob")
    kubectl("set", "serviceaccount", "deploy/web", "bob")
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={..serviceAccountName}") == "bob"
    kubectl("expose", "deploy", "web", "--port=80", "--name=front")
    kubectl("set", "selector", "service", "front", "app=other")
    assert kubectl("get", "service", "front", "-o", "jsonpath={.spec.selector}") == '{"app":"other"}'
    kubectl("create", "rolebinding", "rb", "--clusterrole=view", "--user=alice")
    kubectl("set", "subject", "rolebinding", "rb", f"--serviceaccount={kubectl.namespace}:bob")
    subjects = kubectl.json("get", "rolebinding", "rb")["subjects"]
    assert [subject["name"] for subject in subjects] == ["alice", "bob"]
    assert kubectl("create", "token", "bob", "--duration=1h").count(".") == 2
    kubectl("autoscale", "deploy", "web", "--min=1", "--max=3", "--cpu=50%")
    assert "cpu: <unknown>/50%" in kubectl("get", "hpa", "web")


def test_every_kind_of_workload_and_what_belongs_to_it_is_described(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl("create", "-f", "-", stdin=a_revision(kubectl.json("get", "deploy", "web"), 1, "nginx:1.25"))
    for arguments in (
        "create job once --image=busybox",
        "create cronjob often --image=busybox --schedule=@hourly",
        "create ingress way --rule=example.com/*=web:80",
        "create quota most --hard=pods=2",
        "create pdb least --selector=app=web --min-available=1",
        "create role reader --verb=get --resource=pods",
        "create rolebinding reads --role=reader --user=alice",
        "create secret generic hidden --from-literal=a=b",
        "create configmap plain --from-literal=a=b",
        "create service clusterip web --tcp=80:80",
        "run alone --image=nginx",
        "autoscale deploy web --max=3",
    ):
        kubectl(*arguments.split())
    kinds = "deploy,rs,job,cronjob,ingress,quota,pdb,role,rolebinding,secret,configmap,service,pod,hpa,serviceaccount"
    described = kubectl("describe", kinds)
    names = {line.split()[1] for line in described.splitlines() if line.startswith("Name:")}
    expected = "web web-1 once often way most least reader reads hidden plain alone default"
    assert set(expected.split()) <= names
    served = kubectl("api-resources", "--verbs=list", "--namespaced", "-o", "name").split()
    listed = kubectl("get", ",".join(served), "-o", "name")
    assert {"replicaset.apps/web-1", "horizontalpodautoscaler.autoscaling/web"} <= set(listed.split())
    assert "Metrics API not available" in kubectl.fails("top", "pods")


def test_events_are_listed_for_their_object(kubectl: Kubectl) -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
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
    kubectl("create", "-f", "-", stdin=json.dumps(event))
    for arguments in (
        ("events", "--for=pod/p"),
        ("get", "events", "--field-selector=involvedObject.name=p"),
        ("get", "events.v1.events.k8s.io", "--field-selector=regarding.name=p"),
    ):
        header, line = kubectl(*arguments).splitlines()
        assert header.split()[:2] == ["LAST", "SEEN"]
        assert line.split()[1:] == ["Normal", "Started", "pod/p" if arguments[0] == "get" else "Pod/p", "it", "runs"]
