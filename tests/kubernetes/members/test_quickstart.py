"""The quickstart of README.md with three real members, and the commands that it prints."""

import json
from collections.abc import Iterator

import pytest
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import REGIONS, RealFederation, real_federation
from tests.support.federation import eventually
from tests.support.vectors import ROOT

QUICKSTART = ROOT / "examples" / "quickstart"
IMAGE = "{.spec.template.spec.containers[0].image}"
MIRROR = "{.spec.template.spec.containers[0].env[0].value}"


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    members = dict(zip(REGIONS, real, strict=True))
    with real_federation(tmp_path_factory.mktemp("quickstart"), members) as running:
        running.kubectl("apply", "-f", str(QUICKSTART))
        running.kubectl("rollout", "status", "deploy/nginx", "--timeout=60s")
        yield running


def in_members(fed: RealFederation, target: str, path: str) -> list[str]:
    return [fed.member(name)("get", target, "--ignore-not-found", "-o", f"jsonpath={path}") for name in fed.members]


def test_replicas_are_divided_by_weight_and_every_pod_runs(fed: RealFederation) -> None:
    assert in_members(fed, "deploy/nginx", "{.spec.replicas}") == ["4", "2", "2"]
    assert in_members(fed, "deploy/nginx", "{.status.readyReplicas}") == ["4", "2", "2"]
    phases = in_members(fed, "pods", "{.items[*].status.phase}")
    assert [text.split() for text in phases] == [["Running"] * 4, ["Running"] * 2, ["Running"] * 2]
    status = fed.kubectl.json("get", "deploy", "nginx")["status"]
    assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (8, 8, 8)
    assert {c["type"]: c["status"] for c in status["conditions"]}["Available"] == "True"


def test_overrides_apply_by_region(fed: RealFederation) -> None:
    registry = "registry.beijing.example.com/nginx:1.27"
    assert in_members(fed, "deploy/nginx", IMAGE) == [registry, registry, "nginx:1.27"]
    assert in_members(fed, "deploy/nginx", MIRROR) == ["", "", "none"]


def test_each_member_gives_the_service_an_address_and_endpoints(fed: RealFederation) -> None:
    addresses = in_members(fed, "service/nginx", "{.spec.clusterIP}")
    assert all(address.startswith("10.0.") for address in addresses)
    endpoints = "{.items[*].endpoints[*].addresses[0]}"
    selector = ("get", "endpointslices", "-l", "kubernetes.io/service-name=nginx")
    for name, count in (("member-1", 4), ("member-2", 2), ("member-3", 2)):
        member = fed.member(name)
        eventually(
            lambda m=member: m(*selector, "-o", f"jsonpath={endpoints}").split(),  # type: ignore[misc]  # bound now
            lambda seen, n=count: len(seen) == n,  # type: ignore[misc]  # bound now
            what=f"endpoints in {name}",
        )


def test_the_clusters_and_the_decision_are_shown(fed: RealFederation) -> None:
    rows = {line.split()[0]: line.split() for line in fed.fedctl("clusters").splitlines()[1:]}
    assert {name: (row[1], row[3], row[-1]) for name, row in rows.items()} == {
        name: ("Ready", "2", f"region={region}") for name, region in REGIONS.items()
    }
    why = fed.fedctl("why", "deployment/nginx")
    assert "PropagationPolicy default/divide-nginx" in why
    record = json.loads(fed.fedctl("clusters", "-o", "json"))
    capacity = record[0]["status"]["resources"]["allocatable"]
    assert capacity["cpu"] == "128", "two nodes of 64 CPUs"


def test_scaling_follows_the_plan(fed: RealFederation) -> None:
    plan = fed.fedctl("plan", "--replicas", "deploy/nginx=12", check=False).split()
    at = plan.index("member-1")
    assert plan[at : at + 4] == ["member-1", "4", "6", "+2"]
    fed.kubectl("scale", "deploy/nginx", "--replicas=12")
    fed.kubectl("rollout", "status", "deploy/nginx", "--timeout=60s")
    assert in_members(fed, "deploy/nginx", "{.spec.replicas}") == ["6", "3", "3"]
    assert fed.kubectl("get", "deploy", "nginx", "--no-headers").split()[1] == "12/12"
