"""The history of the fleet over HTTP: what is recorded of clusters and objects, and who may read which part."""

from pathlib import Path
from typing import Any

import httpx
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, RBAC, binding, role, rule, user, wait_allowed
from tests.unit.web.test_delivery import served

from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.apiserver.auth.identity import Attributes, User
from federation.web.history import PATH


async def last(admin: httpx.AsyncClient) -> dict[str, Any]:
    """Return the newest values."""
    found = (await admin.get(f"{PATH}?hours=0.25&points=1440")).json()
    return {name: values[-1] for name, values in found["series"].items()}


async def total(admin: httpx.AsyncClient, name: str) -> float:
    found = (await admin.get(f"{PATH}?points=1")).json()
    return float(found["series"][name][0])


async def drain(world: World, name: str) -> None:
    taint = {"key": "a", "effect": "NoExecute"}
    await world.user.patch(FEDERATED_CLUSTERS, name, {"spec": {"taints": [taint]}})
    await world.settle()


async def test_clusters_objects_moves_and_a_lost_cluster_are_recorded(tmp_path: Path) -> None:
    async with a_world(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.settle()
        async with served(world, tmp_path) as (_, admin):
            now = await last(admin)
            assert (now["clusters"], now["clustersReady"], now["objectsFailing"]) == (2, 2, 0)
            assert now["objectsDelivered"] >= 1
            assert 0 == now["cpuRequested"] < now["cpu"], "its pods request nothing"
            assert await total(admin, "moves") == 0, "the first placement is no move"
            await drain(world, "east")
            assert await total(admin, "moves") == 1
            await world.lose("east")
            incident = (await admin.get(PATH)).json()["incidents"][0]
            assert (incident["cluster"], incident["what"]) == ("east", "lost")
            assert incident["text"]
            assert (await last(admin))["clustersReady"] == 1


async def test_who_may_list_clusters_only_sees_no_numbers_of_objects(tmp_path: Path) -> None:
    async with a_world(members=("east",)) as world, served(world, tmp_path) as (parts, admin):
        for bad in ("hours=0", "hours=7", "hours=nan", "points=0", "points=1441", "other=1"):
            assert (await admin.get(f"{PATH}?{bad}")).status_code == 400, bad
        async with connect(parts.app, BOB) as bob:
            assert (await bob.get(PATH)).status_code == 403
            may = rule("list", "federatedclusters", group="core.kubeadmiral.io")
            assert (await admin.post(f"{RBAC}/clusterroles", json=role("fleet", may))).status_code == 201
            bound = binding("fleet", "ClusterRole", "fleet", user("bob"))
            assert (await admin.post(f"{RBAC}/clusterrolebindings", json=bound)).status_code == 201
            asked = Attributes("list", "core.kubeadmiral.io", "v1alpha1", "federatedclusters")
            await wait_allowed(parts, User("bob", ()), asked)
            found = (await bob.get(PATH)).json()
            assert found["hiddenResources"] == ["federatedobjects.core.kubeadmiral.io"]
            assert "clusters" in found["series"]
            assert not {name for name in found["series"] if name.startswith(("objects", "replicas", "moves"))}
