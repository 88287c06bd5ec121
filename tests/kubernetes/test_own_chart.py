"""The federation's own chart on a real API server and on ours: its objects are accepted, and its pods are restricted.

The namespace enforces the Pod Security Standard `restricted`. Certificates and ServiceMonitors are checked against the
definitions of cert-manager and of the Prometheus operator.
"""

from collections.abc import Iterator
from typing import Any

import helm_python as helm
import pytest
import yaml
from tests.kubernetes import packages
from tests.kubernetes.cluster import Server
from tests.support.federation import Kubectl
from tests.support.vectors import ROOT

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CHART = str(ROOT / "charts" / "federation")
NAMESPACE = "federation"
DEFINITIONS = (
    (packages.CERT_MANAGER[0], "deploy/crds/cert-manager.io_certificates.yaml"),
    (
        packages.PROMETHEUS_OPERATOR[0],
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
    ),
)
REPLICATED: dict[str, Any] = {
    "store": "postgresql",
    "postgresql": {"existingSecret": {"name": "database"}, "replicas": 2},
    "tls": {"source": "certManager", "names": ["203.0.113.7"], "certManager": {"issuerRef": {"name": "company"}}},
    "advertiseURL": "https://fed.example.com",
    "service": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8"]},
    "networkPolicy": {"from": [{"podSelector": {}}], "egress": [{"ports": [{"port": 443}]}]},
    "audit": {"policy": {"rules": [{"level": "Metadata"}]}},
    "encryption": {"secretName": "encryption"},
    "serviceMonitor": {"enabled": True},
}


@pytest.fixture
def kubectl(server: Server) -> Iterator[Kubectl]:
    """A cluster with the definitions of others, and a namespace that admits restricted pods only."""
    found = server.kubectl
    for module, file in DEFINITIONS:
        found("apply", "--server-side", "--force-conflicts", "-f", str(packages.folder_of(module) / file))
    for name in ("certificates.cert-manager.io", "servicemonitors.monitoring.coreos.com"):
        found("wait", "crd", name, "--for=condition=Established", "--timeout=30s")
    found("create", "namespace", NAMESPACE)
    found("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    yield found
    found("delete", "namespace", NAMESPACE, timeout_s=120)


def differences(wanted: Any, live: Any, path: str = "") -> list[str]:
    """Return the fields of a manifest that the server did not keep."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return [each for key in wanted for each in differences(wanted[key], live.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        pairs = enumerate(zip(wanted, live, strict=True))
        return [each for index, (one, other) in pairs for each in differences(one, other, f"{path}[{index}]")]
    return [] if wanted == live or not wanted else [f"{path}: {wanted!r} became {live!r}"]


def check_accepted(kubectl: Kubectl, manifest: str) -> None:
    """Check that every field of the release is in the server's objects."""
    for wanted in filter(None, yaml.safe_load_all(manifest)):
        live = kubectl.json("get", wanted["kind"], wanted["metadata"]["name"], "-n", NAMESPACE)
        assert not differences(wanted, live), wanted["kind"]


def test_the_chart_installs_on_postgresql_and_its_pods_are_admitted(kubectl: Kubectl) -> None:
    for name, key in (("database", "url"), ("encryption", "keys"), ("fed-federation-tls", "tls.crt")):
        kubectl("create", "secret", "generic", name, "-n", NAMESPACE, f"--from-literal={key}=x")
    with helm.Config(kubeconfig_path=str(kubectl.kubeconfig), namespace=NAMESPACE) as client:
        manifest = str(client.install(CHART, "fed", values=REPLICATED, timeout=120)["manifest"])
        kubectl("rollout", "status", "deploy/fed-federation", "-n", NAMESPACE, "--timeout=60s", timeout_s=70)
        check_accepted(kubectl, manifest)
        assert {"Certificate", "ServiceMonitor", "PodDisruptionBudget", "NetworkPolicy"} <= {
            each["kind"] for each in yaml.safe_load_all(manifest) if each
        }
        client.uninstall("fed")


def test_the_chart_installs_with_sqlite(kubectl: Kubectl) -> None:
    with helm.Config(kubeconfig_path=str(kubectl.kubeconfig), namespace=NAMESPACE) as client:
        check_accepted(kubectl, str(client.install(CHART, "fed", timeout=120)["manifest"]))
        path = "jsonpath={.status.currentReplicas}"
        kubectl("wait", "sts/fed-federation", "-n", NAMESPACE, f"--for={path}=1", "--timeout=30s")
        client.uninstall("fed")
    assert "state-fed-federation-0" in kubectl("get", "pvc", "-n", NAMESPACE, "-o", "name")
