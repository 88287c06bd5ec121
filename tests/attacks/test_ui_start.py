"""Attacks on the forms that add a cluster and a policy: forged forms, users without rights, hostile fields, tokens."""

from pathlib import Path

import httpx
from tests.attacks.test_ui import FRAME, MARKUP, Tags
from tests.attacks.test_ui_actions import BOB, a_site, browser
from tests.attacks.test_ui_approval import fields
from tests.attacks.test_ui_bulk import Confirmation
from tests.support.world import World

from federation.api.agents import Bundle, is_secret
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS
from federation.client.registrationtoken import stored_tokens, value_of

POLICY = {"name": "new", "namespace": "default", "mode": "Duplicate", "kind-ConfigMap": "1"}
CLUSTER = {"name": "paris", "labels": "region=eu", "server": "https://fed.example", "lifetime": "3600"}


async def send(page: httpx.AsyncClient, path: str, **form: str) -> httpx.Response:
    key = (await fields(page, "/ui/plan"))["form_key"]
    return await page.post(path, data={"form_key": key, **form})


async def publish_ca(world: World) -> None:
    """Create what a complete server publishes."""
    metadata = {"name": "kube-root-ca.crt", "namespace": "kube-public"}
    await world.create(CONFIGMAPS, {"metadata": metadata, "data": {"ca.crt": "-----BEGIN CERTIFICATE-----"}})


async def test_a_token_is_shown_once_and_only_its_hash_is_stored(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        await publish_ca(world)
        shown = await send(page, "/ui/addcluster", **CLUSTER)
        assert shown.status_code == 200, shown.text[-500:]
        assert shown.headers["cache-control"] == "no-store"
        word = shown.text.partition("--register ")[2].split("<")[0].strip()
        bundle = Bundle.decode(word)
        assert (bundle.cluster, bundle.server) == ("paris", "https://fed.example")
        assert "BEGIN CERTIFICATE" in bundle.ca
        (secret,) = await stored_tokens(world.user)
        assert is_secret(bundle.secret, value_of(secret, "hash"))
        assert bundle.secret not in str(secret)
        again = await page.get("/ui/addcluster?cluster=paris")
        assert "Waits for the agent" in again.text
        assert bundle.secret not in again.text
        assert word not in again.text


async def test_forged_forms_and_users_without_rights_make_neither_token_nor_policy(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _):
        for path, form in (("/ui/addcluster", CLUSTER), ("/ui/newpolicy", {**POLICY, "step": "apply"})):
            async with browser(parts, origin="https://evil.example") as foreign:
                assert (await foreign.post(path, data=form)).status_code == 403
            async with browser(parts) as page:
                for key in ({}, {"form_key": "x" * 22}):
                    assert (await page.post(path, data={**form, **key})).status_code == 403
            async with browser(parts, BOB) as bob:
                refused = await send(bob, path, **form)
                assert refused.status_code in (403, 422), refused.text[-500:]
                assert "forbidden" in refused.text
        async with browser(parts, BOB) as bob:
            assert "You may not make a registration token" in (await bob.get("/ui/addcluster")).text
        assert await stored_tokens(world.user) == []
        assert await world.find(PROPAGATION_POLICIES, "new") is None


async def test_a_policy_is_written_as_it_was_shown_and_none_is_replaced(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        shown = await send(page, "/ui/newpolicy", **POLICY)
        assert shown.status_code == 200, shown.text[-500:]
        assert "schedulingMode: Duplicate" in shown.text
        assert await world.find(PROPAGATION_POLICIES, "new") is None, "a plan writes nothing"
        form = Confirmation(shown.text).fields
        late = await page.post("/ui/newpolicy", data={**form, "most": "1"})
        assert "no longer what you saw" in late.text
        done = await page.post("/ui/newpolicy", data=form)
        assert done.status_code == 303, done.text[-500:]
        assert done.headers["location"].endswith("/propagationpolicies/default/new")
        made = await world.find(PROPAGATION_POLICIES, "new")
        assert made is not None
        assert made["spec"]["resourceSelectors"] == [{"apiVersion": "v1", "kind": "ConfigMap"}]
        taken = await send(page, "/ui/newpolicy", **POLICY)
        assert "already; edit its YAML" in taken.text


WRONG = [
    ("/ui/addcluster", {**CLUSTER, "name": "../x"}, "Name"),
    ("/ui/addcluster", {**CLUSTER, "name": MARKUP}, "Name"),
    ("/ui/addcluster", {**CLUSTER, "server": "http://x"}, "Address"),
    ("/ui/addcluster", {**CLUSTER, "server": MARKUP}, "Address"),
    ("/ui/addcluster", {**CLUSTER, "labels": MARKUP}, "Labels"),
    ("/ui/addcluster", {**CLUSTER, "lifetime": "999999999"}, "Valid for"),
    ("/ui/addcluster", {**CLUSTER, "name": "east"}, "push mode"),
    ("/ui/newpolicy", {**POLICY, "name": MARKUP}, "Name"),
    ("/ui/newpolicy", {**POLICY, "namespace": ".."}, "Namespace"),
    ("/ui/newpolicy", {**POLICY, "clusters": MARKUP}, "Clusters"),
    ("/ui/newpolicy", {**POLICY, "labels": MARKUP}, "Labels of objects"),
]


async def test_wrong_fields_are_named_and_stay_text(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        await publish_ca(world)
        for path, form, says in WRONG:
            answer = await send(page, path, **form)
            assert answer.status_code in (400, 422), (form, answer.text[-300:])
            assert says in answer.text.partition('role="alert"')[2][:400], form
            tags = Tags()
            tags.feed(answer.text)
            assert (tags.loaded, tags.handlers) == (FRAME, [])
        assert await stored_tokens(world.user) == []
