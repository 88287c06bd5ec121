"""The delivery of objects over HTTP: from a running federation, for users who may read the object."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from tests.support.apiserver import Parts, build
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, RBAC, binding, role, rule, user, wait_allowed
from tests.unit.controllers.hosting import SHIPPED

from federation.api import names
from federation.api.federatedtype import from_config
from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, SECRETS
from federation.apiserver.auth.bootstrappolicy import ensure_default_rbac
from federation.apiserver.auth.identity import Attributes, User
from federation.delivery.rules.decision import describe
from federation.features.catalogue import decision_chain, feature_views
from federation.hosting.roles import HOST_RBAC
from federation.plans.planner import Planners
from federation.scheduling.framework.registry import load_plugins
from federation.web.clusterheadroom import HeadroomView
from federation.web.delivery import DeliveryView, images_of
from federation.web.history import HistoryView
from federation.web.objectlist import ObjectListView
from federation.web.plans import PlanView
from federation.web.policyobjects import PolicyView

URL = "/federation/v1/delivery?group=apps&kind=Deployment&namespace=default&name=web"


@asynccontextmanager
async def served(world: World, directory: Path) -> AsyncIterator[tuple[Parts, httpx.AsyncClient]]:
    """Serve the world's host, with the views of its control plane."""
    plane = world.plane
    view = DeliveryView(
        plane.objects, plane.informers, plane.members, plane.member_records, plane.tolerated, plane.preview
    )
    policies = PolicyView(plane.objects, plane.policy_usage)
    listed = ObjectListView(plane.objects, plane.informers, view)
    planners = Planners(load_plugins(), decision_chain(), None, world.clock)
    parts = build(
        directory,
        world.store,
        registry=world.registry,
        view=view,
        policies=policies,
        views=[*feature_views(plane.host), PlanView(world.user, planners), HistoryView(plane.metrics.history)],
        listed=listed,
        headroom=HeadroomView(plane.objects, plane.informers),
        journal=world.journal,
    )
    await ensure_default_rbac(parts.registry, HOST_RBAC)
    authorizing = asyncio.create_task(parts.authorizer.run())
    await parts.authorizer.wait_synced()
    try:
        async with connect(parts.app) as admin:
            yield parts, admin
    finally:
        authorizing.cancel()
        await asyncio.gather(authorizing, return_exceptions=True)


async def test_the_answer_has_every_cluster_and_the_reason_of_the_failing_one(tmp_path: Path) -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "west": 1}))
        await world.create(OVERRIDE_POLICIES, an_override("west", "/spec/nothing/here", 1))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        async with served(world, tmp_path) as (_, admin):
            answer = (await admin.get(URL)).json()
            rows = {row["cluster"]: row for row in answer["clusters"]}
            assert rows["east"] == {
                "cluster": "east",
                "placed": True,
                "wanted": 2,
                "applied": "yes",
                "ready": 2,
                "status": "OK",
                "message": "",
                "rollout": {"wanted": 2, "updated": 2, "ready": 2, "available": 2, "problem": ""},
                "images": ["nginx:1.27"],
            }
            assert answer["budget"] == {"replicas": 3, "maxSurge": 1, "maxUnavailable": 0}
            assert (rows["west"]["applied"], rows["west"]["status"]) == ("no", "ApplyOverridesFailed")
            assert "nothing" in rows["west"]["message"]
            nobody = (await admin.get(URL.replace("name=web", "name=other"))).json()
            assert nobody == {"kind": "Delivery", "conditions": [], "clusters": []}
            assert (await admin.get(f"{URL}&cluster=a")).status_code == 400
            assert (await admin.get("/federation/v1/delivery?kind=Deployment")).status_code == 400
        await world.user.delete(OVERRIDE_POLICIES, "special", "default")


def test_images_are_those_of_all_containers_and_nonsense_of_a_member_is_none() -> None:
    type_ = from_config(SHIPPED["Deployment"])

    def images(spec: object) -> list[str]:
        return images_of({"spec": {"template": {"spec": spec}}}, type_)

    spec = {"initContainers": [{"image": "init"}], "containers": [{"image": "web"}, {"image": "web"}, {"name": "x"}]}
    assert images(spec) == ["web", "init"]
    for nonsense in (None, [], "x", {"containers": "x"}, {"containers": {"image": "x"}}, {"containers": ["x", None]}):
        assert images(nonsense) == []
    assert images({"containers": [{"image": "x" * 501}]}) == []
    assert images_of(None, type_) == []


async def test_an_object_without_policy_is_not_propagated(tmp_path: Path) -> None:
    async with a_world() as world:
        await world.create(DEPLOYMENTS, a_deployment("web"))
        await world.settle()
        async with served(world, tmp_path) as (_, admin):
            answer = (await admin.get(URL)).json()
            (propagated,) = [each for each in answer["conditions"] if each["type"] == "Propagated"]
            assert (propagated["status"], propagated["reason"], answer["clusters"]) == ("False", "NoPolicy", [])


async def test_only_users_who_may_read_the_object_see_its_delivery(tmp_path: Path) -> None:
    async with a_world() as world:
        await world.create(DEPLOYMENTS, a_deployment("web"))
        await world.settle()
        async with served(world, tmp_path) as (parts, admin):
            web = role("web", rule("get", "deployments", group="apps", resourceNames=["web"]))
            await admin.post(f"{RBAC}/namespaces/default/roles", json=web)
            bound = binding("web", "Role", "web", user("bob"))
            await admin.post(f"{RBAC}/namespaces/default/rolebindings", json=bound)
            await wait_allowed(parts, User("bob"), Attributes("get", "apps", "v1", "deployments", "", "default", "web"))
            async with connect(parts.app, BOB) as bob:
                assert (await bob.get(URL)).status_code == 200
                for other in ("name=other", "namespace=kube-system", "group=&", "kind=Secret", "kind=Nothing"):
                    key = other.partition("=")[0]
                    query = dict(part.split("=") for part in URL.partition("?")[2].split("&"))
                    query[key] = other.partition("=")[2].rstrip("&")
                    refused = await bob.get("/federation/v1/delivery", params=query)
                    assert refused.status_code == 403, other


async def test_an_object_that_was_written_by_hand_needs_permission_to_read_federated_objects(tmp_path: Path) -> None:
    async with a_world() as world, served(world, tmp_path) as (parts, admin):
        template = {**a_deployment("web"), "metadata": {"name": "web", "namespace": "default"}}
        body = {"metadata": {"name": "web-deployments.apps"}, "spec": {"template": template}}
        url = "/apis/core.kubeadmiral.io/v1alpha1/namespaces/default/federatedobjects"
        assert (await admin.post(url, json=body)).status_code == 201
        await admin.post(f"{RBAC}/namespaces/default/roles", json=role("web", rule("get", "deployments", group="apps")))
        await admin.post(f"{RBAC}/namespaces/default/rolebindings", json=binding("web", "Role", "web", user("bob")))
        await wait_allowed(parts, User("bob"), Attributes("get", "apps", "v1", "deployments", "", "default", "web"))
        await world.settle()
        async with connect(parts.app, BOB) as bob:
            refused = await bob.get(URL)
            assert (refused.status_code, "federatedobjects" in refused.json()["message"]) == (403, True)
        assert (await admin.get(URL)).json()["kind"] == "Delivery"


MANIFESTS = URL.replace("delivery", "manifests")


async def test_manifests_are_what_is_applied_and_what_the_member_has_of_it(tmp_path: Path) -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "west": 1}))
        await world.create(OVERRIDE_POLICIES, an_override("west", "/spec/template/spec/containers/0/image", "nginx:1"))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        async with served(world, tmp_path) as (_, admin):
            rows = {row["cluster"]: row for row in (await admin.get(MANIFESTS)).json()["items"]}
            for cluster, image in (("east", "nginx:1.27"), ("west", "nginx:1")):
                row, stored = rows[cluster], await world.members[cluster].admin.get(DEPLOYMENTS, "web", "default")
                assert row["wanted"]["spec"]["template"]["spec"]["containers"][0]["image"] == image
                assert row["wanted"] == row["live"], "only fields that the federation owns"
                annotations = stored["metadata"]["annotations"]
                assert row["wanted"]["metadata"]["annotations"][names.TEMPLATE_HASH] == annotations[names.TEMPLATE_HASH]
            (only,) = (await admin.get(f"{MANIFESTS}&cluster=west")).json()["items"]
            assert only == rows["west"]
            assert (await admin.get(f"{MANIFESTS}&cluster=north")).json()["items"] == []
            assert [row["cluster"] for row in (await admin.get(f"{MANIFESTS}&continue=east")).json()["items"]] == [
                "west"
            ]


async def test_manifests_of_secrets_hide_their_values(tmp_path: Path) -> None:
    async with a_world() as world:
        policy = a_policy({"east": 1})
        policy["spec"] |= {
            "schedulingMode": "Duplicate",
            "resourceSelectors": [{"apiVersion": "v1", "kind": "Secret"}],
        }
        await world.create(PROPAGATION_POLICIES, policy)
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "key", "namespace": "default"},
            "stringData": {"password": "correct horse"},
        }
        await world.create(SECRETS, secret)
        await world.settle()
        async with served(world, tmp_path) as (_, admin):
            answer = await admin.get("/federation/v1/manifests?kind=Secret&namespace=default&name=key")
            (row,) = answer.json()["items"]
            assert row["wanted"]["data"] == row["live"]["data"] == {"password": "***"}
            assert "Y29ycmVjdCBob3JzZQ" not in answer.text
            assert "correct horse" not in answer.text


async def test_permission_for_the_path_alone_shows_no_object(tmp_path: Path) -> None:
    async with a_world() as world, served(world, tmp_path) as (parts, admin):
        path = {"metadata": {"name": "paths"}, "rules": [{"verbs": ["get"], "nonResourceURLs": ["/federation/*"]}]}
        assert (await admin.post(f"{RBAC}/clusterroles", json=path)).status_code == 201
        bound = binding("paths", "ClusterRole", "paths", user("bob"))
        assert (await admin.post(f"{RBAC}/clusterrolebindings", json=bound)).status_code == 201
        await wait_allowed(parts, User("bob"), Attributes("get", path="/federation/v1/decisions"))
        async with connect(parts.app, BOB) as bob:
            assert (await bob.get("/federation/v1/decisions")).status_code == 200
            for url in (URL, MANIFESTS):
                assert (await bob.get(url)).status_code == 403


async def test_what_comes_next_is_the_decision_of_the_delivery(tmp_path: Path) -> None:
    """The same table decides what `fedctl why` shows and what happens."""
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        async with served(world, tmp_path) as (_, client):
            rows = (await client.get(URL)).json()["clusters"]
            assert [row.get("next") for row in rows] == [None, None], "nothing is to be done"
            world.members["east"].line.mode = "hang"
            world.members["west"].line.faults.begin(1.0, "5xx")
            await world.merge(DEPLOYMENTS, "web", {"spec": {"paused": True}})
            await world.pass_time(0.3)
            rows = (await client.get(URL)).json()["clusters"]
            federated = world.plane.objects.of_source("apps", "Deployment", "default", "web")
            assert federated is not None
            type_ = world.plane.objects.type_of(federated)
            assert type_ is not None
            decided = world.plane.preview(federated, type_)
            assert {row["cluster"]: row.get("next") for row in rows} == {
                name: describe(decision) for name, decision in decided.items()
            }
            world.members["east"].line.heal()
            world.members["west"].line.heal()
