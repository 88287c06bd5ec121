"""Attacks on actions in the web UI: forged forms, users without rights, hostile addresses and fields, races, secrets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.attacks.test_ui import ADMIN, FOREIGN, FRAME, MARKUP, OWN, Tags, logged_in
from tests.attacks.test_ui_approval import fields
from tests.scenarios.test_versions_of_kinds import BOTH, NEW, OLD, _definition, _widget
from tests.support.apiserver import Parts
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world
from tests.unit.apiserver.rbacobjects import grant, rule, user, wait_allowed
from tests.unit.web.test_delivery import served

from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, CRDS, DEPLOYMENTS, SECRETS, Resource
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.auth.identity import Attributes, User
from federation.web.ui.actionscreen import ACTIONS
from federation.web.ui.credentials import Credentials

WEB = "apps/v1/deployments/default/web"
BOB = Peer("bob", ())


@asynccontextmanager
async def a_site(tmp_path: Path) -> AsyncIterator[tuple[World, Parts, httpx.AsyncClient]]:
    """A Deployment of three replicas in two clusters, and its administrator's API client."""
    async with a_world(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        async with served(world, tmp_path) as (parts, admin):
            yield world, parts, admin


def browser(parts: Parts, peer: Peer = ADMIN, **headers: str) -> httpx.AsyncClient:
    return logged_in(parts, Credentials(peer=peer), **{**OWN, **headers})


async def submit(page: httpx.AsyncClient, action: str, target: str = WEB, **form: str) -> httpx.Response:
    """Ask for the preview of an action, as its form does."""
    address = f"/ui/act/{action}/{target}"
    return await page.post(address, data={**await fields(page, address), "step": "plan", **form})


async def confirm(page: httpx.AsyncClient, action: str, target: str = WEB, **form: str) -> httpx.Response:
    """Ask for the preview, and confirm it as it is shown."""
    shown = await submit(page, action, target, **form)
    assert shown.status_code == 200, shown.text[-800:]
    return await page.post(f"/ui/act/{action}/{target}", data={**form, **hidden_of(shown.text)})


def hidden_of(text: str) -> dict[str, str]:
    """Return the hidden fields of the last form of a page."""
    found = Inputs()
    found.feed(text)
    return found.fields


class Inputs(Tags):
    """Collects the fields of the last form."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form" and "/ui/act/" in found.get("action", ""):
            self.fields = {}
        if tag == "input" and found.get("name") and found.get("name") != "q":
            self.fields[found["name"]] = found.get("value", "")
        if tag == "textarea":
            self._open = found["name"]
            self.fields[self._open] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.fields[self._open] += data


async def replicas(world: World) -> int:
    return int((await world.user.get(DEPLOYMENTS, "web", "default"))["spec"]["replicas"])


async def test_an_action_shows_what_happens_and_then_does_just_that(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        shown = await submit(page, "scale", replicas="5")
        assert shown.status_code == 200
        assert "2</b> replicas start" in shown.text
        assert await replicas(world) == 3, "a preview writes nothing"
        done = await page.post(f"/ui/act/scale/{WEB}", data=hidden_of(shown.text))
        assert (done.status_code, done.headers["location"]) == (303, f"/ui/objects/{WEB}?done=scale")
        assert await replicas(world) == 5


@pytest.mark.parametrize(
    ("action", "form", "check"),
    [
        ("restart", {}, lambda obj: "kubectl.kubernetes.io/restartedAt" in obj["spec"]["template"]["metadata"]["annotations"]),
        ("pause", {}, lambda obj: obj["spec"]["paused"] is True),
        ("rebalance", {}, lambda obj: "federation.kubeadmiral.io/rebalance" in obj["metadata"]["annotations"]),
        ("move", {"clusters": "east, west"}, lambda obj: '"west"' in str(obj["metadata"]["annotations"])),
        ("labels", {"labels": "app=web\ntier=front"}, lambda obj: obj["metadata"]["labels"] == {"app": "web", "tier": "front"}),
        ("delete", {"confirm": "web"}, lambda obj: obj["metadata"].get("deletionTimestamp")),
    ],
)  # fmt: skip
async def test_each_action_writes_what_it_says(tmp_path: Path, action: str, form: dict[str, str], check: Any) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        done = await confirm(page, action, **form)
        assert done.status_code == 303, done.text[-800:]
        assert check(await world.user.get(DEPLOYMENTS, "web", "default"))


async def test_a_moved_workload_is_given_back_to_its_policy(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        assert "Let the policy decide" not in (await page.get(f"/ui/objects/{WEB}")).text
        refused = await submit(page, "move", clusters="east; rm -rf")
        assert "no name of a cluster" in refused.text
        assert (await confirm(page, "move", clusters="east")).status_code == 303
        assert "Let the policy decide" in (await page.get(f"/ui/objects/{WEB}")).text
        assert (await confirm(page, "follow")).status_code == 303
        live = await world.user.get(DEPLOYMENTS, "web", "default")
        assert "kubeadmiral.io/placements" not in live["metadata"].get("annotations", {})


@pytest.mark.parametrize("peer", [ADMIN, BOB], ids=["administrator", "without definitions"])
async def test_an_action_on_a_page_of_an_older_version_keeps_the_newer_fields(tmp_path: Path, peer: Peer) -> None:
    async with a_site(tmp_path) as (world, parts, admin), browser(parts, peer) as page:
        await world.create(CRDS, _definition(BOTH))
        await world.create(NEW, _widget(NEW, size="s", color="blue"))
        await grant(admin, rule("get,patch", "widgets", group="example.com"), to=user("bob"), name="tagger")
        await may(parts, "patch", OLD, "one")
        target = f"{OLD.api_version}/widgets/default/one"
        done = await confirm(page, "labels", target, labels="tier=front")
        assert done.status_code == 303, done.text[-800:]
        live = await world.user.get(NEW, "one", "default")
        assert (live["metadata"]["labels"], live["spec"]) == ({"tier": "front"}, {"size": "s", "color": "blue"})


async def test_yaml_is_changed_only_where_the_user_changed_it(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        text = hidden_of((await page.get(f"/ui/act/yaml/{WEB}")).text)["yaml"].removeprefix("\n")
        assert "managedFields" not in text
        assert "status:" not in text
        done = await confirm(page, "yaml", yaml=text.replace("replicas: 3", "replicas: 4"))
        assert done.status_code == 303, done.text[-800:]
        assert await replicas(world) == 4
        text = text.replace("replicas: 3", "replicas: 4")
        for bad, says in (
            (text, "nothing is changed"),
            (text.replace("name: web\n  namespace", "name: other\n  namespace"), "metadata.name cannot be changed"),
            (text.replace("kind: Deployment", "kind: StatefulSet"), "kind cannot be changed"),
            (text + "\n---\n" + text, "write this one object"),
            (": :", "YAML"),
            ("x" * ((256 << 10) + 1), "more than 256 KiB"),
            (text.replace("replicas: 4", "replicas: many"), "replicas"),
        ):
            refused = await submit(page, "yaml", yaml=bad)
            assert refused.status_code in (400, 422), says
            assert says in refused.text.partition('role="alert"')[2][:600], says


async def test_a_cluster_is_drained_and_taken_back(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        target = "core.kubeadmiral.io/v1alpha1/federatedclusters/-/east"
        shown = await submit(page, "drain", target)
        assert "replicas move" in shown.text
        done = await page.post(f"/ui/act/drain/{target}", data=hidden_of(shown.text))
        assert done.headers["location"] == "/ui/fleet/east?done=drain"
        assert (await world.user.get(FEDERATED_CLUSTERS, "east"))["spec"]["taints"]
        assert (await page.get(f"/ui/act/drain/{target}")).status_code == 404, "it is drained already"
        assert (await confirm(page, "uncordon", target)).status_code == 303
        assert not (await world.user.get(FEDERATED_CLUSTERS, "east"))["spec"].get("taints")


async def test_a_preview_that_is_out_of_date_is_shown_again_and_nothing_is_done(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        shown = await submit(page, "scale", replicas="5")
        await world.user.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 4}}, namespace="default")
        again = await page.post(f"/ui/act/scale/{WEB}", data=hidden_of(shown.text))
        assert "no longer what you saw" in again.text
        assert await replicas(world) == 4
        for wrong in ({"fingerprint": "x"}, {"fingerprint": ""}, {"replicas": "50"}):
            answer = await page.post(f"/ui/act/scale/{WEB}", data={**hidden_of(again.text), **wrong})
            assert "no longer what you saw" in answer.text, wrong
        assert await replicas(world) == 4
        stale = await fields(page, f"/ui/act/labels/{WEB}")
        await world.user.patch(DEPLOYMENTS, "web", {"metadata": {"labels": {"new": "x"}}}, namespace="default")
        conflict = await page.post(f"/ui/act/labels/{WEB}", data={**stale, "labels": "app=other"})
        assert conflict.status_code == 409
        assert "has changed since" in conflict.text
        assert "app=other" in conflict.text, "what the user wrote is kept"


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize("step", ["plan", "apply"])
async def test_another_site_can_do_nothing(parts: Parts, headers: dict[str, str], step: str) -> None:
    async with logged_in(parts, Credentials(peer=ADMIN), **headers) as page:
        form = {"step": step, "confirm": "default", "form_key": "guessed"}
        assert (await page.post("/ui/act/delete/core/v1/namespaces/-/default", data=form)).status_code == 403


async def test_the_key_of_the_session_is_needed_for_every_action(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        for action in ACTIONS:
            for key in ({}, {"form_key": "x" * 22}):
                answer = await page.post(f"/ui/act/{action}/{WEB}", data={"step": "apply", "replicas": "9", **key})
                assert answer.status_code == 403
        assert await replicas(world) == 3


async def test_a_user_does_what_his_own_rights_allow_and_sees_no_other_button(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, admin), browser(parts, BOB) as page:
        for action in ("scale", "delete"):
            assert (await page.get(f"/ui/act/{action}/{WEB}")).status_code == 403
        await grant(admin, rule("get", "deployments", group="apps"), to=user("bob"), name="reader")
        await may(parts, "get")
        seen = await page.get(f"/ui/objects/{WEB}")
        assert 'aria-label="Actions"' not in seen.text
        form = await page.get(f"/ui/act/scale/{WEB}")
        assert "You may not do this" in form.text
        assert 'value="apply"' not in form.text
        forged = {**await fields(page, "/ui/plan"), "step": "apply", "replicas": "9", "fingerprint": "x"}
        answer = await page.post(f"/ui/act/scale/{WEB}", data=forged)
        assert answer.status_code in (403, 422)
        assert "forbidden" in answer.text
        assert await replicas(world) == 3
        await grant(admin, rule("patch", "deployments", group="apps"), to=user("bob"), name="writer")
        await may(parts, "patch")
        seen = await page.get(f"/ui/objects/{WEB}")
        assert "/ui/act/scale/" in seen.text
        assert "/ui/act/delete/" not in seen.text
        shown = await submit(page, "scale", replicas="4")
        assert "moves between clusters are not shown" in shown.text, "without rights for a plan there is a dry run"
        done = await page.post(f"/ui/act/scale/{WEB}", data=hidden_of(shown.text))
        assert done.status_code == 303, done.text[-800:]
        assert await replicas(world) == 4


async def may(parts: Parts, verb: str, resource: Resource = DEPLOYMENTS, name: str = "web") -> None:
    """Wait until Bob may do this: RBAC follows its objects."""
    bob = User("bob", ("system:authenticated",))
    wanted = Attributes(verb, resource.group, resource.version, resource.plural, namespace="default", name=name)
    await wait_allowed(parts, bob, wanted)


@pytest.mark.parametrize(
    ("action", "form", "says"),
    [
        ("scale", {"replicas": ""}, "enter a value"),
        ("scale", {"replicas": "-1"}, "whole number"),
        ("scale", {"replicas": "1e3"}, "whole number"),
        ("scale", {"replicas": "\u0663"}, "whole number"),
        ("scale", {"replicas": "9" * 5000}, "whole number"),
        ("scale", {"replicas": "1000001"}, "whole number"),
        ("scale", {"replicas": "3"}, "already"),
        ("labels", {"labels": "a"}, "write key=value"),
        ("labels", {"labels": "../x=1"}, "Labels"),
        ("labels", {"labels": "a=b=c"}, "Labels"),
        ("labels", {"labels": "a=1\na=2"}, "twice"),
        ("labels", {"labels": "\n".join(f"k{n}=v" for n in range(201))}, "at most 200"),
        ("labels", {"labels": MARKUP}, "Labels"),
        ("delete", {"confirm": "WEB"}, "write web"),
        ("delete", {}, "write web"),
        ("yaml", {"yaml": "a: &a [*a]"}, "YAML"),
        ("yaml", {"yaml": MARKUP}, "YAML"),
    ],
)
async def test_wrong_fields_are_named_and_stay_text(
    tmp_path: Path, action: str, form: dict[str, str], says: str
) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        answer = await submit(page, action, **form)
        assert answer.status_code in (400, 422)
        assert says in answer.text.partition('role="alert"')[2][:400]
        tags = Tags()
        tags.feed(answer.text)
        assert (tags.loaded, tags.handlers) == (FRAME, [])
        assert await replicas(world) == 3


@pytest.mark.parametrize(
    "address",
    [
        f"/ui/act/exec/{WEB}",
        f"/ui/act/undo/{WEB}",
        f"/ui/act/resume/{WEB}",
        f"/ui/act/drain/{WEB}",
        "/ui/act/scale/core/v1/configmaps/default/settings",
        "/ui/act/scale/apps/v1/deployments/default/none",
        "/ui/act/yaml/apps/v1/nothing/default/web",
        "/ui/act/yaml/apps/v1/deployments/default/%2e%2e",
        "/ui/act/yaml/apps/v1/deployments/%2e%2e/web",
        "/ui/act/yaml/%2e%2e/v1/deployments/default/web",
        f"/ui/act/{quote(MARKUP, safe='')}/{WEB}",
        "/ui/act/yaml/apps/v1/deployments/default/" + "x" * 5000,
    ],
)
async def test_what_is_not_offered_cannot_be_addressed(tmp_path: Path, address: str) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        await world.create(CONFIGMAPS, {"metadata": {"name": "settings", "namespace": "default"}})
        answer = await page.get(address)
        assert answer.status_code in (400, 404), answer.text[-500:]
        tags = Tags()
        tags.feed(answer.text)
        assert (tags.loaded, tags.handlers) == (FRAME, [])


async def test_values_of_secrets_are_never_shown(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        secret = {"metadata": {"name": "own", "namespace": "default"}, "stringData": {"password": "topsecret"}}
        await world.create(SECRETS, secret)
        target = "core/v1/secrets/default/own"
        assert (await page.get(f"/ui/act/yaml/{target}")).status_code == 404
        for action, form in (("labels", {"labels": "a=b"}), ("delete", {"confirm": "own"})):
            shown = await submit(page, action, target, **form)
            assert shown.status_code == 200
            for value in ("topsecret", "dG9wc2VjcmV0"):
                assert value not in shown.text


async def test_times_of_forms_are_recent_or_ignored(tmp_path: Path) -> None:
    async with a_site(tmp_path) as (world, parts, _), browser(parts) as page:
        for at in ("2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z", MARKUP, "9" * 100):
            shown = await submit(page, "restart", at=at)
            assert shown.status_code == 200
            assert at[:10] not in hidden_of(shown.text)["at"]
        assert (
            "annotations" not in (await world.user.get(DEPLOYMENTS, "web", "default"))["spec"]["template"]["metadata"]
        )
