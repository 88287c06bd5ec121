"""A twin of a fleet with real members places as that fleet does."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import RealFederation, apply, real_federation
from tests.support.federation import eventually
from tests.support.twins import arrivals, place, placed, policies

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.quantity import to_milli
from federation.client.http import HTTPClient
from federation.client.kubeconfig import load_kubeconfig
from federation.settings import Settings
from federation.twin.fleetcopy import Fleet, from_host
from federation.twin.twin import Twin, resources_of

COUNT = 20
EVERY_S = 6.0
MEMBERS = ("member-1", "member-2", "member-3")


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    with real_federation(tmp_path_factory.mktemp("twin"), dict(zip(MEMBERS, real, strict=True))) as running:
        apply(running.kubectl, *policies(MEMBERS))
        free(running)
        yield running


def free(fed: RealFederation) -> dict[str, int]:
    """Return the free cpu of each member in thousandths, once all have reported it."""

    def look() -> dict[str, int]:
        clusters = fed.kubectl.json("get", "federatedclusters")["items"]
        found = {each["metadata"]["name"]: (each.get("status") or {}).get("resources") or {} for each in clusters}
        return {name: to_milli(each["available"]["cpu"]) for name, each in found.items() if each.get("available")}

    return eventually(look, lambda seen: seen.keys() == set(MEMBERS), timeout_s=90, what="resources of all members")


async def copied(kubeconfig: Path) -> Fleet:
    host = HTTPClient(load_kubeconfig(kubeconfig, ""))
    try:
        return await from_host(host, SystemClock().now(), ())
    finally:
        await host.close()


@pytest.mark.slow("waits for reports of real members")
def test_arrivals_are_placed_as_in_the_fleet(fed: RealFederation) -> None:
    fleet = asyncio.run(copied(fed.kubectl.kubeconfig))
    arriving = arrivals(COUNT, 11, EVERY_S)
    expected: list[tuple[str, Any]] = []
    requested: dict[str, dict[str, int]] = {}
    before = free(fed)
    for arrival in arriving:
        manifest, name = arrival.manifest, arrival.manifest["metadata"]["name"]
        apply(fed.kubectl, manifest)
        clusters, replicas = eventually(partial(decided, fed, manifest), bool, what=f"a placement of {name}")
        wanted = manifest["spec"]["replicas"]
        cpu = to_milli(manifest["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        counts = _counts(clusters, replicas, wanted)
        requested[name] = {cluster: count * cpu for cluster, count in counts.items()}
        expected.append((manifest["metadata"]["labels"]["strategy"], counts))
        used = {member: sum(each.get(member, 0) for each in requested.values()) for member in MEMBERS}
        left = {member: before[member] - used[member] for member in MEMBERS}
        eventually(partial(free, fed), left.__eq__, timeout_s=60, what="reports of the pods")
    assert asyncio.run(in_twin(fleet, arriving)) == expected


def decided(fed: RealFederation, manifest: Any) -> Any:
    """Return clusters and replicas of a Deployment that is scheduled as it is now, None before."""
    name = manifest["metadata"]["name"]
    federated = fed.kubectl.json(
        "get", "federatedobjects", "--field-selector", f"metadata.name={name}-deployments.apps"
    )
    for each in federated["items"]:
        is_done = each["metadata"]["annotations"].get("kubeadmiral.io/pending-controllers") == "[]"
        if is_done and each["spec"]["template"]["spec"]["replicas"] == manifest["spec"]["replicas"]:
            return placed(each)
    return None


async def in_twin(fleet: Fleet, arriving: Any) -> list[tuple[str, Any]]:
    """Return the strategies and placements of the arrivals in a twin of the fleet as it was before."""
    twin = Twin(fleet, Settings(Path("unused")))
    try:
        await twin.begin()
        for name, reported in resources_of(fleet).items():
            assert (await twin.members[name].resources())["available"] == reported["available"]
        found = await place(twin.user, twin.pass_time, arriving, EVERY_S)
    finally:
        await twin.end()
    return [
        (strategy, _counts(clusters, replicas, arrival.manifest["spec"]["replicas"]))
        for arrival, (strategy, (clusters, replicas)) in zip(arriving, found, strict=True)
    ]


def _counts(clusters: list[str], replicas: dict[str, list[Any]], wanted: int) -> dict[str, int]:
    return {name: int(replicas[name][0]) if replicas.get(name) else wanted for name in clusters}
