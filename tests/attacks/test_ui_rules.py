"""Rules for a user of one namespace: its suspensions, and neither other rules nor the names of objects behind them."""

from pathlib import Path

from tests.attacks.test_ui_actions import BOB, a_site, browser
from tests.support.manifests import a_policy
from tests.unit.apiserver.rbacobjects import grant, rule, user, wait_allowed

from federation.api.resources import CHANGE_FREEZES, DELIVERY_SUSPENSIONS, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, Object, Resource
from federation.apiserver.auth.identity import Attributes, User

GROUP = "core.kubeadmiral.io"


def a_rule(resource: Resource, name: str, **spec: object) -> Object:
    metadata = {"name": name, "namespace": "default"} if resource.namespaced else {"name": name}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


async def test_a_user_sees_the_suspensions_of_his_namespace_and_no_object_that_he_may_not_list(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, admin):
        selectors = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "veiled"}]
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, name="copies", resourceSelectors=selectors))
        await world.create(CONFIGMAPS, {"metadata": {"name": "veiled", "namespace": "default"}})
        await world.settle()
        suspension = a_rule(DELIVERY_SUSPENSIONS, "disk", owner="ops", reason="a copy")
        await world.create(DELIVERY_SUSPENSIONS, suspension)
        windows = [{"start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z"}]
        await world.create(CHANGE_FREEZES, a_rule(CHANGE_FREEZES, "old-sale", reason="a sale", windows=windows))
        await world.user.patch(CONFIGMAPS, "veiled", {"data": {"new": "yes"}}, namespace="default")
        await world.settle()
        await grant(admin, rule("get,list", "deliverysuspensions", group=GROUP), to=user("bob"))
        listing = Attributes("list", GROUP, "v1alpha1", "deliverysuspensions", namespace="default")
        await wait_allowed(parts, User("bob", ("devs", "system:authenticated")), listing)
        page_of = f"/ui/objects/{GROUP}/v1alpha1/deliverysuspensions/default/disk"
        async with browser(parts) as page:
            everything = (await page.get("/ui/rules")).text
            assert "1 object waits" in everything
            assert "old-sale" in everything
            assert "veiled" in (await page.get(page_of)).text
        async with browser(parts, BOB) as bob:
            for address in (
                "/ui/rules",
                "/ui/rules?namespace=default",
                page_of,
                "/ui/rules?namespace=default&export=yaml",
            ):
                answer = await bob.get(address)
                assert answer.status_code == 200, address
                assert "disk" in answer.text
                for secret in ("veiled", "old-sale", "1 object"):
                    assert secret not in answer.text, address
            assert (await bob.get(f"/ui/objects/{GROUP}/v1alpha1/changefreezes/-/old-sale")).status_code == 403
        await world.user.delete(DELIVERY_SUSPENSIONS, "disk", "default")
        await world.settle()
