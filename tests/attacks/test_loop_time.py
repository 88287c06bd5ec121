"""Attack: one user's costly requests, such as dry runs of large objects, which store nothing, hold the event loop."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.test_ui import ADMIN, OWN, logged_in
from tests.attacks.test_ui_approval import fields
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import Stream, connect, eventually, running

from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.http.app import AppOptions
from federation.apiserver.http.looptime import LoopTimeOptions
from federation.web.ui.credentials import Credentials


async def test_who_used_up_his_time_is_refused_and_others_are_not(tmp_path: Path) -> None:
    # With less than nothing as burst, the first request uses it up, however fast it is.
    options = AppOptions(loop_time=LoopTimeOptions(free_s=0, burst_s=-1, rest_s_max=0))
    async with (
        running(tmp_path, options) as parts,
        connect(parts.app, Peer("tenant", ())) as tenant,
        connect(parts.app, Peer("other", ())) as other,
        connect(parts.app, ADMIN) as admin,
    ):
        assert (await tenant.get("/apis")).status_code == 200
        refused = await tenant.get("/apis")
        assert refused.status_code == 429
        assert refused.json()["message"].startswith("your requests took the server long to compute")
        assert int(refused.headers["retry-after"]) >= 1
        assert (await other.get("/apis")).status_code == 200
        for _ in range(3):
            assert (await admin.get("/api/v1/secrets")).status_code == 200


@pytest.fixture
async def thrifty(tmp_path: Path) -> AsyncIterator[Parts]:
    """A server where one charge uses up a user's time, and only what is charged apart from steps of requests counts."""
    async with running(tmp_path, AppOptions(loop_time=LoopTimeOptions(free_s=1e9, burst_s=-1, rest_s_max=0))) as parts:
        await parts.authorizer.wait_synced()
        yield parts


TENANT, OTHER = Peer("tenant", ("editors",)), Peer("other", ("editors",))


async def with_rights(parts: Parts) -> None:
    async with connect(parts.app, ADMIN) as admin:
        subject = {"kind": "Group", "name": "editors", "apiGroup": "rbac.authorization.k8s.io"}
        role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
        body = {"metadata": {"name": "editors"}, "subjects": [subject], "roleRef": role}
        url = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        assert (await admin.post(url, json=body)).status_code == 201
    async with connect(parts.app, OTHER) as other:

        async def has_rights() -> bool:
            return (await other.get("/api/v1/configmaps")).status_code == 200

        await eventually(has_rights)


async def is_used_up(parts: Parts, peer: Peer = TENANT) -> bool:
    async with connect(parts.app, peer) as client:
        return (await client.get("/apis")).status_code == 429


async def test_what_a_thread_decodes_is_charged(thrifty: Parts) -> None:
    await with_rights(thrifty)
    lines = "".join(f"  k{n}: value\n" for n in range(1000))
    for kind in ("application/yaml", "application/apply-patch+yaml"):
        peer = Peer(f"tenant-{kind}", ("editors",))
        async with connect(thrifty.app, peer, **{"content-type": kind}) as tenant:
            text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n{lines}"
            url = "/api/v1/namespaces/default/configmaps"
            if "apply" in kind:
                await tenant.patch(f"{url}/a?fieldManager=x&dryRun=All", content=text)
            else:
                assert (await tenant.post(f"{url}?dryRun=All", content=text)).status_code == 201
        assert await is_used_up(thrifty, peer)
    assert not await is_used_up(thrifty, OTHER)


@pytest.mark.parametrize(
    ("accept", "is_charged"),
    [
        ("application/json;as=Table;g=meta.k8s.io;v=v1", True),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", True),
        ("application/json", False),
    ],
)
async def test_watches_that_compute_a_form_of_each_event_are_charged(
    thrifty: Parts, accept: str, is_charged: bool
) -> None:
    await with_rights(thrifty)
    stream = Stream(thrifty.app, "/api/v1/configmaps", "watch=1", headers={"accept": accept}, peer=TENANT)
    await stream.started.wait()
    async with connect(thrifty.app, ADMIN) as admin:
        url = "/api/v1/namespaces/default/configmaps"
        assert (await admin.post(url, json={"metadata": {"name": "a"}})).status_code == 201
    assert (await stream.next())["type"] == "ADDED"
    assert await is_used_up(thrifty) is is_charged
    await stream.disconnect()


async def test_what_a_page_of_the_web_ui_computes_is_charged_to_its_user(tmp_path: Path) -> None:
    # The requests that the page makes take less than the free time; parsing this text does not.
    options = AppOptions(loop_time=LoopTimeOptions(free_s=0.04, burst_s=-1, rest_s_max=0))
    text = "kind: [" + "[a], " * 20_000 + "]"
    async with running(tmp_path, options) as parts:
        async with logged_in(parts, Credentials(peer=TENANT), **OWN) as browser:
            hidden = await fields(browser, "/ui/plan")
            await browser.post("/ui/plan", data={**hidden, "manifests": text})
        assert await is_used_up(parts)
        assert not await is_used_up(parts, OTHER)


async def test_requests_that_entered_together_rest_when_their_bodies_arrive(tmp_path: Path) -> None:
    options = AppOptions(loop_time=LoopTimeOptions(burst_s=60, rest_s_max=0))
    async with running(tmp_path, options) as parts:
        arrived, waiting, codes = asyncio.Event(), list[None](), list[int]()

        async def receive() -> dict[str, Any]:
            waiting.append(None)
            await arrived.wait()
            return {"type": "http.request", "body": b'{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}'}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                codes.append(message["status"])

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
        }
        tasks = [asyncio.create_task(parts.app({**scope, "state": {"peer": TENANT}}, receive, send)) for _ in range(4)]

        async def have_entered() -> bool:
            return len(waiting) == len(tasks)

        await eventually(have_entered)
        parts.app._loop_time.charge("user:tenant", 100)  # what others of his requests computed meanwhile
        arrived.set()
        await asyncio.gather(*tasks)
    assert codes == [429] * 4
