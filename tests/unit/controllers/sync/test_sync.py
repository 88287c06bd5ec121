"""Sync on real registries: what reaches members, what stays, what is written back."""

from federation.api import names
from tests.support.member_world import member_world, placed


async def test_an_object_reaches_its_clusters_with_one_write_each_and_one_status() -> None:
    async with member_world(2) as world:
        await world.place(placement={"m1": 2, "m2": 1})
        await world.until_statuses({"m1": "OK", "m2": "OK"})
        for name, replicas in (("m1", 2), ("m2", 1)):
            deployment = await world.members[name].deployment()
            assert deployment is not None
            assert deployment["spec"]["replicas"] == replicas
            assert deployment["metadata"]["labels"][names.MANAGED_LABEL] == "true"
            assert deployment["metadata"]["annotations"][names.SOURCE_GENERATION] == "1"
        await world.pass_time(2)
        assert [c[0] for c in world.plane.client.writes("federatedobjects")] == ["patch"], "one status write"
        federated = await world.federated()
        assert federated["status"]["syncedGeneration"] == federated["metadata"]["generation"]
        assert federated["status"]["conditions"][0]["status"] == "True"
