"""The differences of an object in a member, over HTTP."""

from pathlib import Path

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB
from tests.unit.web.test_delivery import served

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS

URL = "/federation/v1/differences?group=apps&kind=Deployment&namespace=default&name=web&cluster="


async def test_an_object_is_compared_with_what_the_member_has_now(tmp_path: Path) -> None:
    async with a_world(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        async with served(world, tmp_path) as (parts, admin):
            same = (await admin.get(f"{URL}west")).json()
            assert (same["state"], same["different"], same["kept"]) == ("same", [], [])
            await world.members["east"].admin.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, namespace="default")
            found = (await admin.get(f"{URL}east")).json()
            assert found["state"] == "different"
            (difference,) = found["different"]
            assert (difference["field"], difference["wanted"], difference["live"]) == ("spec.replicas", "2", "5")
            await world.members["east"].admin.delete(DEPLOYMENTS, "web", "default")
            assert (await admin.get(f"{URL}east")).json()["state"] == "missing"
            assert (await admin.get(f"{URL}nowhere")).status_code == 404
            assert (await admin.get(f"{URL}east&manager=a")).status_code == 400
            async with connect(parts.app, BOB) as bob:
                assert (await bob.get(f"{URL}east")).status_code == 403


async def test_an_object_that_is_not_managed_is_not_shown(tmp_path: Path) -> None:
    async with a_world(members=("east",)) as world:
        own = a_deployment("web", replicas=1)
        own["metadata"]["annotations"] = {"example.com/private": "hidden"}
        await world.members["east"].admin.create(DEPLOYMENTS, own)
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        async with served(world, tmp_path) as (_, admin):
            answer = await admin.get(f"{URL}east")
            assert (answer.json()["state"], answer.json()["different"]) == ("foreign", [])
            assert "hidden" not in answer.text
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.members["east"].admin.delete(DEPLOYMENTS, "web", "default")
