"""The clusters of a namespace: for who may list its pods, and for nobody else."""

from pathlib import Path

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, grant, rule, user, wait_allowed
from tests.unit.web.test_delivery import served

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.apiserver.auth.identity import Attributes, User

URL = "/federation/v1/clusters?namespace=default"


async def test_clusters_of_a_namespace_need_permission_to_list_its_pods(tmp_path: Path) -> None:
    async with a_world(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=1))
        await world.settle()
        async with served(world, tmp_path) as (parts, admin):
            answer = await admin.get(URL)
            assert answer.json()["items"] == [{"name": "east"}]
            assert (await admin.get(URL.replace("default", "other"))).json()["items"] == []
            assert (await admin.get(f"{URL}&name=east")).status_code == 400
            assert (await admin.get("/federation/v1/clusters")).status_code == 400
            async with connect(parts.app, BOB) as bob:
                assert (await bob.get(URL)).status_code == 403
                await grant(admin, rule("list", "pods"), to=user("bob"), name="pods")
                bob_user = User("bob", ("devs", "system:authenticated"))
                await wait_allowed(parts, bob_user, Attributes("list", "", "v1", "pods", namespace="default"))
                assert (await bob.get(URL)).status_code == 200
                assert (await bob.get(URL.replace("default", "other"))).status_code == 403
