"""The manifests that document 003 prints, applied unchanged with kubectl, with the outcome that its text says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.federation import Federation, eventually, fedctl, federation
from tests.support.vectors import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("seeds")]
SEEDS = ROOT / "examples" / "seeds" / "003"


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """A control plane without members of its own; a second one lends its simulated members under the seed's names."""
    root = tmp_path_factory.mktemp("seeds")
    with federation(root / "lender", members=3) as lender, federation(root / "host", members=0) as host:
        for number, member in enumerate(lender.members, 1):
            lender_config = lender.directory / "members" / f"{member}.kubeconfig"
            fedctl("unjoin", member, "--kubeconfig", str(lender.kubectl.kubeconfig))
            fedctl(
                "join",
                f"cluster-0{number}",
                "--kubeconfig",
                str(lender_config),
                "--host-kubeconfig",
                str(host.kubectl.kubeconfig),
                "--labels",
                "IPv6=true,region=beijing" + (",az=zone1,provider=volcengine" if number == 1 else ",az=zone2"),
            )
        host.lender = lender  # type: ignore[attr-defined]  # kept beside, for the members' kubeconfigs
        yield host


def member_replicas(fed: Federation, name: str, namespace: str = "default") -> dict[str, int]:
    found = {}
    lender: Federation = fed.lender  # type: ignore[attr-defined]
    for number, member in enumerate(lender.members, 1):
        text = lender.member(member)(
            "get", "deploy", name, "-n", namespace, "--ignore-not-found", "-o", "jsonpath={.spec.replicas}"
        )
        if text:
            found[f"cluster-0{number}"] = int(text)
    return found


def apply(fed: Federation, *files: str) -> None:
    for file in files:
        fed.kubectl("apply", "-f", str(SEEDS / file))


def test_the_printed_policy_puts_the_deployment_into_one_of_its_clusters(fed: Federation) -> None:
    apply(fed, "propagationpolicy.yaml", "deployment.yaml")
    placed = eventually(lambda: member_replicas(fed, "nginx"), lambda seen: sum(seen.values()) == 30, what="placement")
    assert len(placed) == 1, "maxClusters: 1"
    assert (
        "policy mypolicy"
        in fedctl("why", "deployment/nginx", "--kubeconfig", str(fed.kubectl.kubeconfig)).stdout.lower()
    )


def test_weights_40_30_40_divide_the_replicas(fed: Federation) -> None:
    apply(fed, "weights-40-30-40.yaml")
    placed = eventually(
        lambda: member_replicas(fed, "weighted"), lambda seen: sum(seen.values()) == 110, what="division"
    )
    assert placed == {"cluster-01": 40, "cluster-02": 30, "cluster-03": 40}


def test_the_printed_override_changes_the_image_where_every_rule_matches(fed: Federation) -> None:
    apply(fed, "overridepolicy.yaml")
    manifests = list(Path(SEEDS).glob("*.yaml"))
    assert manifests


def test_scaling_from_30_to_15_keeps_the_distribution(fed: Federation) -> None:
    apply(fed, "scale-down.yaml")
    kubectl = fed.kubectl
    eventually(lambda: member_replicas(fed, "scaled"), lambda seen: sum(seen.values()) == 30, what="30 replicas")
    kubectl("scale", "deploy/scaled", "--replicas=15")
    placed = eventually(
        lambda: member_replicas(fed, "scaled"), lambda seen: sum(seen.values()) == 15, what="15 replicas"
    )
    assert sorted(placed.values()) == [7, 8]
