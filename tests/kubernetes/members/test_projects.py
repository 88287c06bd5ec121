"""A project with three real members: its namespace is in its clusters only, and a cluster that it loses is left."""

from collections.abc import Iterator

import pytest
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import REGIONS, RealFederation, real_federation
from tests.support.federation import eventually
from tests.support.sources import ROOT


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    members = dict(zip(REGIONS, real, strict=True))
    with real_federation(tmp_path_factory.mktemp("projects"), members) as running:
        yield running


def ready(fed: RealFederation) -> dict[str, str]:
    """Return the ready replicas of the Deployment by member that has it."""
    output = ("--ignore-not-found", "-o", "jsonpath={.status.readyReplicas}")
    found = {name: fed.member(name)("get", "deployment", "web", "-n", "shop", *output) for name in fed.members}
    return {name: count for name, count in found.items() if count}


def test_a_team_uses_the_clusters_of_its_project_and_no_other(fed: RealFederation) -> None:
    for name in ("alice", "shop"):
        fed.kubectl("apply", "-f", str(ROOT / "examples" / "projects" / f"{name}.yaml"))
    fed.kubectl("wait", "project/shop", "--for=condition=Ready", "--timeout=60s")
    alice = "--as=system:serviceaccount:accounts:alice"
    fed.kubectl("apply", alice, "-f", str(ROOT / "examples" / "projects" / "web.yaml"))
    eventually(lambda: ready(fed), {"member-1": "2", "member-2": "2"}.__eq__, timeout_s=90, what="two clusters")
    shown = fed.kubectl("get", alice, "federatedclusters", "-o", "name").split()
    assert shown == [f"federatedcluster.core.kubeadmiral.io/member-{number}" for number in (1, 2)]
    assert fed.member("member-3")("get", "namespace", "shop", "--ignore-not-found") == ""

    moved = '{"spec":{"clusters":{"names":["member-1","member-3"]}}}'
    fed.kubectl("patch", "project", "shop", "--type", "merge", "-p", moved)
    eventually(lambda: ready(fed), {"member-1": "2", "member-3": "2"}.__eq__, timeout_s=90, what="the third cluster")
    eventually(
        lambda: fed.kubectl("get", "project", "shop", "-o", "jsonpath={.status.leaving}"),
        lambda leaving: not leaving,
        what="nothing is left in the second cluster",
    )

    fed.kubectl("delete", "project", "shop")
    eventually(lambda: fed.kubectl("get", "rolebindings", "-n", "shop", "-o", "name"), lambda names: not names)
    assert ready(fed) == {"member-1": "2", "member-3": "2"}
