"""`fedctl spread-webhook` on a real cluster: its controllers, its scheduler, its admission, and its end."""

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.test_spread_webhook import spread_webhook, webhooks
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import apply, cleaned, in_parallel
from tests.support.federation import Kubectl, eventually, fedctl
from tests.support.rest import Api

from federation.client.kubeconfig import load_kubeconfig
from federation.features.workloadspread.rules.ledger import parse_match

CREATIONS = 50


@pytest.fixture(scope="module")
def cluster(real: list[Cluster]) -> Iterator[Cluster]:
    with cleaned(real[:1]):
        yield real[0]


@pytest.fixture(scope="module")
def kubectl(cluster: Cluster) -> Kubectl:
    return cluster.kubectl


@pytest.fixture(scope="module")
def installed_before(kubectl: Kubectl) -> list[str]:
    """What `fedctl spread-webhook` could leave behind, before it runs."""
    return configured(kubectl)


@pytest.fixture(scope="module")
def service(cluster: Cluster, installed_before: list[str]) -> Iterator["subprocess.Popen[str]"]:
    assert not [name for name in installed_before if "workloadspread" in name]
    with spread_webhook(cluster.kubeconfig) as process:
        yield process


def configured(kubectl: Kubectl) -> list[str]:
    kinds = "crds,mutatingwebhookconfigurations,validatingwebhookconfigurations,clusterroles,clusterrolebindings"
    return sorted(kubectl("get", f"{kinds},namespaces,apiservices", "-o", "name").split())


def a_subset(name: str, node: str = "", limit: int | None = None, **fields: Any) -> dict[str, Any]:
    """Return a subset; with a node its pods run there only."""
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    required = {"requiredNodeSelectorTerm": {"matchExpressions": [term]}} if node else {}
    return {"name": name, **required, **({} if limit is None else {"maxReplicas": limit}), **fields}


def a_spread(
    name: str, *subsets: dict[str, Any], kind: str = "Deployment", namespace: str = "default"
) -> dict[str, Any]:
    group = {"Job": "batch/v1"}.get(kind, "apps/v1")
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "WorkloadSpread",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"targetRef": {"apiVersion": group, "kind": kind, "name": name}, "subsets": list(subsets)},
    }


def a_deployment(name: str, replicas: int, namespace: str = "default") -> dict[str, Any]:
    container = {"name": "main", "image": "app:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }


def pods(kubectl: Kubectl, name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = kubectl.json("get", "pods", "-l", f"app={name}")["items"]
    return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]


def layout(kubectl: Kubectl, name: str) -> Counter[tuple[str, str, str]]:
    """Count the pods of a workload by subset, node and deletion cost; "" for what a pod does not have."""

    def of(pod: dict[str, Any]) -> tuple[str, str, str]:
        match = parse_match(pod)
        cost = pod["metadata"].get("annotations", {}).get("controller.kubernetes.io/pod-deletion-cost", "")
        return match.subset if match is not None else "", pod["spec"].get("nodeName", ""), cost

    return Counter(map(of, pods(kubectl, name)))


def becomes(kubectl: Kubectl, name: str, expected: dict[tuple[str, str, str], int]) -> None:
    eventually(lambda: layout(kubectl, name), lambda seen: seen == expected, timeout_s=60, what=f"{expected}")


@pytest.mark.usefixtures("service")
def test_the_base_pool_is_filled_first_and_emptied_last(kubectl: Kubectl) -> None:
    apply(kubectl, a_spread("web", a_subset("base", "node-1", 3), a_subset("elastic", "node-2")))
    apply(kubectl, a_deployment("web", 5))
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    becomes(kubectl, "web", {("base", "node-1", "200"): 3, ("elastic", "node-2", "100"): 2})
    kubectl("scale", "deployment/web", "--replicas=3")
    becomes(kubectl, "web", {("base", "node-1", "200"): 3})
    kubectl("scale", "deployment/web", "--replicas=6")
    becomes(kubectl, "web", {("base", "node-1", "200"): 3, ("elastic", "node-2", "100"): 3})


@pytest.mark.usefixtures("service")
def test_scale_in_removes_the_surplus_of_a_lower_limit_first(kubectl: Kubectl) -> None:
    apply(kubectl, a_spread("cut", a_subset("base", "node-1", 4), a_subset("elastic", "node-2")))
    apply(kubectl, a_deployment("cut", 5))
    becomes(kubectl, "cut", {("base", "node-1", "200"): 4, ("elastic", "node-2", "100"): 1})
    apply(kubectl, a_spread("cut", a_subset("base", "node-1", 2), a_subset("elastic", "node-2")))
    becomes(
        kubectl, "cut", {("base", "node-1", "200"): 2, ("base", "node-1", "-100"): 2, ("elastic", "node-2", "100"): 1}
    )
    kubectl("scale", "deployment/cut", "--replicas=3")
    becomes(kubectl, "cut", {("base", "node-1", "200"): 2, ("elastic", "node-2", "100"): 1})


@pytest.mark.usefixtures("service")
def test_a_rollout_keeps_the_layout(kubectl: Kubectl) -> None:
    apply(kubectl, a_spread("roll", a_subset("base", "node-1", 2), a_subset("elastic", "node-2")))
    apply(kubectl, a_deployment("roll", 4))
    expected = {("base", "node-1", "200"): 2, ("elastic", "node-2", "100"): 2}
    becomes(kubectl, "roll", expected)
    before = {pod["metadata"]["name"] for pod in pods(kubectl, "roll")}
    kubectl("set", "image", "deployment/roll", "main=app:2")
    kubectl("rollout", "status", "deployment/roll", "--timeout=60s")
    becomes(kubectl, "roll", expected)
    assert before.isdisjoint(pod["metadata"]["name"] for pod in pods(kubectl, "roll"))


@pytest.mark.usefixtures("service")
def test_concurrent_creations_do_not_exceed_the_limits(cluster: Cluster, kubectl: Kubectl) -> None:
    """All requests are sent at once, to a Job whose controller is outside of the cluster."""
    apply(kubectl, a_spread("burst", a_subset("a", limit=7), a_subset("b", limit=12), a_subset("rest"), kind="Job"))
    uid = _create_job(kubectl)
    apis = [Api(load_kubeconfig(cluster.kubeconfig), "default") for _ in range(CREATIONS)]
    try:
        in_parallel(lambda api: api.create("pods", _a_pod_of(uid)), apis)
    finally:
        for api in apis:
            api.close()
    expected = {("a", "", ""): 7, ("b", "", ""): 12, ("rest", "", ""): CREATIONS - 19}
    assert layout(kubectl, "burst") == expected
    spread = eventually(
        lambda: kubectl.json("get", "workloadspreads", "burst")["status"],
        lambda status: sum(subset["replicas"] for subset in status["subsetStatuses"]) == CREATIONS,
        what="all pods counted",
    )
    assert [subset["missingReplicas"] for subset in spread["subsetStatuses"]] == [0, 0, -1]


def _create_job(kubectl: Kubectl) -> str:
    template = {"spec": {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": "Never"}}
    spec = {"parallelism": CREATIONS, "completions": CREATIONS, "managedBy": "example.com/none", "template": template}
    apply(kubectl, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "burst"}, "spec": spec})
    return kubectl("get", "job", "burst", "-o", "jsonpath={.metadata.uid}")


def _a_pod_of(uid: str) -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "burst", "uid": uid, "controller": True}
    return {
        "metadata": {"generateName": "burst-", "labels": {"app": "burst"}, "ownerReferences": [owner]},
        "spec": {"schedulerName": "none", "containers": [{"name": "main", "image": "app:1"}]},
    }


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "main", "securityContext": {"privileged": True}}]},
        {"volumes": [{"name": "host", "hostPath": {"path": "/"}}]},
        {"hostNetwork": True},
    ],
    ids=["privileged", "hostPath", "hostNetwork"],
)
@pytest.mark.usefixtures("service")
def test_pod_security_judges_the_patched_pod(kubectl: Kubectl, spec: dict[str, Any]) -> None:
    """The plugin runs after the mutating webhooks, so a patch cannot create a pod that the namespace does not allow."""
    namespace = f"secure-{next(iter(spec)).lower()}"
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    apply(kubectl, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}})
    apply(kubectl, a_spread("web", a_subset("all", patch={"spec": spec}), namespace=namespace))
    apply(kubectl, a_deployment("web", 1, namespace))
    events = ("get", "events", "-n", namespace, "-o", "jsonpath={.items[*].message}")
    eventually(lambda: kubectl(*events), lambda seen: 'violates PodSecurity "baseline' in seen, what="a refusal")
    assert kubectl("get", "pods", "-n", namespace, "-o", "name") == ""


def test_pods_are_created_when_the_service_is_killed(kubectl: Kubectl, service: "subprocess.Popen[str]") -> None:
    service.kill()
    service.wait(30)
    assert len(webhooks(kubectl)) == 2
    kubectl("scale", "deployment/web", "--replicas=10")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert sum(count for (subset, _, _), count in layout(kubectl, "web").items() if not subset) == 4
    kubectl("delete", "pods", "-l", "app=cut", "--wait=false")
    kubectl("rollout", "status", "deployment/cut", "--timeout=60s")


def test_nothing_is_left_after_uninstallation(
    cluster: Cluster, kubectl: Kubectl, installed_before: list[str], service: "subprocess.Popen[str]"
) -> None:
    assert service.poll() is not None
    with spread_webhook(cluster.kubeconfig) as process:
        # The pods that were created in between run on nodes of subsets, which adopt them.
        eventually(lambda: {subset for subset, _, _ in layout(kubectl, "web")}, lambda seen: "" not in seen)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert webhooks(kubectl) == []
    kubectl("delete", "workloadspreads", "--all", "--all-namespaces")
    assert "are removed" in fedctl("spread-webhook", "--kubeconfig", str(cluster.kubeconfig), "--uninstall").stdout
    namespaces = {name for name in configured(kubectl) if name.startswith("namespace/secure-")}
    eventually(
        lambda: [name for name in configured(kubectl) if name not in namespaces], lambda s: s == installed_before
    )
