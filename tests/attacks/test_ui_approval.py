"""Attacks on the approval of held moves in the web UI: forged forms, stale pages, users without the right, markup."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.attacks.test_ui import ADMIN, FOREIGN, FRAME, MARKUP, OWN, Tags, logged_in
from tests.support.apiserver import Parts
from tests.support.manifests import a_policy
from tests.support.world import World, a_world
from tests.unit.apiserver.rbacobjects import RBAC, binding, role, rule, user, wait_allowed
from tests.unit.web.test_delivery import served

from federation.api.resources import CORE_GROUP, PLACEMENT_HOLDS, PROPAGATION_POLICIES
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.auth.identity import Attributes, User
from federation.web.ui.credentials import Credentials

CLAIMS = [{"apiVersion": "v1", "kind": "PersistentVolumeClaim"}]


@asynccontextmanager
async def a_hold(tmp_path: Path) -> AsyncIterator[tuple[World, Parts, httpx.AsyncClient, str]]:
    """A control plane that holds the deletion of twelve claims; yield it, its server, its administrator and the hold."""
    async with a_world(members=("east",), has_workloads=False) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, resourceSelectors=CLAIMS))
        for number in range(12):
            spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            metadata = {"name": f"data-{number}", "namespace": "default"}
            await world.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": metadata, "spec": spec})
        await world.settle()
        for number in range(12):
            await world.user.delete(PERSISTENT_VOLUME_CLAIMS, f"data-{number}", "default")
        await world.settle()
        (hold,) = (await world.user.list(PLACEMENT_HOLDS)).items
        async with served(world, tmp_path) as (parts, admin):
            yield world, parts, admin, hold["metadata"]["name"]


async def test_only_the_form_of_an_allowed_user_for_the_version_he_saw_approves(tmp_path: Path) -> None:
    async with a_hold(tmp_path) as (world, parts, admin, name):
        address = f"/ui/holds/{name}"

        async def approval() -> Any:
            return (await world.user.get(PLACEMENT_HOLDS, name))["spec"].get("approval")

        for headers in FOREIGN:
            async with logged_in(parts, Credentials(peer=ADMIN), **headers) as browser:
                form = await fields(browser, address)
                answer = await browser.post(address, data={**form, "reason": "because"})
                assert answer.status_code == 403, headers
        async with logged_in(parts, Credentials(peer=ADMIN), **OWN) as browser:
            form = await fields(browser, address)
            for wrong, status in (
                ({"form_key": ""}, 403),
                ({"form_key": "x" * 22}, 403),
                ({"form_key": "é"}, 403),
                ({"version": ""}, 422),
                ({"version": "1"}, 409),
                ({"reason": "  "}, 422),
            ):
                answer = await browser.post(address, data={**form, "reason": "because", **wrong})
                assert answer.status_code == status, wrong
            assert (await browser.post(address, data={"reason": "a" * 70_000})).status_code == 413
            assert (await browser.post("/ui/fleet", data=form)).status_code == 405
        assert await approval() is None

        await let_read_holds(admin, "bob")
        await wait_allowed(parts, BOB_USER, READS_HOLDS)
        async with logged_in(parts, Credentials(peer=Peer("bob", ())), **OWN) as browser:
            shown = (await browser.get(address)).text
            assert "You may not approve it" in shown
            assert "data-3" not in shown, "claims that he may not list"
            form = hidden_fields(shown)
            version = (await world.user.get(PLACEMENT_HOLDS, name))["metadata"]["resourceVersion"]
            answer = await browser.post(address, data={**form, "version": version, "reason": "because"})
            assert answer.status_code == 403
        assert await approval() is None

        async with logged_in(parts, Credentials(peer=ADMIN), **OWN) as browser:
            form = await fields(browser, address)
            answer = await browser.post(address, data={**form, "reason": MARKUP})
            assert (answer.status_code, answer.headers["location"]) == (303, address)
            tags = Tags()
            tags.feed((await browser.get(address)).text)
            assert tags.loaded == FRAME
            assert MARKUP in tags.text


BOB_USER = User("bob", ("system:authenticated",))
READS_HOLDS = Attributes("get", CORE_GROUP, "v1alpha1", "placementholds", name="a")


async def let_read_holds(admin: httpx.AsyncClient, name: str) -> None:
    """Let a user read holds, and nothing else."""
    allowed = role("holds", rule("get", "placementholds", CORE_GROUP))
    assert (await admin.post(f"{RBAC}/clusterroles", json=allowed)).status_code == 201
    given = binding("holds", "ClusterRole", "holds", user(name))
    assert (await admin.post(f"{RBAC}/clusterrolebindings", json=given)).status_code == 201


class Inputs(Tags):
    """Collects the hidden fields of the page's forms."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        found = dict(attrs)
        if tag == "input" and found.get("type") == "hidden":
            self.hidden[str(found["name"])] = found.get("value") or ""


def hidden_fields(text: str) -> dict[str, str]:
    """Return the hidden fields of a page."""
    inputs = Inputs()
    inputs.feed(text)
    return inputs.hidden


async def fields(browser: httpx.AsyncClient, address: str) -> dict[str, str]:
    """Return the hidden fields of the page at an address."""
    return hidden_fields((await browser.get(address)).text)
