"""Objects of members over HTTP: only for users with permission for the cluster, and for the kind on the host."""

from pathlib import Path

from tests.support.manifests import a_deployment
from tests.support.world import a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, RBAC, binding, role, rule, user, wait_allowed
from tests.unit.web.test_delivery import served

from federation.apimachinery.resources import DEPLOYMENTS
from federation.apiserver.auth.identity import Attributes, User

URL = "/federation/v1/memberobjects?cluster=east&group=apps&kind=Deployment&namespace=default"


async def test_an_unmanaged_object_is_read_by_name_or_label(tmp_path: Path) -> None:
    async with a_world() as world:
        for name in ("web", "api"):
            await world.members["east"].admin.create(DEPLOYMENTS, a_deployment(name, tier=name))
        async with served(world, tmp_path) as (_, admin):
            (web,) = (await admin.get(f"{URL}&name=web")).json()["items"]
            assert (web["apiVersion"], web["kind"], web["metadata"]["name"]) == ("apps/v1", "Deployment", "web")
            (api,) = (await admin.get(f"{URL}&labelSelector=tier%3Dapi")).json()["items"]
            assert api["metadata"]["name"] == "api"
            for query, code, words in (
                (f"{URL}&name=none", 404, "cluster east has no Deployment none"),
                (URL.replace("east", "nowhere") + "&name=web", 404, "nowhere"),
                (URL.replace("kind=Deployment", "kind=Event").replace("group=apps", "group="), 400, "not federated"),
                (f"{URL}&name=..%2F..%2Fsecrets", 400, "name:"),
                (URL.replace("&namespace=default", ""), 400, "namespace:"),
            ):
                answer = await admin.get(query)
                assert (answer.status_code, words in answer.json()["message"]) == (code, True), answer.text
            world.members["east"].line.mode = "down"
            assert (await admin.get(f"{URL}&name=web")).status_code == 503
            world.members["east"].line.mode = "up"
        for name in ("web", "api"):
            await world.members["east"].admin.delete(DEPLOYMENTS, name, "default")


async def test_both_permissions_are_needed_and_the_path_alone_is_not_enough(tmp_path: Path) -> None:
    async with a_world() as world, served(world, tmp_path) as (parts, admin):
        await world.members["east"].admin.create(DEPLOYMENTS, a_deployment("web"))
        proxy = rule("get", "federatedclusters/proxy", group="core.kubeadmiral.io", resourceNames=["east"])
        paths = {"verbs": ["get"], "nonResourceURLs": ["/federation/*"]}
        await admin.post(f"{RBAC}/clusterroles", json=role("east", proxy, paths))
        await admin.post(f"{RBAC}/clusterrolebindings", json=binding("east", "ClusterRole", "east", user("bob")))
        allowed = Attributes("get", "core.kubeadmiral.io", "v1alpha1", "federatedclusters", "proxy", name="east")
        await wait_allowed(parts, User("bob"), allowed)
        async with connect(parts.app, BOB) as bob:
            refused = await bob.get(f"{URL}&name=web")
            assert (refused.status_code, "deployments" in refused.json()["message"]) == (403, True)
            await admin.post(
                f"{RBAC}/namespaces/default/roles", json=role("read", rule("get", "deployments", group="apps"))
            )
            bound = binding("read", "Role", "read", user("bob"))
            await admin.post(f"{RBAC}/namespaces/default/rolebindings", json=bound)
            await wait_allowed(parts, User("bob"), Attributes("get", "apps", "v1", "deployments", "", "default", "web"))
            assert (await bob.get(f"{URL}&name=web")).status_code == 200
            for other in (
                URL,
                f"{URL}&name=web".replace("east", "west"),
                f"{URL}&name=web".replace("default", "kube-system"),
            ):
                assert (await bob.get(other)).status_code == 403, other
        await world.members["east"].admin.delete(DEPLOYMENTS, "web", "default")
