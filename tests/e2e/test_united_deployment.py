"""UnitedDeployments in a member of `fedctl up`: kubectl applies, scales and reads them, and hears what is wrong."""

from pathlib import Path

import pytest

from tests.support.federation import Kubectl, eventually, federation
from tests.support.vectors import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

EXAMPLE = ROOT / "examples" / "seeds" / "001" / "platforms-with-resources.yaml"
PLATFORMS = {"member-1-node-1": "intel", "member-1-node-2": "amd", "member-1-node-3": "yitian-arm"}


def _ready(kubectl: Kubectl) -> dict[str, int]:
    """Return the ready replicas of each Deployment by its subset."""
    listed = kubectl.json("get", "deployments")["items"]
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
