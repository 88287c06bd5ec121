"""The list of objects over HTTP: filters, pages, and nothing that the user may not list."""

from pathlib import Path
from typing import Any, cast

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, grant, rule, user, wait_allowed
from tests.unit.web.test_delivery import served

from federation.api.resources import DELIVERY_SUSPENSIONS, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, Object
from federation.apiserver.auth.identity import Attributes, User
from federation.runtime.controller import Key
from federation.runtime.federatedobjects import FederatedObjects
from federation.web.delivery import DeliveryView
from federation.web.objectlist import ObjectListView
from federation.web.objectrows import Row

PATH = "/federation/v1/objects"
KINDS = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, {"apiVersion": "v1", "kind": "ConfigMap"}]


async def test_objects_are_filtered_counted_and_paged_for_users_who_may_list_them(tmp_path: Path) -> None:
    async with a_world(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, resourceSelectors=KINDS))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        for name in ("a", "b"):
            await world.create(CONFIGMAPS, {"metadata": {"name": name, "namespace": "default"}})
        await world.create(DEPLOYMENTS, a_deployment("lost"))
        await world.create(NAMESPACES, {"metadata": {"name": "other"}})
        await world.create(CONFIGMAPS, {"metadata": {"name": "c", "namespace": "other"}})
        await world.settle()
        async with served(world, tmp_path) as (parts, admin):

            async def found(query: str) -> list[str]:
                answer = await admin.get(f"{PATH}?{query}")
                assert answer.status_code == 200, answer.text
                return [f"{item['namespace']}/{item['name']}" for item in answer.json()["items"]]

            assert await found("kind=Deployment") == ["default/lost", "default/web"]
            assert await found("namespace=default&kind=ConfigMap&name=b") == ["default/b"]
            assert await found("kind=Deployment&cluster=east") == ["default/web"]
            assert await found("kind=Deployment&cluster=north") == []
            assert await found("kind=Deployment&state=attention") == ["default/lost"]
            assert await found("kind=Deployment&state=not-placed") == ["default/lost"]
            assert await found("kind=Deployment&state=unselected") == ["default/lost"]
            assert await found("hold=none") == []
            first = (await admin.get(f"{PATH}?kind=ConfigMap&namespace=default&limit=1&countBy=cluster")).json()
            assert first["items"][0]["name"] == "a"
            assert first["counts"]["all"] == 2
            assert first["countsByCluster"]["east"] == 2
            rest = f"kind=ConfigMap&namespace=default&limit=1&continue={first['metadata']['continue']}"
            assert await found(rest) == ["default/b"]
            web = (await admin.get(f"{PATH}?name=web")).json()["items"][0]
            assert (web["wanted"], web["ready"], web["clusters"], web["stage"]) == (2, 2, ["east"], "applied")
            for bad in ("state=lost", "limit=0", "limit=501", "countBy=kind", "other=1"):
                assert (await admin.get(f"{PATH}?{bad}")).status_code == 400, bad

            await grant(admin, rule("list", "configmaps"), to=user("bob"))
            listing = Attributes("list", "", "v1", "configmaps", namespace="default")
            await wait_allowed(parts, User("bob", ("devs", "system:authenticated")), listing)
            async with connect(parts.app, BOB) as bob:
                seen = (await bob.get(f"{PATH}?namespace=default")).json()
                assert [item["name"] for item in seen["items"]] == ["a", "b"]
                assert seen["kinds"] == ["ConfigMap"]
                assert "secrets" in seen["hiddenResources"]
                assert (await bob.get("/federation/v1/namespaces")).json()["items"] == [{"name": "default"}]
                own = (await bob.get(f"{PATH}?countBy=namespace")).json()
                assert [item["name"] for item in own["items"]] == ["a", "b"], "those of his namespaces"
                assert (own["counts"]["all"], own["countsByNamespace"].keys()) == (2, {"default"})
                assert (await bob.get(f"{PATH}?namespace=other")).json()["items"] == []


async def test_objects_that_wait_for_a_suspension_are_counted_for_those_who_may_list_them(tmp_path: Path) -> None:
    async with a_world(members=("east",)) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, resourceSelectors=KINDS))
        await world.create(CONFIGMAPS, {"metadata": {"name": "a", "namespace": "default"}})
        await world.settle()
        spec = {"owner": "ops", "reason": "a copy"}
        suspension = {"apiVersion": DELIVERY_SUSPENSIONS.api_version, "kind": DELIVERY_SUSPENSIONS.kind}
        await world.create(
            DELIVERY_SUSPENSIONS, {**suspension, "metadata": {"name": "disk", "namespace": "default"}, "spec": spec}
        )
        await world.settle()
        await world.user.patch(CONFIGMAPS, "a", {"data": {"new": "yes"}}, namespace="default")
        await world.settle()
        rule = "DeliverySuspension/default/disk"
        async with served(world, tmp_path) as (parts, admin):
            counted = (await admin.get(f"{PATH}?countBy=heldBy&limit=1")).json()
            assert counted["countsByHolding"] == {rule: 1}
            waiting = (await admin.get(f"{PATH}?heldBy={rule}")).json()
            assert [item["name"] for item in waiting["items"]] == ["a"]
            assert (await admin.get(f"{PATH}?heldBy=ChangeFreeze/disk")).json()["items"] == []
            async with connect(parts.app, BOB) as bob:
                for query in ("countBy=heldBy", f"heldBy={rule}"):
                    seen = (await bob.get(f"{PATH}?{query}&namespace=default")).json()
                    assert (seen["items"], seen["countsByHolding"]) == ([], {})
            await world.user.delete(DELIVERY_SUSPENSIONS, "disk", "default")
            await world.settle()
            assert (await admin.get(f"{PATH}?countBy=heldBy")).json()["countsByHolding"] == {}


async def test_lists_are_sorted_in_pages_with_causes_over_all_of_them(tmp_path: Path) -> None:
    async with a_world(members=("east", "west")) as world:
        selectors = [{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"in": "both"}}}]
        policy = a_policy({"east": 3, "west": 1}, resourceSelectors=selectors)
        await world.create(PROPAGATION_POLICIES, policy)
        for name in ("web-2", "web-10", "web-1"):
            deployment = a_deployment(name, replicas=4)
            deployment["metadata"]["labels"] = {"in": "both"}
            await world.create(DEPLOYMENTS, deployment)
        await world.create(DEPLOYMENTS, a_deployment("lost"))
        await world.settle()
        async with served(world, tmp_path) as (_, admin):

            async def pages(query: str) -> list[str]:
                found: list[str] = []
                after = ""
                while True:
                    answer = await admin.get(f"{PATH}?kind=Deployment&limit=2&{query}&continue={after}")
                    assert answer.status_code == 200, answer.text
                    found += [item["name"] for item in answer.json()["items"]]
                    after = answer.json()["metadata"].get("continue", "")
                    if not after:
                        return found

            assert await pages("sort=name") == ["lost", "web-1", "web-2", "web-10"]
            assert await pages("sort=-name") == ["web-10", "web-2", "web-1", "lost"]
            assert await pages("sort=state") == ["lost", "web-1", "web-2", "web-10"]
            assert await pages("sort=-clusters") == ["web-10", "web-2", "web-1", "lost"]
            listed = (await admin.get(f"{PATH}?kind=Deployment&limit=1")).json()
            (cause,) = listed["causes"]
            assert (cause["attention"], cause["count"]) == ("not-placed", 1)
            assert [sample["name"] for sample in cause["samples"]] == ["lost"]
            of_cause = (await admin.get(PATH, params={"cause": cause["key"]})).json()
            assert [item["name"] for item in of_cause["items"]] == ["lost"]
            here = (await admin.get(f"{PATH}?cluster=east&name=web-1&sort=name")).json()["items"][0]
            assert (here["wanted"], here["inCluster"]["wanted"], here["inCluster"]["ready"]) == (4, 3, 3)
            for bad in ("sort=size", "sort=--name", "continue=x", "continue=WzFd", "continue=" + "A" * 5000):
                assert (await admin.get(f"{PATH}?kind=Deployment&{bad}")).status_code == 400, bad


async def test_rows_follow_objects_their_sources_and_clusters_from_list_to_list(tmp_path: Path) -> None:
    """Rows are kept while nothing changes; here each change is one that a kept row would hide."""
    async with a_world(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.settle()
        async with served(world, tmp_path) as (_, admin):

            async def row() -> tuple[int, int, list[str]]:
                (item,) = (await admin.get(f"{PATH}?kind=Deployment")).json()["items"]
                return item["wanted"], item["ready"], [problem["attention"] for problem in item["problems"]]

            assert await row() == await row() == (2, 2, [])
            await world.scale("web", 3)
            await world.settle()
            assert await row() == (3, 3, [])
            await world.lose("east")
            assert "stale" in (await row())[2]
            await world.bring_back("east")
            await world.settle()
            assert await row() == (3, 3, [])


async def test_a_row_follows_its_source_when_nothing_else_changes(tmp_path: Path) -> None:
    async with a_world(members=("east",), has_workloads=False) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.settle()
        async with served(world, tmp_path) as (_, admin):
            for ready in (2, 1):
                await world.members["east"].report("web", replicas=2, readyReplicas=ready, updatedReplicas=2)
                await world.settle()
                (item,) = (await admin.get(f"{PATH}?kind=Deployment")).json()["items"]
                assert item["ready"] == ready


class CountedReads:
    """Federated objects of which each read is counted."""

    def __init__(self, objects: FederatedObjects) -> None:
        self._objects = objects
        self.count = 0

    def get(self, key: Key) -> Object | None:
        self.count += 1
        return self._objects.get(key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)


async def test_the_first_list_reads_nothing_after_rows_were_made_beforehand() -> None:
    async with a_world(members=("east",)) as world:
        plane = world.plane
        delivery = DeliveryView(
            plane.objects, plane.informers, plane.members, plane.member_records, plane.tolerated, plane.preview
        )
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        for number in range(60):
            await world.create(DEPLOYMENTS, a_deployment(f"web-{number}", replicas=2))
        await world.settle()
        objects = CountedReads(plane.objects)
        view = ObjectListView(cast("FederatedObjects", objects), plane.informers, delivery)
        await view.fill()
        filled, silent = objects.count, view.silent_clusters()
        assert filled >= 60
        rows = [row for type_ in view.types() for row in view.rows(type_, "", silent)]
        assert (len(rows) >= 60, objects.count) == (True, filled)


async def test_a_list_reads_only_objects_that_have_changed() -> None:
    """Reading 5,000 objects takes longer than a page may."""
    async with a_world(members=("east",)) as world:
        plane = world.plane
        delivery = DeliveryView(
            plane.objects, plane.informers, plane.members, plane.member_records, plane.tolerated, plane.preview
        )
        view = ObjectListView(plane.objects, plane.informers, delivery)
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        for name in ("web", "api", "job"):
            await world.create(DEPLOYMENTS, a_deployment(name, replicas=2))
        await world.settle()
        (type_,) = [each for each in view.types() if each.resource == DEPLOYMENTS]

        def read() -> dict[str, Row]:
            return {row.name: row for row in view.rows(type_, "", view.silent_clusters())}

        first, second = read(), read()
        assert all(second[name] is row for name, row in first.items())
        await world.scale("web", 3)
        await world.settle()
        third = read()
        assert {name for name, row in third.items() if row is not second[name]} == {"web"}
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.settle()
        assert {name for name, row in read().items() if row is third[name]} == {"api", "job"}
