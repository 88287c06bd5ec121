"""The capacity of clusters over HTTP: free room, the effect of a loss, pages, and permissions."""

from pathlib import Path

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB
from tests.unit.web.test_delivery import served

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.web.clusterheadroom import PATH


async def test_the_loss_of_a_cluster_counts_replicas_without_room_and_those_that_may_not_leave(tmp_path: Path) -> None:
    async with a_world(members=("east", "west")) as world:
        both = a_policy({"east": 1, "west": 1}, name="both")
        only = a_policy({"east": 1}, name="only", placement=[{"cluster": "east"}])
        stays = a_policy({"east": 1}, name="stays", failover={"mode": "Never"})
        for policy in (both, only, stays):
            await world.create(PROPAGATION_POLICIES, policy)
        for name, replicas in (("both", 4), ("only", 2), ("stays", 3)):
            await world.create(
                DEPLOYMENTS, a_deployment(name, replicas=replicas, **{names.PROPAGATION_POLICY_LABEL: name})
            )
        await world.settle()
        async with served(world, tmp_path) as (parts, admin):
            found = (await admin.get(f"{PATH}?limit=1")).json()
            assert found["metadata"] == {"continue": "east"}
            assert found["count"] == 2
            (east,) = found["items"]
            assert east["waiting"] == 0
            assert east["loss"] == {"objects": 3, "replicas": 7, "homeless": 2, "staying": 3}
            assert 0 < east["available"]["cpu"] <= east["allocatable"]["cpu"]
            (west,) = (await admin.get(f"{PATH}?continue=east")).json()["items"]
            assert west["loss"] == {"objects": 1, "replicas": 2, "homeless": 0, "staying": 0}
            (without,) = (await admin.get(f"{PATH}?without=east")).json()["items"]
            rows = [
                (each["name"], each["replicas"], each["homeless"], each["staying"]) for each in without["workloads"]
            ]
            assert rows == [("only", 2, 2, 0), ("stays", 3, 0, 3), ("both", 2, 0, 0)]
            small, large = [
                (await admin.get(f"{PATH}?cpu={cpu}&name=east")).json()["items"][0]["fits"] for cpu in ("100m", "1")
            ]
            assert small > large
            for bad in ("cpu=x", "memory=-1", "without=north", "limit=0", "other=1"):
                assert (await admin.get(f"{PATH}?{bad}")).status_code == 400, bad
            async with connect(parts.app, BOB) as bob:
                assert (await bob.get(PATH)).status_code == 403
