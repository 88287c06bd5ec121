"""The objects of policies over HTTP: a reader of a policy sees the objects that he may list, and no other name."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, RBAC, binding, grant, role, rule, user, wait_allowed
from tests.unit.web.test_delivery import served

from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES
from federation.apiserver.auth.identity import Attributes, User

PATH = "/federation/v1/policyobjects"
NEAR = f"{PATH}?kind=PropagationPolicy&namespace=default&name=divide"
WIDE = f"{PATH}?kind=ClusterPropagationPolicy&name=wide"
GROUP = "core.kubeadmiral.io"
KINDS = [{"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "v1", "kind": "ConfigMap"}]


async def _names(client: httpx.AsyncClient, url: str) -> tuple[list[str], list[str]]:
    """Return the names of the answer, and the resources that it hides."""
    answer = await client.get(url)
    assert answer.status_code == 200, answer.text
    body: Any = answer.json()
    return [f"{item['namespace']}/{item['name']}" for item in body["items"]], body["hiddenResources"]


async def _fill(world: World) -> None:
    """Create two policies, and objects in the namespaces `default` (of `divide`) and `other` (of `wide`)."""
    await world.create(NAMESPACES, {"metadata": {"name": "other"}})
    await world.create(PROPAGATION_POLICIES, a_policy({}, resourceSelectors=KINDS))
    wide = a_policy({}, name="wide", resourceSelectors=KINDS)
    wide = {**wide, "kind": "ClusterPropagationPolicy", "metadata": {"name": "wide"}}
    await world.create(CLUSTER_PROPAGATION_POLICIES, wide)
    for namespace in ("default", "other"):
        deployment = a_deployment("web")
        deployment["metadata"]["namespace"] = namespace
        await world.create(DEPLOYMENTS, deployment)
        for name in ("a", "b"):
            await world.create(CONFIGMAPS, {"metadata": {"name": name, "namespace": namespace}})
    await world.settle()


async def test_an_administrator_sees_all_objects_page_by_page(tmp_path: Path) -> None:
    async with a_world(members=("east",)) as world:
        await _fill(world)
        async with served(world, tmp_path) as (_, admin):
            assert await _names(admin, NEAR) == (["default/a", "default/b", "default/web"], [])
            assert await _names(admin, WIDE) == (["other/a", "other/b", "other/web"], [])
            assert await _names(admin, f"{WIDE}&objectNamespace=default") == ([], [])
            first = (await admin.get(f"{NEAR}&limit=2")).json()
            named = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "plural": "configmaps",
                "namespace": "default",
                "name": "a",
            }
            assert first["items"][0] == named
            rest = f"{NEAR}&limit=2&continue={first['metadata']['continue']}"
            assert await _names(admin, rest) == (["default/web"], [])
            assert (await admin.get(rest)).json()["metadata"] == {}
            assert await _names(admin, NEAR.replace("divide", "none")) == ([], [])


async def test_a_tenant_sees_only_what_he_may_list(tmp_path: Path) -> None:
    async with a_world(members=("east",)) as world:
        await _fill(world)
        async with served(world, tmp_path) as (parts, admin):
            policies = role("policies", rule("get", "clusterpropagationpolicies,propagationpolicies", group=GROUP))
            await admin.post(f"{RBAC}/clusterroles", json=policies)
            bound = binding("policies", "ClusterRole", "policies", user("bob"))
            await admin.post(f"{RBAC}/clusterrolebindings", json=bound)
            bob_user = User("bob", ("devs", "system:authenticated"))
            wide = Attributes("get", GROUP, "v1alpha1", "clusterpropagationpolicies", name="wide")
            await wait_allowed(parts, bob_user, wide)
            async with connect(parts.app, BOB) as bob:
                both = ["configmaps", "deployments.apps"]
                assert await _names(bob, NEAR) == ([], both)
                assert await _names(bob, WIDE) == ([], both)
                await grant(admin, rule("list", "configmaps"), to=user("bob"))
                listing = Attributes("list", "", "v1", "configmaps", namespace="default")
                await wait_allowed(parts, bob_user, listing)
                assert await _names(bob, NEAR) == (["default/a", "default/b"], ["deployments.apps"])
                # Rights in one namespace show nothing of another one.
                assert await _names(bob, WIDE) == ([], both)
                assert await _names(bob, f"{WIDE}&objectNamespace=other") == ([], both)
                assert await _names(bob, f"{WIDE}&objectNamespace=default") == ([], ["deployments.apps"])


async def test_the_permission_for_the_path_or_for_the_objects_is_not_enough(tmp_path: Path) -> None:
    async with a_world(members=("east",)) as world:
        await _fill(world)
        async with served(world, tmp_path) as (parts, admin):
            paths = {"verbs": ["get"], "nonResourceURLs": ["/federation/*"]}
            await admin.post(f"{RBAC}/clusterroles", json=role("paths", paths, rule("list,get", "configmaps")))
            await admin.post(f"{RBAC}/clusterrolebindings", json=binding("p", "ClusterRole", "paths", user("bob")))
            await wait_allowed(parts, User("bob"), Attributes("list", "", "v1", "configmaps"))
            async with connect(parts.app, BOB) as bob:
                for url in (NEAR, WIDE):
                    refused = await bob.get(url)
                    assert (refused.status_code, "propagationpolicies" in refused.json()["message"]) == (403, True)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("kind=Deployment&namespace=default&name=web", "kind:"),
        ("kind=PropagationPolicy&name=divide", "namespace:"),
        ("kind=ClusterPropagationPolicy&name=wide&namespace=default", "namespace:"),
        ("kind=PropagationPolicy&namespace=default", "name:"),
        ("kind=PropagationPolicy&namespace=default&name=divide&limit=501", "limit:"),
        ("kind=PropagationPolicy&namespace=default&name=divide&other=1", "other:"),
    ],
)
async def test_a_malformed_query_names_its_parameter(tmp_path: Path, query: str, field: str) -> None:
    async with a_world(members=()) as world, served(world, tmp_path) as (_, admin):
        answer = await admin.get(f"{PATH}?{query}")
        assert (answer.status_code, answer.json()["message"].startswith(field)) == (400, True), answer.text
