"""The account that a join creates: it suffices for every federated kind, and for nothing else.

Members are the product's own API servers over HTTPS, which enforce RBAC.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.federation import Federation, eventually, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, NAMESPACE, POLICY, ROLE, Member, assert_works
from tests.support.rest import until_not_refused

from federation.api.federatedtype import default_type_configs

pytestmark = [pytest.mark.e2e, pytest.mark.slow("fedctl join and kubectl"), pytest.mark.xdist_group("join-rights")]
RBAC = "rbac.authorization.k8s.io"
POLICY_LABEL = {"kubeadmiral.io/cluster-propagation-policy-name": "all"}
POD = {"containers": [{"name": "web", "image": "nginx:1.27"}]}
CRDS = Path(__file__).resolve().parents[2] / "charts" / "federation" / "crds"


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with closing(start_serve(tmp_path_factory.mktemp("join-rights") / "host")) as running:
        running.kubectl.apply(POLICY, DEPLOYMENT)
        yield running


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    with free_clusters(tmp_path_factory.mktemp("join-rights") / "clusters", 2) as running:
        yield running


@pytest.fixture
def member(fed: Federation, clusters: list[Path]) -> Iterator[Member]:
    one = Member(fed, "frankfurt", clusters[0])
    yield one
    one.leave()


def an_object(api_version: str, kind: str, name: str, namespace: str = "shop", **content: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": {**POLICY_LABEL, "step": "one"}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def a_workload(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": POD}
    return an_object("apps/v1", kind, name, spec={"selector": {"matchLabels": labels}, "template": template, **spec})


def objects_of_every_kind() -> list[dict[str, Any]]:
    reads = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    subjects = [{"kind": "User", "name": "bob", "apiGroup": RBAC}]
    pods = {**POD, "restartPolicy": "Never"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "x"}
    volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}}
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}
    return [
        an_object("v1", "ConfigMap", "settings", data={"a": "1"}),
        an_object("v1", "Secret", "password", stringData={"a": "1"}),
        an_object("v1", "ServiceAccount", "robot"),
        an_object("v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]}),
        an_object("v1", "PersistentVolumeClaim", "data", spec=claim),
        an_object("v1", "PersistentVolume", "disk", "", spec=volume),
        an_object(
            "v1",
            "LimitRange",
            "limits",
            spec={"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}}]},
        ),
        an_object("v1", "ResourceQuota", "quota", spec={"hard": {"count/secrets": "50"}}),
        an_object("storage.k8s.io/v1", "StorageClass", "fast", "", provisioner="example.com/disk"),
        an_object("scheduling.k8s.io/v1", "PriorityClass", "important", "", value=1000),
        an_object("networking.k8s.io/v1", "NetworkPolicy", "quiet", spec={"podSelector": {}}),
        an_object(
            "policy/v1",
            "PodDisruptionBudget",
            "app",
            spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "app"}}},
        ),
        a_workload("Deployment", "app", replicas=2),
        a_workload("StatefulSet", "db", serviceName="db"),
        a_workload("DaemonSet", "agent"),
        {**a_workload("CloneSet", "clones"), "apiVersion": "apps.kruise.io/v1alpha1"},
        {**a_workload("StatefulSet", "advanced"), "apiVersion": "apps.kruise.io/v1beta1"},
        an_object("batch/v1", "Job", "once", spec={"template": {"spec": pods}}),
        an_object(
            "batch/v1",
            "CronJob",
            "nightly",
            spec={"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": {"spec": pods}}}},
        ),
        an_object("networking.k8s.io/v1", "Ingress", "web", spec={"rules": [{"http": {"paths": [path]}}]}),
        an_object(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "app",
            spec={"maxReplicas": 4, "scaleTargetRef": target},
        ),
        # Rules beyond those of the account: the member demands `escalate` and `bind` for these.
        an_object(f"{RBAC}/v1", "ClusterRole", "reader", "", rules=[{**reads[0], "resources": ["*"], "verbs": ["*"]}]),
        an_object(f"{RBAC}/v1", "Role", "reader", rules=[{**reads[0], "verbs": ["deletecollection"]}]),
        an_object(
            f"{RBAC}/v1",
            "ClusterRoleBinding",
            "readers",
            "",
            subjects=subjects,
            roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        ),
        an_object(
            f"{RBAC}/v1",
            "RoleBinding",
            "readers",
            subjects=subjects,
            roleRef={"apiGroup": RBAC, "kind": "Role", "name": "reader"},
        ),
        a_crd(),
        an_object(
            "multicluster.x-k8s.io/v1alpha1",
            "ServiceImport",
            "remote",
            spec={"type": "ClusterSetIP", "ports": [{"port": 80}]},
        ),
        an_object("multicluster.x-k8s.io/v1alpha1", "ServiceExport", "web"),
        *configurations(),
    ]


def configurations() -> list[dict[str, Any]]:
    """Return one object of each shipped kind that acts on an API server, without effect on what a test writes."""
    rule = {"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["none"]}
    client_config = {"url": "https://127.0.0.1:1/"}
    webhook = {"name": "check.example.com", "clientConfig": client_config, "rules": [rule], "sideEffects": "None"}
    webhooks = [{**webhook, "admissionReviewVersions": ["v1"]}]
    validations = [{"expression": "true"}]
    policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": validations}
    binding = {"policyName": "none", "validationActions": ["Deny"]}
    service = {"namespace": "shop", "name": "web", "port": 80}
    api = {"group": "metrics.example.com", "version": "v1", "service": service, "insecureSkipTLSVerify": True}
    api |= {"groupPriorityMinimum": 100, "versionPriority": 100}
    admission = "admissionregistration.k8s.io/v1"
    return [
        an_object(admission, "ValidatingWebhookConfiguration", "checks", "", webhooks=webhooks),
        an_object(admission, "MutatingWebhookConfiguration", "checks", "", webhooks=webhooks),
        an_object(admission, "ValidatingAdmissionPolicy", "none", "", spec=policy),
        an_object(admission, "ValidatingAdmissionPolicyBinding", "none", "", spec=binding),
        an_object("apiregistration.k8s.io/v1", "APIService", "v1.metrics.example.com", "", spec=api),
        an_object("networking.k8s.io/v1", "IngressClass", "own", "", spec={"controller": "example.com/own"}),
    ]


def a_crd() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    return an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com", "", spec=spec)


def a_type(plural: str, kind: str, group: str) -> dict[str, Any]:
    source = {"group": group, "version": "v1", "kind": kind, "pluralName": plural, "scope": "Namespaced"}
    stages = [["kubeadmiral.io/global-scheduler"], ["kubeadmiral.io/overridepolicy-controller"]]
    return {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "FederatedTypeConfig",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"sourceType": source, "controllers": stages, "statusAggregation": {"enabled": False}},
    }


ALL_POLICY = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "ClusterPropagationPolicy",
    "metadata": {"name": "all"},
    "spec": {"schedulingMode": "Duplicate"},
}


PLURALS = {
    (source["group"], source["kind"]): source["pluralName"]
    for source in (config["spec"]["sourceType"] for config in default_type_configs())
}


def step_of(member: Member, obj: dict[str, Any]) -> str:
    """Return the label `step` of the member's copy, "" for an absent one."""
    group = obj["apiVersion"].rpartition("/")[0]
    metadata = obj["metadata"]
    api = member.kubectl.api(metadata.get("namespace", ""))
    live = api.find(f"{obj['apiVersion']}/{PLURALS[group, obj['kind']]}", metadata["name"])
    return "" if live is None else live["metadata"].get("labels", {}).get("step", "")


def until_step(member: Member, objects: list[dict[str, Any]], step: str) -> None:
    """Wait until every copy has had this step once."""
    missing = list(objects)

    def look() -> list[str]:
        missing[:] = [obj for obj in missing if step_of(member, obj) != step]
        return [f"{obj['kind']} {obj['metadata']['name']}: {step_of(member, obj)}" for obj in missing]

    eventually(look, lambda different: not different, what=f"every object at step {step or 'absent'}")


def test_the_computed_rights_suffice_for_every_default_kind(member: Member) -> None:
    for pattern in ("multicluster*.yaml", "apps.kruise.io_*sets.yaml"):
        for path in CRDS.glob(pattern):
            member.kubectl("apply", "-f", str(path))
    member.join(member.kubectl.kubeconfig)
    host = member.fed.kubectl
    objects = objects_of_every_kind()
    # Propagated without a policy, written by controllers only, and propagated with the workload.
    unplaced = {"Namespace", "EndpointSlice", "WorkloadSpread"}
    shipped = {config["spec"]["sourceType"]["kind"] for config in default_type_configs()}
    assert {o["kind"] for o in objects} == shipped - unplaced
    host.apply(ALL_POLICY, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    documents = "\n---\n".join(json.dumps(o) for o in objects)
    host("apply", "-f", "-", stdin=documents)
    until_step(member, objects, "one")
    eventually(
        lambda: host.api("shop").get("deployments", "app").get("status", {}).get("readyReplicas"),
        lambda ready: ready == 2,
        what="the status of the member's Deployment on the host",
    )
    host("label", "--overwrite", "-f", "-", "step=two", stdin=documents)
    until_step(member, objects, "two")
    member.kubectl("label", "--overwrite", "-f", "-", "step=drift", stdin=documents)
    until_step(member, objects, "two")
    assert member.condition("Authorized")["reason"] == "RightsSufficient"
    host("delete", "-f", "-", "--wait=false", stdin=documents)
    until_step(member, objects, "")
    host("delete", "ns", "shop", "--wait=false")
    eventually(lambda: member.kubectl.api("").exists("namespaces", "shop"), lambda seen: not seen, what="shop removed")
    member.unjoin()
    eventually(member.traces, lambda left: not left, what="no trace of the membership")


def test_the_account_can_do_nothing_else(fed: Federation, clusters: list[Path], tmp_path: Path) -> None:
    member = Member(fed, "oslo", clusters[1])
    kinds = ["secrets", *(f"{p}.{RBAC}" for p in ("roles", "rolebindings", "clusterroles", "clusterrolebindings"))]
    removed = {kind: fed.kubectl.json("get", "ftc", kind) for kind in kinds}
    fed.kubectl("delete", "ftc", *kinds)
    try:
        member.join(clusters[1])
        member.kubectl("create", "secret", "generic", "treasure", "--from-literal=a=b")
        member.kubectl.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}, "spec": POD}
        )
        role = member.kubectl.json("get", "clusterrole", ROLE)
        assert all("*" not in (*r["verbs"], *r.get("resources", ()), *r.get("apiGroups", ())) for r in role["rules"])
        # Simulated members also let the federation act for users of the host; joining does not grant that.
        member.kubectl("delete", "clusterrolebinding", "federation:impersonator", "--ignore-not-found")
        account = member.as_account(tmp_path / "account")
        node = member.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
        binding = ["create", "clusterrolebinding", "mine", "--clusterrole=cluster-admin"]
        widen = ["patch", "clusterrole", ROLE, "--type=json", "-p"]
        beyond = [
            ["get", "secrets", "-A"],
            ["get", "secret", "treasure", "-n", "default"],
            [*binding, "--serviceaccount=kube-admiral-system:kubeadmiral-member"],
            [*widen, '[{"op":"replace","path":"/rules/0/resources","value":["*"]}]'],
            ["get", "configmaps", "--as=system:admin", "--as-group=system:masters"],
            ["create", "token", "default", "-n", "default"],
            ["create", "token", "kubeadmiral-member", "-n", "default"],
            ["get", "pod", "web", "-n", "default"],
            ["delete", "pod", "web", "-n", "default"],
            ["delete", "node", node],
        ]
        for command in beyond:
            done = account.run(*command, stdin="{}")
            assert member.refused(done), f"kubectl {' '.join(command)}: {done.stdout}{done.stderr}"
        # The member does not serve these, a real one does.
        for verb, resource in (("get", "nodes/proxy"), ("create", "pods/exec"), ("create", "pods/portforward")):
            assert account("auth", "can-i", verb, resource, "-n", "default", check=False).strip() == "no"
        assert account("create", "token", "kubeadmiral-member", "-n", NAMESPACE), "it renews its own token"
        fed.kubectl("create", "configmap", "still", "-n", "default", "--from-literal=a=b")
        assert_works(member)
    finally:
        member.leave()
        fed.kubectl.apply(*(without_server_fields(config) for config in removed.values()))


def without_server_fields(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {"name": obj["metadata"]["name"]}}


def test_a_kind_that_is_federated_later_is_held_until_its_rights_are_granted(member: Member) -> None:
    host = member.fed.kubectl
    crd = a_crd()
    member.kubectl.apply(crd)
    host.apply(crd, ALL_POLICY)
    member.join(member.kubectl.kubeconfig)
    member.until_authorized("RightsSufficient")
    host.apply(a_type("widgets", "Widget", "example.com"))
    try:
        condition = member.until_authorized("RightsMissing")
        assert "widgets.example.com (create, delete, get, list, patch, watch)" in condition["message"]
        command = "fedctl join --update-credentials frankfurt --kubeconfig FILE"
        assert command in condition["message"]
        assert "Ready (RightsMissing)" in member.fedctl("clusters")
        host("wait", "crd/widgets.example.com", "--for=condition=Established")
        host.apply(an_object("example.com/v1", "Widget", "gear", "default", spec={"size": 1}))
        events = eventually(
            lambda: host.api("").list("events")["items"],
            lambda seen: any(command in event["message"] for event in seen),
            what="an event",
        )
        assert any(event["reason"] == "RightsMissing" for event in events if command in event["message"])
        host("delete", "deploy", "web", "--wait")
        host.apply(DEPLOYMENT)
        assert_works(member)
        # A real server refuses lists of a new kind for a moment, until its cache is there.
        listed = partial(member.kubectl.api().names, "example.com/v1/widgets")
        assert until_not_refused(listed, "storage is (re)initializing") == []
        member.update_credentials(member.kubectl.kubeconfig)
        eventually(
            lambda: member.kubectl.api().names("example.com/v1/widgets"),
            lambda seen: seen == ["gear"],
            what="the Widget in the member",
        )
        member.until_authorized("RightsSufficient")
    finally:
        host(
            "delete", "widget", "gear", "-n", "default", "--ignore-not-found"
        )  # before the type: its controllers release it
        host("delete", "ftc", "widgets.example.com")
        for kubectl in (host, member.kubectl):  # the member's own definition would stay, and be in the way of the next
            kubectl("delete", "crd", "widgets.example.com")
