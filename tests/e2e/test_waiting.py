"""Tools that wait for objects to be ready wait on the host: kubectl, the real Helm library and Argo CD's rules.

Helm's "watcher" (its default since version 4) judges by kstatus, "legacy" is what Helm 3 did.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.argohealth import HEALTHY, PROGRESSING, health_of
from tests.support.federation import PATIENCE_S, Federation, eventually, fedctl
from tests.support.rest import Refused
from tests.support.shared import new_namespace

pytestmark = [pytest.mark.e2e, pytest.mark.slow("kubectl and Helm wait"), pytest.mark.xdist_group("shared")]
WAIT_S = PATIENCE_S
NEVER_READY = {"simulator.kubeadmiral.io/ready": "false"}
RULES_OF_KINDS = {
    "apps/v1": ("Deployment", "StatefulSet", "DaemonSet"),
    "batch/v1": ("Job", "CronJob"),
    "v1": ("PersistentVolumeClaim", "Service"),
    "networking.k8s.io/v1": ("Ingress",),
    "policy/v1": ("PodDisruptionBudget",),
}
MEMBERS = ("member-1", "member-2")
WIDGETS = "example.com/v1/widgets"
Objects = dict[str, dict[str, Any]]


def an_object(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": kind.lower()}, "spec": spec}


def a_pod(app: str, **annotations: str) -> dict[str, Any]:
    metadata = {"labels": {"app": app}, "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]}}


def a_job_spec() -> dict[str, Any]:
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]}
    return {"completions": 3, "parallelism": 3, "template": {"spec": spec}}


def a_workload(kind: str, **spec: Any) -> dict[str, Any]:
    app = kind.lower()
    template = {"selector": {"matchLabels": {"app": app}}, "template": a_pod(app)}
    return an_object("apps/v1", kind, {**template, **spec})


def objects() -> Objects:
    backend = {"service": {"name": "service", "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    found = [
        a_workload("Deployment", replicas=4),
        a_workload("StatefulSet", replicas=3, serviceName="service"),
        a_workload("DaemonSet"),
        an_object("batch/v1", "Job", a_job_spec()),
        an_object("batch/v1", "CronJob", {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": a_job_spec()}}),
        an_object("v1", "PersistentVolumeClaim", claim),
        an_object("v1", "Service", {"type": "LoadBalancer", "selector": {"app": "x"}, "ports": [{"port": 80}]}),
        an_object("networking.k8s.io/v1", "Ingress", {"rules": [{"http": {"paths": [path]}}]}),
        an_object("policy/v1", "PodDisruptionBudget", {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}),
        an_object("example.com/v1", "Widget", {"size": 1}),
    ]
    return {obj["kind"]: obj for obj in found}


def a_definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
    }
    definition = an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec)
    return {**definition, "metadata": {"name": "widgets.example.com"}}


def a_policy(kind: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "waiting"}
    placement = [{"cluster": member, "preferences": {"weight": 1}} for member in MEMBERS]
    spec = {"schedulingMode": "Divide", "placement": placement, **spec}
    return {"apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def give_rights(fed: Federation, member: str) -> None:
    """Give the federation's account in the member the rights for widgets, once they are federated and served there."""
    eventually(lambda: fed.api().find("federatedtypeconfigs", "widgets.example.com"), bool)
    eventually(lambda: is_served(fed, member), bool, what="served widgets")
    kubeconfig, host = fed.member(member).kubeconfig, fed.kubectl.kubeconfig
    fedctl("join", "--update-credentials", member, "--kubeconfig", str(kubeconfig), KUBECONFIG=str(host))


def is_served(fed: Federation, member: str) -> bool:
    try:
        fed.api(member=member).list(WIDGETS)
    except Refused:
        return False
    return True


@pytest.fixture(scope="module")
def fed(shared_federation: Federation) -> Federation:
    """The federation that others use, too, with widgets in two members."""
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    selectors = [{**definition, "name": "widgets.example.com"}, {"apiVersion": "example.com/v1", "kind": "Widget"}]
    policy = a_policy("ClusterPropagationPolicy", resourceSelectors=selectors)
    shared_federation.kubectl.apply(policy, a_definition())
    for member in MEMBERS:
        give_rights(shared_federation, member)
    return shared_federation


class User:
    """A user with a namespace of the host."""

    def __init__(self, fed: Federation, namespace: str, folder: Path) -> None:
        self.fed = fed
        self.namespace = namespace
        self.folder = folder

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.fed.kubectl(*arguments, "-n", self.namespace, stdin=stdin, timeout_s=WAIT_S + 10)

    def get(self, kind: str) -> dict[str, Any]:
        plural = {"Widget": WIDGETS, "Ingress": "ingresses"}.get(kind, f"{kind.lower()}s")
        return self.fed.api(self.namespace).get(plural, kind.lower())

    def health(self) -> dict[str, str]:
        """Return Argo CD's health of all objects."""
        return {kind: health_of(self.get(kind)) for kind in objects()}

    def report_widget(self, member: str, status: str) -> None:
        """Report the condition Ready as the widget's controller in a member does."""
        api = self.fed.api(self.namespace, member=member)
        condition = {"type": "Ready", "status": status, "reason": "Tested", "message": ""}
        eventually(lambda: api.find(WIDGETS, "widget"), bool, what=f"{member}'s widget")
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        api.patch(WIDGETS, "widget", {"status": {"conditions": [condition]}}, "status")

    def install(self, wait: str, timeout_s: int, found: Objects) -> str:
        """Install the objects as a chart with the real Helm library; return the release's status or the error."""
        import helm_python as helm

        chart = self.folder / "chart"
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text("{apiVersion: v2, name: demo, version: 1.0.0}")
        (chart / "templates" / "all.yaml").write_text(yaml.safe_dump_all(found.values()))
        with helm.Config(kubeconfig_path=str(self.fed.kubectl.kubeconfig), namespace=self.namespace) as client:
            try:
                return str(client.install(str(chart), "demo", timeout=timeout_s, wait=wait)["status"])
            except helm.HelmError as error:
                return str(error)


@pytest.fixture
def user(fed: Federation, tmp_path: Path) -> Iterator[User]:
    namespace = new_namespace(fed, "waiting")
    kinds = [{"apiVersion": v, "kind": kind} for v, kinds in RULES_OF_KINDS.items() for kind in kinds]
    fed.api(namespace).create("propagationpolicies", a_policy("PropagationPolicy", resourceSelectors=kinds))
    yield User(fed, namespace, tmp_path)
    api = fed.api(namespace)
    for plural in ("deployments", "statefulsets", "daemonsets", "jobs"):
        api.send("DELETE", api.url(plural), propagationPolicy="Background")


def test_kubectl_waits_for_every_kind(user: User) -> None:
    user.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects().values()))
    for workload in ("deployment", "statefulset", "daemonset"):
        assert (
            "success" in (out := user.kubectl("rollout", "status", workload, f"--timeout={WAIT_S}s"))
            or "complete" in out
        )
    waits = {
        "deployment": "condition=Available",
        "statefulset": "jsonpath={.status.readyReplicas}=3",
        "daemonset": "jsonpath={.status.observedGeneration}=1",
        "job": "condition=Complete",
        "persistentvolumeclaim": "jsonpath={.status.phase}=Bound",
        "service": "jsonpath={.status.loadBalancer.ingress}",
        "ingress": "jsonpath={.status.loadBalancer.ingress}",
        "poddisruptionbudget": "jsonpath={.status.observedGeneration}=1",
    }
    for kind, condition in waits.items():
        out = user.kubectl("wait", f"{kind}/{kind}", f"--for={condition}", f"--timeout={WAIT_S}s")
        assert "condition met" in out
    arguments = ("wait", "widget/widget", "--for=condition=Ready", "-n", user.namespace)
    user.report_widget("member-1", "True")
    hasty = user.fed.kubectl.run(*arguments, "--timeout=1s")
    assert "timed out" in hasty.stderr, "one of two clusters is not enough"
    user.report_widget("member-2", "True")
    assert "condition met" in user.kubectl(*arguments[:3], f"--timeout={WAIT_S}s")
    eventually(user.health, lambda seen: set(seen.values()) == {HEALTHY}, what="Argo CD's health")
    user.kubectl("delete", "deployment", "deployment", "--wait=false")
    done = user.fed.kubectl.run(
        "wait", "deployment/deployment", "--for=delete", f"--timeout={WAIT_S}s", "-n", user.namespace
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("wait", ["watcher", "legacy"])
def test_helm_waits_until_everything_is_ready(user: User, wait: str) -> None:
    found = objects()
    # A Widget without a report counts as ready, so that the Job must not be until there is one.
    found["Job"]["spec"]["suspend"] = True
    if wait == "legacy":
        del found["Deployment"]  # Helm 3 looks for the Deployment's ReplicaSet, which is in the members only
    with ThreadPoolExecutor() as pool:
        installing = pool.submit(user.install, wait, WAIT_S, found)
        user.report_widget("member-1", "True")
        eventually(lambda: user.get("Widget").get("status"), lambda status: status is not None, what="the Widget")
        user.kubectl("patch", "job", "job", "--type=merge", "-p", json.dumps({"spec": {"suspend": False}}))
        eventually(lambda: health_of(user.get("Job")), lambda seen: seen == HEALTHY, what="the Job")
        if wait == "watcher":  # Helm 3 does not look at custom resources
            assert not installing.done(), f"{installing.result()}: the Widget is not ready in every cluster"
        user.report_widget("member-2", "True")
        assert installing.result() == "deployed"
    if wait == "watcher":
        assert set(user.health().values()) == {HEALTHY}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_nothing_waits_successfully_for_pods_that_are_never_ready(user: User, kind: str) -> None:
    workload = objects()[kind]
    workload["spec"]["template"] = a_pod(kind.lower(), **NEVER_READY)
    outcome = user.install("watcher", 4, {kind: workload})
    assert "not ready" in outcome
    assert health_of(user.get(kind)) == PROGRESSING
    done = user.fed.kubectl.run(
        "rollout", "status", f"{kind.lower()}/{kind.lower()}", "--timeout=1s", "-n", user.namespace
    )
    assert done.returncode != 0
    ours = eventually(
        lambda: fedctl(
            *("rollout", "status", f"{kind.lower()}/{kind.lower()}", "-n", user.namespace),
            check=False,
            KUBECONFIG=str(user.fed.kubectl.kubeconfig),
        ),
        lambda seen: "runs and is not ready" in seen.stdout.replace("\n", " "),
        what="why it is not ready",
    )
    assert ours.returncode == 1
