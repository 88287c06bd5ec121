"""The UnitedDeployments of document 001 are accepted as they are written, and do what the document says."""

from collections import Counter
from typing import Any

import pytest
import yaml
from tests.support.simulatedmember import Member, a_member
from tests.support.vectors import ROOT

from federation.api import names
from federation.api.resources import KRUISE_GROUP
from federation.apimachinery.resources import PODS, Resource
from federation.simulator.options import NodeShape

V1ALPHA1 = Resource(KRUISE_GROUP, "v1alpha1", "UnitedDeployment", "uniteddeployments")
MANIFESTS: dict[str, dict[str, Any]] = {
    manifest["metadata"]["name"]: {**manifest, "metadata": {**manifest["metadata"], "namespace": "default"}}
    for path in sorted((ROOT / "examples" / "seeds" / "001").glob("*.yaml"))
    for manifest in yaml.load_all(path.read_text(), yaml.CSafeLoader)
    if manifest["kind"] == "UnitedDeployment"
}


async def _subsets(member: Member) -> Counter[str]:
    pods = [pod for pod in await member.all(PODS) if pod["spec"].get("nodeName")]
    return Counter(pod["metadata"]["labels"][names.SUBSET_NAME_LABEL] for pod in pods)


def _node(name: str, cpu: str = "64", **labels: str) -> NodeShape:
    return NodeShape(name, cpu=cpu, labels={key.replace("_", "-"): value for key, value in labels.items()})


@pytest.mark.parametrize(
    ("name", "nodes", "expected"),
    [
        (
            "sample-ud",
            [_node("a", node="ecs"), _node("b", node="acs-virtual-kubelet")],
            {"ecs": 2, "acs-serverless": 4},
        ),
        (
            "elastic-app",
            [_node("a", cpu="6", type="ecs"), _node("b", type="acs-virtual-kubelet")],
            {"ecs": 6, "acs-serverless": 4},
        ),
        (
            "my-app",
            [
                _node("a", cpu_platform="intel"),
                _node("b", cpu_platform="amd"),
                _node("c", cpu_platform="yitian-arm"),
            ],
            {"intel": 2, "amd64": 1, "yitian-arm": 1},
        ),
    ],
)
async def test_the_pods_run_where_the_document_says(
    name: str, nodes: list[NodeShape], expected: dict[str, int]
) -> None:
    async with a_member(nodes, united_deployments=True) as member:
        await member.create(V1ALPHA1, MANIFESTS[name])
        stored = await member.get(V1ALPHA1, name)
        assert stored["spec"] == MANIFESTS[name]["spec"]
        await member.until_equal(lambda: _subsets(member), Counter(expected))
