"""The chart, installed by Helm in a simulated cluster whose workloads run, and on a control plane's own API."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import helm_python as helm
import pytest

from tests.support.federation import Kubectl, free_clusters
from tests.support.vectors import ROOT

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("Helm in a cluster"),
    pytest.mark.xdist_group("chart"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
CHART = ROOT / "charts" / "federation"
REPLICATED = {
    "store": "postgresql",
    "postgresql": {"url": "postgresql://federation:secret@db/federation", "replicas": 2},
    "audit": {"policy": {"rules": [{"level": "Metadata"}]}},
    "advertiseURL": "https://fed.example.com",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A simulated cluster, whose kubelets run pods."""
    with free_clusters(tmp_path_factory.mktemp("chart"), 1) as kubeconfigs:
        yield Kubectl(kubeconfigs[0])


def names(kubectl: Kubectl, kinds: str) -> set[str]:
    return set(kubectl("get", kinds, "-n", "federation", "-o", "name").split())


def install(kubeconfig: Path, values: dict[str, Any], *, is_upgrade: bool = False) -> str:
    """Install or upgrade the release and wait until its workloads are ready; return the status."""
    with helm.Config(kubeconfig_path=str(kubeconfig), namespace="federation") as client:
        if is_upgrade:
            return str(client.upgrade(str(CHART), "fed", values=values, timeout=60, wait="legacy")["status"])
        release = client.install(str(CHART), "fed", values=values, timeout=60, wait="legacy", create_namespace=True)
        return str(release["status"])


def test_the_chart_installs_upgrades_and_goes(cluster: Kubectl) -> None:
    assert install(cluster.kubeconfig, {"sqlite": {"size": "1Gi"}}) == "deployed"
    assert names(cluster, "statefulset,deployment,pdb") == {"statefulset.apps/fed-federation"}
    assert names(cluster, "pvc") == {"persistentvolumeclaim/state-fed-federation-0"}
    ready = cluster("get", "sts", "fed-federation", "-n", "federation", "-o", "jsonpath={.status.readyReplicas}")
    assert ready == "1"

    assert install(cluster.kubeconfig, REPLICATED, is_upgrade=True) == "deployed"
    assert names(cluster, "statefulset,deployment,pdb,networkpolicy,secret,configmap") >= {
        "deployment.apps/fed-federation",
        "poddisruptionbudget.policy/fed-federation",
        "networkpolicy.networking.k8s.io/fed-federation",
        "secret/fed-federation-database",
        "configmap/fed-federation-audit",
    }
    assert "statefulset.apps/fed-federation" not in names(cluster, "statefulset")
    assert names(cluster, "pvc"), "the volume of SQLite is kept"
    rights = cluster("auth", "can-i", "--list", "--as=system:serviceaccount:federation:fed-federation")
    verbs = {line.split()[-1] for line in rights.splitlines()[1:] if not line.startswith(" ")}
    assert verbs <= {"[create]"}, "self reviews, which every account may make"

    with helm.Config(kubeconfig_path=str(cluster.kubeconfig), namespace="federation") as client:
        client.uninstall("fed", timeout=60)
    assert not names(cluster, "deployment,service,networkpolicy,pdb")
