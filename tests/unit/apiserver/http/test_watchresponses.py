"""Watches over HTTP: events in every representation, and the ends of a watch."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import orjson
import pytest
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import Stream, connect

from federation.apimachinery.errors import Expired
from federation.apiserver.http.app import App, AppOptions
from federation.apiserver.http.flowcontrol import FlowControlOptions

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
NOT_CA = "fieldSelector=metadata.name!%3Dkube-root-ca.crt"
Open = Callable[..., Stream]


def configmap(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


async def revision(admin: httpx.AsyncClient) -> str:
    return str((await admin.get(CONFIGMAPS)).json()["metadata"]["resourceVersion"])


async def test_events_are_lines_with_the_stored_bytes(admin: httpx.AsyncClient, watch: Open) -> None:
    stream = watch(CONFIGMAPS, f"watch=true&resourceVersion={await revision(admin)}")
    await stream.started.wait()
    assert (stream.status, stream.headers[b"content-type"]) == (200, b"application/json")
    created = (await admin.post(CONFIGMAPS, json=configmap("a"))).json()
    await admin.delete(f"{CONFIGMAPS}/a")
    assert await stream.next() == {"type": "ADDED", "object": created}
    deleted = await stream.next()
    assert (deleted["type"], deleted["object"]["metadata"]["name"]) == ("DELETED", "a")


async def test_headers_precede_the_first_event(watch: Open, admin: httpx.AsyncClient) -> None:
    stream = watch(CONFIGMAPS, f"watch=1&resourceVersion={await revision(admin)}")
    await asyncio.wait_for(stream.started.wait(), 60)
    assert stream.lines.empty()


async def test_deprecated_watch_paths_work(admin: httpx.AsyncClient, watch: Open) -> None:
    await admin.post(CONFIGMAPS, json=configmap("a"))
    await admin.post(CONFIGMAPS, json=configmap("b"))
    stream = watch("/api/v1/watch/namespaces/default/configmaps/b", "")
    assert (await stream.next())["object"]["metadata"]["name"] == "b"
    named = watch(f"{CONFIGMAPS}/a", "watch=1")
    assert (await named.next())["object"]["metadata"]["name"] == "a"


async def test_watch_list_sends_initial_events_and_a_bookmark(admin: httpx.AsyncClient, watch: Open) -> None:
    await admin.post(CONFIGMAPS, json=configmap("a"))
    stream = watch(
        CONFIGMAPS,
        f"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&{NOT_CA}",
    )
    assert (await stream.next())["type"] == "ADDED"
    bookmark = await stream.next()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.parametrize("include", ["", "&includeObject=None", "&includeObject=Object"])
async def test_a_watch_list_of_tables_marks_the_end_of_the_initial_events(
    admin: httpx.AsyncClient, watch: Open, include: str
) -> None:
    await admin.post(CONFIGMAPS, json=configmap("a"))
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    stream = watch(CONFIGMAPS, f"{query}&{NOT_CA}{include}", headers=accept)
    assert (await stream.next())["type"] == "ADDED"
    bookmark = await stream.next()
    [row] = bookmark["object"]["rows"]
    assert (bookmark["type"], bookmark["object"]["kind"]) == ("BOOKMARK", "Table")
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_tables_carry_columns_once(admin: httpx.AsyncClient, watch: Open) -> None:
    await admin.post(CONFIGMAPS, json=configmap("a"))
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    stream = watch(CONFIGMAPS, f"watch=1&{NOT_CA}", headers=accept)
    first = (await stream.next())["object"]
    assert (first["kind"], first["rows"][0]["cells"][0]) == ("Table", "a")
    assert first["columnDefinitions"]
    await admin.post(CONFIGMAPS, json=configmap("b"))
    second = (await stream.next())["object"]
    assert second["rows"][0]["cells"][0] == "b"
    assert not second["columnDefinitions"]


async def test_metadata_only(admin: httpx.AsyncClient, watch: Open) -> None:
    await admin.post(CONFIGMAPS, json=configmap("a") | {"data": {"x": "y"}})
    accept = {"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    event = await watch(CONFIGMAPS, f"watch=1&{NOT_CA}", headers=accept).next()
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "data" not in event["object"]


async def test_a_watch_ends_at_its_timeout(watch: Open, admin: httpx.AsyncClient) -> None:
    stream = watch(CONFIGMAPS, f"watch=1&timeoutSeconds=1&resourceVersion={await revision(admin)}")
    assert await stream.next() is None
    await asyncio.wait_for(stream.task, 60)


async def test_a_compacted_start_is_an_error_event(parts: Parts, admin: httpx.AsyncClient, watch: Open) -> None:
    for name in "abc":
        await admin.post(CONFIGMAPS, json=configmap(name))
    await parts.registry.store.compact(await parts.registry.store.revision())
    stream = watch(CONFIGMAPS, "watch=1&resourceVersion=1")
    event = await stream.next()
    assert stream.status == 200
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert await stream.next() is None


async def test_a_bad_selector_is_an_http_error(watch: Open) -> None:
    stream = watch(CONFIGMAPS, "watch=1&labelSelector=a%3D%3Db%3D%3Dc")
    assert (await stream.next())["code"] == 400
    assert stream.status == 400


async def test_a_disconnected_client_ends_its_watch(parts: Parts, admin: httpx.AsyncClient, watch: Open) -> None:
    stream = watch(CONFIGMAPS, f"watch=1&resourceVersion={await revision(admin)}")
    await stream.started.wait()
    assert parts.app._flow_control.watches == 1
    await stream.disconnect()
    assert parts.app._flow_control.watches == 0


async def test_stopping_the_server_ends_watches(parts: Parts, admin: httpx.AsyncClient, watch: Open) -> None:
    stream = watch(CONFIGMAPS, f"watch=1&resourceVersion={await revision(admin)}")
    await stream.started.wait()
    parts.app.stop()
    assert await stream.next() is None
    await asyncio.wait_for(stream.task, 60)


async def test_too_many_watches_are_refused(parts: Parts, admin: httpx.AsyncClient) -> None:
    options = AppOptions(flow_control=FlowControlOptions(watches_max=0))
    app = App(
        parts.registry,
        authenticator=parts.authenticator,
        authorizer=parts.authorizer,
        options=options,
    )
    async with connect(app) as client:
        assert (await client.get(f"{CONFIGMAPS}?watch=1")).status_code == 429


class Slow:
    """A registry whose watches expire."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)

    async def watch(self, *_: Any) -> Any:
        yield [("ADDED", b'{"metadata":{"name":"a"}}')]
        raise Expired("this watcher is too slow")


async def test_a_slow_watcher_gets_an_expired_event(parts: Parts, watch: Open) -> None:
    slow: Any = Slow(parts.registry)
    app = App(slow, authenticator=parts.authenticator, authorizer=parts.authorizer)
    stream = Stream(app, CONFIGMAPS, "watch=1")
    assert (await stream.next())["type"] == "ADDED"
    error = await stream.next()
    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
    assert await stream.next() is None
    await stream.disconnect()


async def test_many_changes_keep_their_order(admin: httpx.AsyncClient, watch: Open) -> None:
    stream = watch(CONFIGMAPS, f"watch=1&resourceVersion={await revision(admin)}")
    names = [f"n{number}" for number in range(50)]
    await asyncio.gather(*(admin.post(CONFIGMAPS, content=orjson.dumps(configmap(name))) for name in names))
    events = [await stream.next() for _ in names]
    revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert revisions == sorted(revisions)
    assert {event["object"]["metadata"]["name"] for event in events} == set(names)
