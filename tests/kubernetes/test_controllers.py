"""The controllers and the scheduler of Kubernetes do their work on our API as they do on a real API server."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.kubernetes.cluster import Server
from tests.support.rest import MERGE, Api, Object, Refused, eventually

LABELS = {"app": "web"}
WAIT_S = 90.0


@pytest.fixture
def api(server: Server, request: pytest.FixtureRequest) -> Iterator[Api]:
    """The administrator in a new namespace, which is deleted after the test without waiting until it is gone."""
    name = request.node.originalname.removeprefix("test_").replace("_", "-")[:60].strip("-")
    api = server.api()
    api.namespace = name
    api.create("namespaces", {"metadata": {"name": name}})
    eventually(lambda: api.exists("serviceaccounts", "default"), WAIT_S)
    yield api
    api.delete("namespaces", name)
    api.close()


def template(*arguments: str, **spec: Any) -> Object:
    container = {"name": "main", "image": "example.com/web:1", "args": list(arguments)}
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [container], **spec}}


def workload(name: str, replicas: int, **spec: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(), **spec},
    }


def pods(api: Api) -> list[Object]:
    return [pod for pod in api.list("pods")["items"] if not pod["metadata"].get("deletionTimestamp")]


def running(api: Api) -> list[Object]:
    return [pod for pod in pods(api) if pod["status"].get("phase") == "Running"]


def status(api: Api, plural: str, name: str, field: str) -> Any:
    return api.get(plural, name).get("status", {}).get(field)


def test_a_deployment_runs_scales_and_rolls_out(api: Api) -> None:
    api.create("deployments", workload("web", 3))
    eventually(lambda: status(api, "deployments", "web", "availableReplicas") == 3, WAIT_S)
    assert {pod["spec"]["nodeName"] for pod in running(api)} == {"node-1", "node-2"}
    api.patch("deployments", "web", {"spec": {"replicas": 5}}, type_=MERGE)
    eventually(lambda: len(running(api)) == 5, WAIT_S)
    changed = template("changed")
    api.patch("deployments", "web", {"spec": {"template": changed}}, type_=MERGE)
    eventually(
        lambda: (
            len(running(api)) == 5
            and all(pod["spec"]["containers"][0].get("args") == ["changed"] for pod in running(api))
            and status(api, "deployments", "web", "updatedReplicas") == 5
        ),
        WAIT_S,
    )
    revisions = [each["metadata"]["annotations"] for each in api.list("replicasets")["items"]]
    assert sorted(each["deployment.kubernetes.io/revision"] for each in revisions) == ["1", "2"]


def test_a_replica_set_replaces_its_pods(api: Api) -> None:
    api.create("replicasets", workload("web", 2))
    eventually(lambda: status(api, "replicasets", "web", "readyReplicas") == 2, WAIT_S)
    first = running(api)[0]["metadata"]
    api.delete("pods", first["name"])
    eventually(lambda: len(running(api)) == 2 and first["uid"] not in uids(running(api)), WAIT_S)


def uids(objects: list[Object]) -> set[str]:
    return {obj["metadata"]["uid"] for obj in objects}


def test_a_stateful_set_has_ordinals_and_claims(api: Api) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    body = workload("db", 2, serviceName="db", podManagementPolicy="Parallel", volumeClaimTemplates=[claim])
    mount = {"name": "data", "mountPath": "/data"}
    body["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [mount]
    api.create("statefulsets", body)
    names = {"db-0", "db-1"}
    eventually(lambda: {pod["metadata"]["name"] for pod in pods(api)} == names, WAIT_S)
    eventually(
        lambda: (
            {each["metadata"]["name"] for each in api.list("persistentvolumeclaims")["items"]}
            == {f"data-{name}" for name in names}
        ),
        WAIT_S,
    )


def test_a_daemon_set_runs_on_every_node(api: Api) -> None:
    body = workload("agent", 1)
    del body["spec"]["replicas"]
    api.create("daemonsets", body)
    eventually(lambda: status(api, "daemonsets", "agent", "numberReady") == 2, WAIT_S)


def test_a_job_completes_and_a_failing_one_fails(api: Api) -> None:
    for name, argument in (("good", "exit=0"), ("bad", "exit=1")):
        spec = {"backoffLimit": 0, "completions": 1, "template": template(argument, restartPolicy="Never")}
        api.create("jobs", {"metadata": {"name": name}, "spec": spec})

    def has_ended(name: str, kind: str) -> bool:
        found = status(api, "jobs", name, "conditions") or ()
        return any(each["type"] == kind and each["status"] == "True" for each in found)

    eventually(lambda: has_ended("good", "Complete"), WAIT_S)
    eventually(lambda: has_ended("bad", "Failed"), WAIT_S)


def test_a_cron_job_creates_jobs(api: Api) -> None:
    job = {"spec": {"template": template("exit=0", restartPolicy="Never")}}
    api.create("cronjobs", {"metadata": {"name": "tick"}, "spec": {"schedule": "* * * * *", "jobTemplate": job}})
    eventually(lambda: api.list("jobs")["items"], WAIT_S)
    assert status(api, "cronjobs", "tick", "lastScheduleTime")


def test_endpoint_slices_follow_the_pods_of_a_service(api: Api) -> None:
    api.create("deployments", workload("web", 2))
    api.create("services", {"metadata": {"name": "web"}, "spec": {"selector": LABELS, "ports": [{"port": 80}]}})

    def addresses() -> set[str]:
        slices = api.list("discovery.k8s.io/v1/endpointslices")["items"]
        return {
            address
            for each in slices
            for endpoint in each.get("endpoints") or ()
            if endpoint["conditions"].get("ready")
            for address in endpoint["addresses"]
        }

    eventually(
        lambda: len(addresses()) == 2 and addresses() == {pod["status"]["podIP"] for pod in running(api)}, WAIT_S
    )


def test_a_quota_counts_and_refuses(api: Api) -> None:
    api.create("resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": {"count/configmaps": "3"}}})
    eventually(lambda: status(api, "resourcequotas", "few", "used"), WAIT_S)
    used = int(status(api, "resourcequotas", "few", "used")["count/configmaps"])
    for number in range(3 - used):
        api.create("configmaps", {"metadata": {"name": f"c{number}"}})

    def is_refused() -> bool:
        try:
            api.create("configmaps", {"metadata": {"name": "one-more"}})
        except Refused as refusal:
            return "exceeded quota: few" in str(refusal)
        api.delete("configmaps", "one-more")
        return False

    # The first count of the controller manager may miss objects that its other caches do not have yet, and be written
    # after our own.
    eventually(is_refused, WAIT_S)
    api.delete("configmaps", "c0")
    eventually(lambda: status(api, "resourcequotas", "few", "used") == {"count/configmaps": "2"}, WAIT_S)


def test_dependents_go_with_their_owner_or_stay(api: Api) -> None:
    for name, policy in (("gone", "Background"), ("first-pods", "Foreground"), ("kept", "Orphan")):
        labels = {"app": name}
        body = workload(name, 1, selector={"matchLabels": labels})
        body["spec"]["template"]["metadata"]["labels"] = labels
        api.create("replicasets", body)
        eventually(lambda name=name: status(api, "replicasets", name, "readyReplicas") == 1, WAIT_S)
        api.send("DELETE", api.url("replicasets", name), {"propagationPolicy": policy})
        eventually(lambda name=name: not api.exists("replicasets", name), WAIT_S)
    eventually(lambda: {pod["metadata"]["labels"]["app"] for pod in pods(api)} == {"kept"}, WAIT_S)
    assert "ownerReferences" not in pods(api)[0]["metadata"]


def test_a_disruption_budget_and_an_autoscaler_report(api: Api) -> None:
    api.create("deployments", workload("web", 2))
    eventually(lambda: len(running(api)) == 2, WAIT_S)
    budget = {"minAvailable": 1, "selector": {"matchLabels": LABELS}}
    api.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": budget})
    eventually(lambda: status(api, "poddisruptionbudgets", "web", "disruptionsAllowed") == 1, WAIT_S)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = {"metadata": {"name": "web"}, "spec": {"minReplicas": 3, "maxReplicas": 4, "scaleTargetRef": target}}
    api.create("autoscaling/v2/horizontalpodautoscalers", scaler)
    eventually(lambda: len(running(api)) == 3, WAIT_S)


def test_a_namespace_takes_everything_with_it(api: Api) -> None:
    name = "full-of-things"
    before, api.namespace = api.namespace, name
    api.create("namespaces", {"metadata": {"name": name}})
    eventually(
        lambda: api.exists("serviceaccounts", "default") and api.exists("configmaps", "kube-root-ca.crt"), WAIT_S
    )
    api.create("deployments", workload("web", 2))
    eventually(lambda: len(running(api)) == 2, WAIT_S)
    api.delete("namespaces", name)
    eventually(lambda: not api.exists("namespaces", name), WAIT_S)
    assert api.list("pods")["items"] == []
    api.namespace = before
