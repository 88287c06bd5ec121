"""The manifests of document 003, applied unchanged with kubectl, with the outcome that the document describes.

Two federations, because the document's two policies name different clusters: the PropagationPolicy is for `Cluster-01` …
`Cluster-03`, the OverridePolicy for `member1` and `member2`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.support.federation import Federation, Kubectl, eventually, fedctl, free_clusters, start_serve
from tests.support.vectors import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow("three federations"), pytest.mark.xdist_group("seeds")]
SEEDS = ROOT / "examples" / "seeds" / "003"
Provide: TypeAlias = Callable[[Path, int], AbstractContextManager[list[Path]]]
"""Runs clusters during a block and yields their kubeconfigs."""
Serve: TypeAlias = Callable[[Path], AbstractContextManager[Federation]]
"""Runs a host during a block, with its state in the folder."""


@dataclass(frozen=True)
class Federated:
    """A host, and its members by the names that they joined with."""

    host: Kubectl
    members: Mapping[str, Kubectl]

    def apply(self, *files: str) -> None:
        for file in files:
            self.host("apply", "-f", str(SEEDS / file))

    def in_members(self, deployment: str, namespace: str = "default") -> dict[str, dict[str, Any]]:
        """Return the Deployment as the members have it, by member; members without it are left out."""
        found = {name: kubectl.api(namespace).find("deployments", deployment) for name, kubectl in self.members.items()}
        return {name: obj for name, obj in found.items() if obj is not None}

    def replicas(self, deployment: str) -> dict[str, int]:
        return {name: obj["spec"]["replicas"] for name, obj in self.in_members(deployment).items()}

    def images(self, deployment: str, namespace: str = "default") -> dict[str, str]:
        """Return the image of the Deployment's container, by member."""
        found = self.in_members(deployment, namespace).items()
        return {name: obj["spec"]["template"]["spec"]["containers"][0]["image"] for name, obj in found}

    def why(self, deployment: str) -> str:
        return fedctl("why", f"deployment/{deployment}", "--kubeconfig", str(self.host.kubeconfig)).stdout


@pytest.fixture(scope="module")
def provide() -> Provide:
    """Simulated clusters."""
    return free_clusters


@pytest.fixture(scope="module")
def serve() -> Serve:
    """The embedded host."""
    return _embedded


@pytest.fixture(scope="module")
def serve_alone(serve: Serve) -> Serve:
    """A host that no other test uses."""
    return serve


def _embedded(directory: Path) -> AbstractContextManager[Federation]:
    return closing(start_serve(directory))


@contextmanager
def joined(root: Path, provide: Provide, clusters: Sequence[tuple[str, str, str]], serve: Serve) -> Iterator[Federated]:
    """Run a federation with a cluster per (name, labels, taints)."""
    with provide(root / "clusters", len(clusters)) as free, serve(root / "host") as host:
        for (name, labels, taints), kubeconfig in zip(clusters, free, strict=True):
            fedctl(
                *("join", name, "--kubeconfig", str(kubeconfig), "--labels", labels, "--taints", taints),
                KUBECONFIG=str(host.kubectl.kubeconfig),
            )
        members = {name: Kubectl(kubeconfig) for (name, _, _), kubeconfig in zip(clusters, free, strict=True)}
        yield Federated(host.kubectl, members)


IN_BEIJING = "IPv6=true,region=beijing"


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, provide: Provide, serve: Serve) -> Iterator[Federated]:
    """Three clusters that satisfy all of the printed PropagationPolicy, and one that it does not name."""
    clusters = [f"cluster-0{number}" for number in (1, 2, 3, 4)]
    root = tmp_path_factory.mktemp("seeds")
    with joined(root, provide, [(name, IN_BEIJING, "") for name in clusters], serve) as running:
        yield running


def test_the_printed_policy_places_the_deployment_in_one_of_its_clusters(fed: Federated) -> None:
    fed.apply("propagationpolicy.yaml", "deployment.yaml")
    placed = eventually(lambda: fed.replicas("nginx"), lambda seen: sum(seen.values()) == 30, what="placement")
    assert len(placed) == 1, "maxClusters: 1"
    output = fed.why("nginx")
    assert "policy    PropagationPolicy default/mypolicy" in output
    assert why_of(output, "cluster-04").startswith("rejected by PlacementFilter")


def test_weights_40_30_40_divide_the_replicas(fed: Federated) -> None:
    fed.apply("weights-40-30-40.yaml")
    placed = eventually(lambda: fed.replicas("weighted"), lambda seen: sum(seen.values()) == 110, what="division")
    assert placed == {"cluster-01": 40, "cluster-02": 30, "cluster-03": 40}
    output = fed.why("weighted")
    assert "cluster-01 40" in output


def test_scaling_from_30_to_15_turns_15_15_0_into_8_7_0(fed: Federated) -> None:
    fed.apply("scale-down.yaml")
    before = {"cluster-01": 15, "cluster-02": 15}
    eventually(lambda: fed.replicas("scaled"), lambda seen: seen == before, what="15, 15")
    fed.apply("scale-down-third-cluster.yaml")
    fed.host("scale", "deploy/scaled", "--replicas=15")
    placed = eventually(lambda: fed.replicas("scaled"), lambda seen: sum(seen.values()) == 15, what="15 replicas")
    assert placed == {"cluster-01": 8, "cluster-02": 7}
    fed.host("rollout", "status", "deploy/scaled", "--timeout=90s")
    assert fed.replicas("scaled") == placed, "and it stays there"


def why_of(output: str, cluster: str) -> str:
    """Return the WHY column of one cluster's row."""
    row = next(line for line in output.splitlines() if line.startswith(cluster))
    return row.split(maxsplit=4)[4]


def test_every_selector_of_the_printed_policy_excludes_a_cluster(
    tmp_path: Path, provide: Provide, serve_alone: Serve
) -> None:
    """The comment on the printed policy says: several ways to choose clusters, the result is their intersection."""
    clusters = [
        ("cluster-01", "IPv6=true,region=shanghai", ""),
        ("cluster-02", "region=beijing", ""),
        ("cluster-03", IN_BEIJING, "key1=value1:NoSchedule"),
        ("cluster-04", IN_BEIJING, ""),
    ]
    with joined(tmp_path, provide, clusters, serve_alone) as fed:
        fed.apply("propagationpolicy.yaml", "deployment.yaml")
        placed = eventually(lambda: fed.replicas("nginx"), lambda seen: sum(seen.values()) == 30, what="placement")
        assert placed == {"cluster-03": 30}
        output = fed.why("nginx")
        assert why_of(output, "cluster-01").startswith("rejected by ClusterAffinity")
        assert why_of(output, "cluster-02").startswith("rejected by ClusterAffinity")
        assert why_of(output, "cluster-04").startswith("rejected by PlacementFilter")


def test_the_printed_override_changes_the_image_in_the_intersection_only(
    tmp_path: Path, provide: Provide, serve_alone: Serve
) -> None:
    matching = "region=beijing,az=zone1,provider=volcengine"
    clusters = [
        ("member1", matching, ""),
        ("member2", "region=beijing,az=zone2,provider=volcengine", ""),  # named, but its zone does not match
        ("member3", matching, ""),  # matches every selector, but is not named
    ]
    with joined(tmp_path, provide, clusters, serve_alone) as fed:
        fed.apply("overridden.yaml")
        waiting = eventually(
            lambda: fed.host.api().list("federatedobjects")["items"],
            lambda items: any(
                c["type"] == "OverridesApplied" and c["status"] == "False"
                for item in items
                for c in (item.get("status") or {}).get("conditions", ())
            ),
            what="a condition that names the missing policy",
        )
        assert fed.replicas("overridden") == {}, "it waits for the policy that its label names"
        assert "example" in str(waiting)
        fed.apply("overridepolicy.yaml")
        images = eventually(lambda: fed.images("overridden"), lambda seen: len(seen) == 3, what="images")
        assert images == {"member1": "nginx:test", "member2": "nginx:1.25", "member3": "nginx:1.25"}
        fed.host("label", "fcluster", "member2", "az=zone1", "--overwrite")
        wanted = {"member1": "nginx:test", "member2": "nginx:test", "member3": "nginx:1.25"}
        eventually(lambda: fed.images("overridden"), lambda seen: seen == wanted, what="the relabelled one")
