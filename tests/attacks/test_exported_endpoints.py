"""Attack: a member takes the requests of all clusters for a Service, or keeps endpoints of others from them."""

from dataclasses import replace
from typing import Any

import pytest
from tests.attacks.test_member_nonsense import lying
from tests.scenarios.test_multicluster_services import endpoints, export
from tests.support.world import World, a_world
from tests.support.worldmember import Member
from tests.unit.features.services.test_exports import an_export

from federation.api import names
from federation.api.resources import SERVICE_EXPORTS
from federation.apimachinery import conditions
from federation.apimachinery.resources import ENDPOINT_SLICES, SERVICES, Object
from federation.features.services.names import SOURCE_CLUSTER
from federation.features.services.rules.exports import Export, export_of, plan_copies


def a_slice(address: str, name: str = "evil") -> Object:
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    }


async def make_export(member: Member) -> None:
    """Let a member have what exports the Service; labels say that the federation delivered it."""
    metadata = {"name": "web", "namespace": "default", "labels": {names.MANAGED_LABEL: "true"}}
    await member.admin.create(SERVICE_EXPORTS, {"metadata": metadata})
    spec = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]}
    await member.admin.create(SERVICES, {"metadata": metadata, "spec": spec})
    await member.admin.create(ENDPOINT_SLICES, a_slice("10.66.6.6"))


async def valid_of(world: World) -> Any:
    exported = await world.user.get(SERVICE_EXPORTS, "web", "default")
    found = conditions.find((exported.get("status") or {}).get("conditions"), "Valid") or {}
    return found.get("reason"), found.get("message")


async def test_a_member_that_was_not_chosen_exports_nothing() -> None:
    async with a_world(members=("east", "north", "south", "west")) as world:
        await export(world)
        await world.until_equal(lambda: endpoints(world.members["north"]), {"east": 2, "west": 2})
        await make_export(world.members["south"])
        await world.scale("web", 3)
        await world.until_equal(lambda: endpoints(world.members["north"]), {"east": 3, "west": 3})
        await world.settle()
        assert await valid_of(world) == ("Exported", "exported by east, west")
        copies = (await world.user.list(ENDPOINT_SLICES, "default")).items
        assert {each["metadata"]["labels"][SOURCE_CLUSTER] for each in copies} == {"east", "west"}


@pytest.mark.parametrize(
    "odd",
    [
        {"endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]},
        {"endpoints": 5, "ports": 5},
        {"endpoints": [5], "ports": ["x"]},
        {"addressType": None},
    ],
    ids=["loopback", "numbers", "items", "type"],
)
async def test_endpoints_without_sense_do_not_hold_up_those_of_other_members(odd: dict[str, Any]) -> None:
    async with a_world() as world:
        await export(world)
        line = await lying(world, "east")
        line.about = (ENDPOINT_SLICES,)
        line.distort = lambda slice_: {**slice_, **odd}
        await world.scale("web", 3)

        async def of_west() -> int | None:
            return (await endpoints(world.members["north"])).get("west")

        await world.until_equal(of_west, 3)


@pytest.mark.parametrize("ports", [5, [5], [{}], [{"port": "x"}], [{"port": None}]])
def test_a_service_without_sense_is_no_export(ports: Any) -> None:
    meta: Object = {"metadata": {"name": "web"}}
    spec = {"selector": {"app": "web"}, "ports": ports}
    assert export_of("east", meta, {**meta, "spec": spec}, [a_slice("10.0.0.1")]) is None


def test_slices_of_a_member_are_limited() -> None:
    export = an_export("east")
    many = [a_slice("10.0.0.1", f"s{number:05}") for number in range(1_000)]
    meta: Object = {"metadata": {"name": "web", "creationTimestamp": export.created}}
    found = export_of("east", meta, {**meta, "spec": {"selector": {"app": "web"}}}, many)
    assert found is not None
    assert [each["metadata"]["name"] for each in found.slices] == [f"s{number:05}" for number in range(100)]


def of_cluster(cluster: str, slice_name: str, address: str) -> Export:
    return replace(an_export(cluster), slices=[a_slice(address, slice_name)])


@pytest.mark.parametrize("owner", [None, ("web", "a-b"), ("web", "a"), ("other", "a"), ("", "")])
def test_a_member_cannot_take_the_name_of_another_members_slice(owner: tuple[str, str] | None) -> None:
    exports = [of_cluster("a", "b-x", "10.0.0.1"), of_cluster("a-b", "x", "10.0.0.2")]
    copies = plan_copies(exports, {"imported-a-b-x": owner}.get)
    found = {copy["metadata"]["labels"][SOURCE_CLUSTER]: name for name, copy in copies.items()}
    assert found.keys() == {"a", "a-b"}
    assert all(copy["metadata"]["name"] == name for name, copy in copies.items())
    keeps = {None: "a", ("web", "a"): "a", ("web", "a-b"): "a-b"}.get(owner, "")
    assert {source for source, name in found.items() if name == "imported-a-b-x"} == ({keeps} if keeps else set())
