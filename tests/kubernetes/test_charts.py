"""What people really install: Argo CD, the Prometheus operator and cert-manager, on a real API server and on ours.

Kubernetes' controllers and a fake kubelet run behind both servers, so every workload of an installation gets ready.
"""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from tests.kubernetes import packages
from tests.kubernetes.cluster import Server
from tests.support.federation import Kubectl, eventually

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
WAIT_S = 120
ROLLED_OUT = ("rollout", "status", f"--timeout={WAIT_S}s")


def wait_ready(kubectl: Kubectl, namespace: str, *, at_least: int) -> None:
    """Wait until every Deployment and StatefulSet of a namespace is rolled out."""
    names = kubectl("get", "deploy,statefulset", "-n", namespace, "-o", "name").split()
    assert len(names) >= at_least, names
    for name in names:
        kubectl(*ROLLED_OUT, "-n", namespace, name, timeout_s=WAIT_S + 10)


def images(kubectl: Kubectl, namespace: str) -> set[str]:
    path = "{.items[*].spec.template.spec.containers[*].image}"
    return set(kubectl("get", "deploy,statefulset", "-n", namespace, "-o", f"jsonpath={path}").split())


def is_whole(file: Path) -> bool:
    """Return True if a file holds objects with names; some examples are fragments."""
    documents = [each for each in yaml.safe_load_all(file.read_text()) if each]
    return all("apiVersion" in each and (each.get("metadata") or {}).get("name") for each in documents)


def test_argo_cd_installs_upgrades_and_goes(server: Server) -> None:
    kubectl = server.kubectl
    first, second = (packages.folder_of(module) / "manifests" / "install.yaml" for module in packages.ARGO_CD)
    kubectl("create", "namespace", "argocd")
    kubectl("apply", "--server-side", "-n", "argocd", "-f", str(first), timeout_s=120)
    wait_ready(kubectl, "argocd", at_least=7)
    before = images(kubectl, "argocd")
    kubectl("apply", "--server-side", "-n", "argocd", "-f", str(second), timeout_s=120)
    wait_ready(kubectl, "argocd", at_least=7)
    assert images(kubectl, "argocd") != before
    # Applied again, it changes nothing.
    again = kubectl("apply", "--server-side", "-n", "argocd", "-f", str(second), timeout_s=120)
    assert "created" not in again
    application = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "guestbook", "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://example.com/repo.git", "path": "guestbook", "targetRevision": "HEAD"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "guestbook"},
        },
    }
    kubectl.apply(application)
    broken = {**application, "spec": {"project": "default"}}
    refused = kubectl.run("apply", "-f", "-", stdin=json.dumps(broken))
    assert "spec.destination: Required value" in refused.stderr
    kubectl("delete", "-n", "argocd", "-f", str(second), "--wait=false", timeout_s=120)
    kubectl("delete", "namespace", "argocd", timeout_s=WAIT_S)
    eventually(
        lambda: kubectl("get", "crd", "-o", "name"),
        lambda seen: "argoproj.io" not in seen,
        timeout_s=WAIT_S,
        what="CRDs gone",
    )


def test_the_prometheus_operator_installs_and_its_objects_are_served(server: Server) -> None:
    kubectl = server.kubectl
    folder = packages.folder_of(packages.PROMETHEUS_OPERATOR[0])
    kubectl("apply", "--server-side", "-f", str(folder / "bundle.yaml"), timeout_s=180)
    kubectl(*ROLLED_OUT, "deploy/prometheus-operator", timeout_s=WAIT_S + 10)
    guides = folder / "example" / "user-guides"
    files = [*guides.glob("getting-started/*.yaml"), *guides.glob("alerting/*.yaml")]
    examples = [file for file in sorted(files) if is_whole(file)]
    assert len(examples) > 10
    for example in examples:
        done = kubectl.run("apply", "-f", str(example), timeout_s=60)
        assert not done.returncode, f"{example.name}: {done.stderr}"
    assert "prometheus" in kubectl("get", "prometheuses.monitoring.coreos.com", "-A")
    kubectl("delete", "-f", str(folder / "bundle.yaml"), "--wait=false", timeout_s=180)


def test_cert_manager_installs_and_upgrades_by_helm(server: Server, tmp_path: Path) -> None:
    import helm_python as helm

    kubectl = server.kubectl
    first, second = (packages.folder_of(module) / "deploy/charts/cert-manager" for module in packages.CERT_MANAGER)
    charts = []
    for version, chart in (("1.21.1", first), ("1.21.2", second)):
        copy = tmp_path / version
        shutil.copytree(chart, copy, copy_function=shutil.copyfile)
        copy.chmod(0o755)
        meta = copy / "Chart.yaml"
        meta.write_text(f"{meta.read_text()}\nversion: {version}\nappVersion: v{version}\n")
        charts.append(str(copy))
    kubectl("create", "namespace", "cert-manager")
    values = {"crds": {"enabled": True}}
    with helm.Config(kubeconfig_path=str(server.kubeconfig), namespace="cert-manager") as client:
        assert client.install(charts[0], "cert-manager", values=values, timeout=WAIT_S)["revision"] == 1
        wait_ready(kubectl, "cert-manager", at_least=3)
        assert client.upgrade(charts[1], "cert-manager", values=values, timeout=WAIT_S)["revision"] == 2
        wait_ready(kubectl, "cert-manager", at_least=3)
        assert "certificates.cert-manager.io" in kubectl("get", "crd", "-o", "name")
        client.uninstall("cert-manager")
    kubectl("delete", "namespace", "cert-manager", timeout_s=WAIT_S)
