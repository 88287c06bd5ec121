"""Attacks on actions for several objects: forged forms, users without rights, hostile rows, plans that changed."""

from pathlib import Path
from typing import Any

import httpx
from tests.attacks.test_ui import FRAME, MARKUP, Tags
from tests.attacks.test_ui_actions import BOB, WEB, a_site, browser, may
from tests.attacks.test_ui_approval import fields
from tests.support.manifests import a_deployment
from tests.support.world import World
from tests.unit.apiserver.rbacobjects import grant, rule, user

from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS

OTHER = "apps/v1/deployments/default/other"
SETTINGS = "core/v1/configmaps/default/settings"
RESTARTED = "kubectl.kubernetes.io/restartedAt"


async def send(page: httpx.AsyncClient, do: str, *rows: str, **form: str) -> httpx.Response:
    """Send a form of the list of objects."""
    key = (await fields(page, "/ui/plan"))["form_key"]
    chosen = {f"row-{number}": row for number, row in enumerate(rows)}
    return await page.post("/ui/bulk", data={"form_key": key, "step": "plan", "do": do, **chosen, **form})


class Confirmation(Tags):
    """The fields of the form that confirms."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.fields = {}
        if tag == "input":
            self.fields[found.get("name", "")] = found.get("value", "")


async def restarts(world: World) -> dict[str, Any]:
    found = (await world.user.list(DEPLOYMENTS, "default")).items
    return {
        each["metadata"]["name"]: (each["spec"]["template"]["metadata"].get("annotations") or {}).get(RESTARTED)
        for each in found
    }


async def test_several_objects_are_restarted_after_one_plan_and_others_are_named(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        await world.create(DEPLOYMENTS, a_deployment("other", replicas=1))
        await world.create(CONFIGMAPS, {"metadata": {"name": "settings", "namespace": "default"}})
        await world.settle()
        gone = "apps/v1/deployments/default/gone"
        shown = await send(page, "restart", WEB, OTHER, WEB, SETTINGS, gone)
        assert shown.status_code == 200
        assert "restart does not apply to it" in shown.text
        assert "it does not exist any more" in shown.text
        assert set((await restarts(world)).values()) == {None}, "a plan writes nothing"
        form = Confirmation(shown.text).fields
        done = await page.post("/ui/bulk", data=form)
        assert (done.status_code, done.headers["location"]) == (303, "/ui/objects?done=restart")
        assert None not in (await restarts(world)).values()


async def test_a_deletion_needs_its_sentence_and_the_plan_that_was_seen(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        await world.create(DEPLOYMENTS, a_deployment("other", replicas=1))
        await world.settle()
        form = Confirmation((await send(page, "delete", WEB, OTHER)).text).fields
        for sentence in ("", "delete", "delete 3 objects", "delete 2 OBJECTS"):
            refused = await page.post("/ui/bulk", data={**form, "confirm": sentence})
            assert "to confirm" in refused.text.partition('role="alert"')[2][:200]
        sentence = "delete 2 objects"
        for wrong in ({"fingerprint": "x"}, {"row-1": SETTINGS}):
            refused = await page.post("/ui/bulk", data={**form, "confirm": sentence, **wrong})
            assert refused.status_code == 200, "the page is shown again"
        await world.user.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 9}}, namespace="default")
        late = await page.post("/ui/bulk", data={**form, "confirm": sentence})
        assert "no longer what you saw" in late.text
        assert set(await restarts(world)) == {"web", "other"}
        again = Confirmation(late.text).fields
        assert (await page.post("/ui/bulk", data={**again, "confirm": sentence})).status_code == 303
        found = [await world.find(DEPLOYMENTS, name) for name in ("web", "other")]
        assert all(each is None or each["metadata"].get("deletionTimestamp") for each in found)


async def test_forged_forms_and_users_without_rights_change_nothing(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, admin):
        async with browser(parts, origin="https://evil.example") as foreign:
            assert (await foreign.post("/ui/bulk", data={"do": "delete", "row-1": WEB})).status_code == 403
        async with browser(parts) as page:
            for key in ({}, {"form_key": "x" * 22}):
                assert (await page.post("/ui/bulk", data={"do": "delete", "row-1": WEB, **key})).status_code == 403
        async with browser(parts, BOB) as bob:
            unseen = await send(bob, "delete", WEB, step="apply", confirm="delete 1 object", fingerprint="x")
            assert "you may not read it" in unseen.text
            await grant(admin, rule("get", "deployments", group="apps"), to=user("bob"), name="reader")
            await may(parts, "get")
            refused = await send(bob, "delete", WEB, step="apply", confirm="delete 1 object", fingerprint="x")
            assert "you may not delete it" in refused.text
            assert 'value="apply"' not in refused.text
            await grant(admin, rule("patch", "deployments", group="apps"), to=user("bob"), name="writer")
            await may(parts, "patch")
            shown = await send(bob, "restart", WEB)
            assert "moves between clusters are not shown" in shown.text
            assert (await bob.post("/ui/bulk", data=Confirmation(shown.text).fields)).status_code == 303
        assert (await restarts(world))["web"]


HOSTILE: list[tuple[str, list[str], str]] = [
    ("restart", [], "Choose objects"),
    ("scale", [WEB], "not done for several"),
    ("yaml", [WEB], "not done for several"),
    (MARKUP, [WEB], "not done for several"),
    ("restart", [f"apps/v1/deployments/default/x{number}" for number in range(51)], "at most 50"),
    ("restart", [MARKUP], "no object of the list"),
    ("delete", ["core/v1/secrets/../own"], ""),
    ("delete", ["core/v1/..%2fsecrets/default/own"], ""),
    ("delete", ["../../v1/secrets/default/own"], "no object of the list"),
    ("delete", ["core.kubeadmiral.io/v1alpha1/federatedclusters/-/east"], "actions of their own"),
]


async def test_hostile_rows_are_named_and_stay_text(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        for do, rows, says in HOSTILE:
            answer = await send(page, do, *rows, step="apply", fingerprint="x")
            assert answer.status_code in (200, 400, 422), rows
            assert says in answer.text, rows
            tags = Tags()
            tags.feed(answer.text)
            assert (tags.loaded, tags.handlers) == (FRAME, [])
        more = await send(page, "delete", *[WEB] * 70)
        assert more.status_code == 403, "more fields than a page has are no form"
        assert await restarts(world) == {"web": None}
