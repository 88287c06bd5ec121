"""UnitedDeployments of `fedctl up`, in a member and on the host: kubectl applies, scales and reads them."""

from pathlib import Path

import pytest
import yaml

from tests.support.federation import Kubectl, eventually, fedctl, federation
from tests.support.vectors import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow("two federations")]

EXAMPLE = ROOT / "examples" / "seeds" / "001" / "platforms-with-resources.yaml"
PLATFORMS = {"member-1-node-1": "intel", "member-1-node-2": "amd", "member-1-node-3": "yitian-arm"}


def _ready(kubectl: Kubectl) -> dict[str, int]:
    """Return the ready replicas of each Deployment by its subset."""
    listed = kubectl.api().list("deployments")["items"]
    return {
        each["metadata"]["labels"]["apps.kruise.io/subset-name"]: (each.get("status") or {}).get("readyReplicas", 0)
        for each in listed
    }


def test_the_platforms_of_document_001_are_scaled_together(tmp_path: Path) -> None:
    with federation(tmp_path / "up", members=1, arguments=["--workload-spreads"]) as running:
        kubectl = running.member("member-1")
        for node, platform in PLATFORMS.items():
            kubectl("label", "node", node, f"cpu-platform={platform}")
        kubectl("apply", "-f", str(EXAMPLE))
        eventually(lambda: _ready(kubectl), {"intel": 2, "amd64": 1, "yitian-arm": 1}.__eq__)
        kubectl("scale", "uniteddeployment/my-app", "--replicas=7")
        eventually(lambda: _ready(kubectl), {"intel": 3, "amd64": 2, "yitian-arm": 2}.__eq__)
        eventually(lambda: kubectl("get", "ud", "my-app", "--no-headers").split()[1:5], (["7"] * 4).__eq__)

        refused = EXAMPLE.read_text().replace("replicas: 50%", "replicas: 10%").replace("name: my-app", "name: other")
        done = kubectl.run("apply", "-f", "-", stdin=refused)
        assert done.returncode != 0
        assert "spec.topology.subsets" in done.stderr

        kubectl("delete", "-f", str(EXAMPLE))
        eventually(lambda: _ready(kubectl), {}.__eq__)


POLICY = """
apiVersion: core.kubeadmiral.io/v1alpha1
kind: PropagationPolicy
metadata: {name: divide}
spec: {schedulingMode: Divide}
"""


def test_the_autoscaler_of_document_001_scales_over_two_clusters(tmp_path: Path) -> None:
    """The first cluster takes two replicas at most; use of 5 % is more than twice the target of 2 %."""
    (united,) = yaml.safe_load_all((EXAMPLE.parent / "serverless-when-unschedulable.yaml").read_text())
    united["metadata"]["labels"] = {"kubeadmiral.io/propagation-policy-name": "divide"}
    workload = united["spec"]["template"]["deploymentTemplate"]
    workload["metadata"]["annotations"] = {"simulator.kubeadmiral.io/cpu-load": "0s=100m"}
    for number, subset in enumerate(united["spec"]["topology"]["subsets"], start=1):
        subset["targetCluster"] = {"name": f"member-{number}"}
        del subset["nodeSelectorTerm"]
    united["spec"]["topology"]["subsets"][0]["maxReplicas"] = 2
    united["spec"]["replicas"] = 2
    autoscaler = fedctl("convert", str(EXAMPLE.parent / "autoscaler-v2beta1.yaml")).stdout
    autoscaler = autoscaler.replace("maxReplicas: 100", "maxReplicas: 5")
    with federation(tmp_path / "up", members=2) as running:
        kubectl, members = running.kubectl, [running.member("member-1"), running.member("member-2")]

        def ready() -> list[int]:
            return [sum(_ready(member).values()) for member in members]

        def replicas() -> int:
            found = kubectl.api().get("apps.kruise.io/v1alpha1/uniteddeployments", "elastic-app")
            return int(found["spec"]["replicas"])

        kubectl("apply", "-f", "-", stdin=POLICY)
        kubectl("apply", "-f", "-", stdin=yaml.safe_dump(united))
        kubectl("apply", "-f", "-", stdin=autoscaler)
        eventually(ready, [2, 0].__eq__)
        # Metrics of a new pod count once they cover 15 seconds in which it was ready.
        eventually(replicas, (5).__eq__)
        eventually(ready, [2, 3].__eq__)
        assert "cpu" in kubectl("get", "hpa", "elastic-app-hpa", "--no-headers")
        metrics = members[0].json("get", "pods.metrics.k8s.io")["items"]
        assert [each["containers"][0]["usage"]["cpu"] for each in metrics] == ["50m", "50m"]
