"""Operators over a host with three real members: their webhooks, definitions and classes act there, and not on the host.

The small operator of `examples/operators` is always installed. Manifests of public projects are installed from a
folder (docs/testing.md), which holds one file per project; the tests skip those that it lacks.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import REGIONS, RealFederation, apply, real_federation
from tests.support.federation import eventually
from tests.support.vectors import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
EXAMPLE = ROOT / "examples" / "operators"
LABEL = "kubeadmiral.io/cluster-propagation-policy-name"
PUBLIC = {
    "ingress-nginx": "",
    "cert-manager": "cert-manager",
    "kube-prometheus-stack": "monitoring",
    "argo-rollouts": "argo-rollouts",
    "keda": "keda",
    "knative": "",
    "strimzi": "kafka",
}
"""Files in the cache folder, and the namespace of objects that name none."""
FOLDER = Path(os.environ.get("FEDERATION_OPERATORS") or Path("~/.cache/federation/operators").expanduser())
WAIT_S = 600.0
INJECTED = ("get", "validatingwebhookconfiguration", "injected", "-o")


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    members = dict(zip(REGIONS, real, strict=True))
    with real_federation(tmp_path_factory.mktemp("operators"), members) as running:
        yield running


def reaches_every_member(fed: RealFederation, objects: Sequence[Mapping[str, Any]]) -> None:
    """Wait until each member has all the objects, but those that end by themselves."""

    def absent() -> list[str]:
        return [f"{name} {title(obj)}" for name in fed.members for obj in objects if not has(fed, name, obj)]

    eventually(absent, lambda seen: not seen, timeout_s=WAIT_S, pause_s=2.0, what="every object in every member")


def has(fed: RealFederation, member: str, obj: Mapping[str, Any]) -> bool:
    if obj["kind"] == "Job" and "ttlSecondsAfterFinished" in obj["spec"]:
        return True
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = f"{obj['kind']}.{version}.{group}" if group else obj["kind"]
    namespace = obj["metadata"].get("namespace", "default")
    return not fed.member(member).run("get", kind, obj["metadata"]["name"], "-n", namespace).returncode


def title(obj: Mapping[str, Any]) -> str:
    return f"{obj['kind']} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def is_running(fed: RealFederation, objects: Sequence[Mapping[str, Any]]) -> None:
    """Wait until the workloads are ready in each member, and on the host in all of them together."""
    for obj in objects:
        if obj["kind"] not in ("Deployment", "StatefulSet"):
            continue
        kind, name, namespace = obj["kind"].lower(), obj["metadata"]["name"], obj["metadata"]["namespace"]
        for member in fed.members:
            fed.member(member)("rollout", "status", f"{kind}/{name}", "-n", namespace, "--timeout=300s", timeout_s=310)
        fed.kubectl("rollout", "status", f"{kind}/{name}", "-n", namespace, "--timeout=300s", timeout_s=310)


def update_credentials(fed: RealFederation) -> None:
    """Grant the federation's accounts the rights for kinds that are federated since they joined."""
    for name in fed.members:
        fed.fedctl("join", "--update-credentials", name, "--kubeconfig", str(fed.clusters[name].kubeconfig))


def test_an_operator_is_installed_through_the_host_and_acts_in_members_only(fed: RealFederation) -> None:
    done = fed.kubectl.run("apply", "-k", str(EXAMPLE))
    assert not done.returncode, done.stderr
    assert done.stderr.count("acts in members only") == 4, done.stderr
    objects = [each for each in yaml.safe_load_all((EXAMPLE / "operator.yaml").read_text()) if each]
    reaches_every_member(fed, objects)
    is_running(fed, objects)
    # No pod answers behind the fake kubelet, so what the webhooks match is refused in members and accepted here.
    fed.kubectl("wait", "--for=condition=Established", "crd/greetings.example.com", "--timeout=30s")
    fed.kubectl("apply", "-f", str(EXAMPLE / "greeting.yaml"))
    update_credentials(fed)
    for kind in ("greeting", "ingress"):
        why = eventually(
            lambda kind=kind: fed.fedctl("why", f"{kind}/hello"),  # type: ignore[misc]  # bound now
            lambda seen: seen.count("failed calling webhook") >= len(fed.members),
            timeout_s=60.0,
            what=f"the webhooks of members refuse the {kind}",
        )
        assert "greetings.example.com" in why or "ingresses.example.com" in why


def test_what_a_webhook_in_a_member_refuses_is_delivered_once_its_configuration_is_deleted(fed: RealFederation) -> None:
    fed.kubectl("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "greeter")
    objects = [each for each in yaml.safe_load_all((EXAMPLE / "greeting.yaml").read_text()) if each]
    reaches_every_member(fed, objects)
    fed.kubectl("delete", "-f", str(EXAMPLE / "greeting.yaml"))


def test_certificates_that_a_member_injects_stay(fed: RealFederation) -> None:
    rule = {"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["none"]}
    webhook = {
        "name": "injected.example.com",
        "clientConfig": {"service": {"namespace": "greeter", "name": "greeter-webhook"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [rule],
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "injected", "labels": {LABEL: "operators"}},
        "webhooks": [webhook],
    }
    apply(fed.kubectl, configuration)
    reaches_every_member(fed, [configuration])
    path = "{.webhooks[0].clientConfig.caBundle}"
    for name in fed.members:
        patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Y2VydGlmaWNhdGU="}]
        fed.member(name)("patch", "validatingwebhookconfiguration", "injected", "--type=json", "-p", json.dumps(patch))
    apply(fed.kubectl, {**configuration, "webhooks": [{**webhook, "timeoutSeconds": 7}]})
    for name in fed.members:
        eventually(
            lambda name=name: fed.member(name)(*INJECTED, "jsonpath={.webhooks[0].timeoutSeconds}"),  # type: ignore[misc]  # bound now
            lambda seen: seen == "7",
            what="the change in the member",
        )
        assert fed.member(name)(*INJECTED, f"jsonpath={path}") == "Y2VydGlmaWNhdGU="
    fed.kubectl("delete", "validatingwebhookconfiguration", "injected")


class ManifestLoader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: a plain `=`, which some schemas list as a value, is text."""


ManifestLoader.add_constructor("tag:yaml.org,2002:value", yaml.CSafeLoader.construct_scalar)


def public_objects(project: str, file: Path) -> list[dict[str, Any]]:
    """Return the project's objects with the label of the policy, as kustomize would set it."""
    documents = yaml.load_all(file.read_text(), Loader=ManifestLoader)
    found = [item for each in documents if each for item in each.get("items", [each])]
    namespace = PUBLIC[project]
    if namespace:
        found.insert(0, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for obj in found:
        metadata = obj["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), LABEL: "operators"}
        if namespace and obj["kind"] in NAMESPACED:
            metadata.setdefault("namespace", namespace)
    return found


NAMESPACED = {
    *("ServiceAccount", "ConfigMap", "Secret", "Service", "Deployment", "StatefulSet", "DaemonSet", "Job"),
    *("Role", "RoleBinding", "PodDisruptionBudget", "HorizontalPodAutoscaler", "NetworkPolicy"),
}


@pytest.mark.parametrize("project", PUBLIC)
def test_a_public_operator_is_installed_in_every_member(fed: RealFederation, project: str, tmp_path: Path) -> None:
    file = FOLDER / f"{project}.yaml"
    if not file.exists():
        pytest.skip(f"{file} does not exist (docs/testing.md)")
    objects = public_objects(project, file)
    first = [obj for obj in objects if obj["kind"] in ("Namespace", "CustomResourceDefinition")]
    custom = {(obj["spec"]["group"], obj["spec"]["names"]["kind"]) for obj in first if "spec" in obj}
    kinds = {
        (obj["apiVersion"], obj["kind"])
        for obj in objects
        if (obj["apiVersion"].rpartition("/")[0], obj["kind"]) in custom
    }
    selectors = [{"apiVersion": version, "kind": kind, "name": "none"} for version, kind in sorted(kinds)]
    policy = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": "operators"},
        "spec": {"schedulingMode": "Duplicate", **({"resourceSelectors": selectors} if selectors else {})},
    }
    apply(fed.kubectl, policy)
    for part in (first, [obj for obj in objects if obj not in first]):
        if not part:
            continue
        manifest = tmp_path / "part.yaml"
        manifest.write_text("\n---\n".join(map(json.dumps, part)))
        fed.kubectl("apply", "--server-side", "-f", str(manifest), timeout_s=WAIT_S)
        definitions = [f"crd/{obj['metadata']['name']}" for obj in part if obj["kind"] == "CustomResourceDefinition"]
        if definitions:
            fed.kubectl("wait", "--for=condition=Established", *definitions, "--timeout=300s", timeout_s=310)
        if definitions and kinds:
            configs = [f"ftc/{resource}" for resource in derived(first, kinds)]
            eventually(
                lambda configs=configs: fed.kubectl.run("get", *configs).returncode,  # type: ignore[misc]  # bound now
                lambda code: not code,
                what="derived configurations",
            )
            update_credentials(fed)
    reaches_every_member(fed, objects)
    is_running(fed, objects)


def derived(definitions: Sequence[Mapping[str, Any]], kinds: set[tuple[str, str]]) -> list[str]:
    """Return the names of the FederatedTypeConfigs of custom kinds."""
    wanted = {(version.rpartition("/")[0], kind) for version, kind in kinds}
    return [
        obj["metadata"]["name"]
        for obj in definitions
        if "spec" in obj and (obj["spec"]["group"], obj["spec"]["names"]["kind"]) in wanted
    ]
