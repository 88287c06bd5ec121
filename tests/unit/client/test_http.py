"""Failures between the HTTP transport and a server, and the errors that callers receive."""

import asyncio
import gzip
from dataclasses import replace
from datetime import UTC, datetime

import orjson
import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.connection import Connection, CredentialPlugin
from federation.apimachinery.errors import (
    ApiError,
    ClusterError,
    ClusterForbidden,
    ClusterUnreachable,
    Expired,
    NotFound,
    Obstacle,
    RequestTimeout,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
)
from federation.apimachinery.resources import CONFIGMAPS, NAMESPACES, Resource
from federation.client.http import HTTPClient

OBJECT = b'{"metadata":{"name":"x","resourceVersion":"1"}}'


def status_of(code: int, reason: str, **details) -> bytes:
    return orjson.dumps({"kind": "Status", "code": code, "reason": reason, "message": "told", "details": details})


@pytest.mark.parametrize(
    ("line", "body", "error"),
    [
        ("404 Not Found", status_of(404, "NotFound"), NotFound),
        ("404 Not Found", b"404 page not found", NotFound),
        ("401 Unauthorized", status_of(401, "Unauthorized"), Unauthorized),
        ("401 Unauthorized", b"<html>log in</html>", ClusterForbidden),
        ("403 Forbidden", b"<html>proxy says no</html>", ClusterForbidden),
        ("429 Too Many Requests", status_of(429, "TooManyRequests", retryAfterSeconds=3), TooManyRequests),
        ("502 Bad Gateway", b"<html>", ServiceUnavailable),
        ("503 Service Unavailable", b"", ServiceUnavailable),
        ("302 Found", b"", ClusterError),
        ("418 I'm a teapot", b"{}", ApiError),
        ("200 OK", b"<html>", ClusterError),
        ("200 OK", b"[]", ClusterError),
    ],
)
async def test_answers_without_success_become_errors(serve, connect, answered, line, body, error) -> None:
    server = await serve(lambda head: answered(body, line))
    with pytest.raises(error) as caught:
        await connect(server.connection).get(NAMESPACES, "x")
    assert type(caught.value) is error
    assert "html" not in str(caught.value)


async def test_a_server_that_never_answers_times_out(serve, connect) -> None:
    server = await serve(lambda head: None)
    client = connect(server.connection, request_timeout_s=0.05)
    with pytest.raises(RequestTimeout, match=r"within 0\.05 s"):
        await client.get(NAMESPACES, "x")
    with pytest.raises(RequestTimeout):
        await client.raw("GET", "/healthz", timeout_s=0.02)
    with pytest.raises(RequestTimeout):
        async for _ in client.watch(NAMESPACES, resource_version="1"):
            pass


async def test_the_deadline_includes_the_wait_for_a_connection(serve, connect) -> None:
    server = await serve(lambda head: None)
    client = connect(server.connection, request_timeout_s=0.05, connections_max=1)
    results = await asyncio.gather(*(client.get(NAMESPACES, "x") for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [RequestTimeout] * 3
    # One; a second one if the event loop is late for the end of its wait. If the deadline began with the connection: three.
    assert len(server.requests) < 3


async def test_connections_that_only_a_burst_needed_are_not_used_again_so_that_they_expire(
    serve, connect, answered
) -> None:
    server = await serve(lambda head: answered(OBJECT))
    client = connect(server.connection)
    await asyncio.gather(*(client.get(NAMESPACES, "x") for _ in range(5)))
    assert len(set(server.ports)) == 5
    for _ in range(5):
        await client.get(NAMESPACES, "x")
    assert len(set(server.ports[5:])) == 1


async def test_a_refused_connection_is_unreachable(serve, connect) -> None:
    with pytest.raises(ClusterUnreachable, match="no connection"):
        await connect(Connection("http://127.0.0.1:1")).get(NAMESPACES, "x")


async def test_a_connection_that_breaks_is_unreachable(serve, connect, answered) -> None:
    cut = answered(b'{"metadata"', Connection="close").replace(b"Content-Length: 11", b"Content-Length: 99")
    server = await serve(lambda head: cut)
    with pytest.raises(ClusterUnreachable, match="connection broke"):
        await connect(server.connection).get(NAMESPACES, "x")


async def test_an_untrusted_certificate_is_unreachable_and_named(serve, connect, pki, answered) -> None:
    server = await serve(lambda head: answered(OBJECT), tls=True)
    with pytest.raises(ClusterUnreachable, match="certificate is not trusted") as untrusted:
        await connect(server.connection).get(NAMESPACES, "x")
    assert untrusted.value.obstacle is Obstacle.UNTRUSTED
    ca = pki.ca_certificate.read_bytes()
    with pytest.raises(ClusterUnreachable, match="certificate is not trusted") as misnamed:
        await connect(replace(server.connection, ca_data=ca, tls_server_name="other.example")).get(NAMESPACES, "x")
    assert misnamed.value.obstacle is Obstacle.OTHER_NAME
    named = replace(server.connection, ca_data=ca, tls_server_name="localhost")
    assert await connect(named).get(NAMESPACES, "x")
    assert await connect(replace(server.connection, insecure=True)).get(NAMESPACES, "x")


async def test_a_server_without_tls_answers_and_a_dead_one_does_not(connect) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(ClusterUnreachable) as plain:
            await connect(Connection(address)).get(NAMESPACES, "x")
    assert plain.value.obstacle is Obstacle.TLS_REFUSED
    with pytest.raises(ClusterUnreachable) as dead:
        await connect(Connection("https://127.0.0.1:1")).get(NAMESPACES, "x")
    assert dead.value.obstacle is Obstacle.NO_ANSWER


async def test_credentials_are_sent_in_headers(serve, connect, answered) -> None:
    server = await serve(lambda head: answered(OBJECT))
    base = server.connection
    for connection in (
        replace(base, token="t0k3n"),
        replace(base, username="me", password="pw"),
        replace(base, token="t", impersonate_user="you", impersonate_groups=("g1", "g2")),
    ):
        await connect(connection, user_agent="tester").get(NAMESPACES, "x")
    first, second, third = (head for head, _ in server.requests)
    assert "Authorization: Bearer t0k3n" in first
    assert "User-Agent: tester" in first
    assert "Authorization: Basic bWU6cHc=" in second
    assert "Impersonate-User: you" in third
    assert third.count("Impersonate-Group: g") == 2


async def test_a_token_file_is_read_again(serve, connect, answered, token_file, clock) -> None:
    server = await serve(lambda head: answered(OBJECT))
    client = connect(replace(server.connection, token_file=str(token_file)), clock)
    await client.get(NAMESPACES, "x")
    token_file.write_text("second")
    await client.get(NAMESPACES, "x")
    await clock.advance(61)
    await client.get(NAMESPACES, "x")
    tokens = [head.split("Authorization: Bearer ")[1].split("\r\n")[0] for head, _ in server.requests]
    assert tokens == ["first", "first", "second"]
    token_file.unlink()
    await clock.advance(61)
    with pytest.raises(ClusterError, match="token file"):
        await client.get(NAMESPACES, "x")


async def test_a_plugin_runs_again_when_its_credentials_expire(serve, connect, answered, clock, tmp_path) -> None:
    server = await serve(lambda head: answered(OBJECT))
    counter = tmp_path / "count"
    script = (
        f'echo x >> {counter}; n=$(wc -l < {counter}); echo "{{\\"apiVersion\\": \\"client.authentication.k8s.io/v1\\",'
        f' \\"kind\\": \\"ExecCredential\\", \\"status\\": {{\\"token\\": \\"t$n\\",'
        f' \\"expirationTimestamp\\": \\"2026-01-01T00:10:00Z\\"}}}}"'
    )
    config = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": ["-c", script]}}
    client = connect(replace(server.connection, plugin=CredentialPlugin("exec", config)), clock)
    await asyncio.gather(*(client.get(NAMESPACES, "x") for _ in range(3)))
    await clock.advance(9.6 * 60)
    await client.get(NAMESPACES, "x")
    tokens = [head.split("Authorization: Bearer ")[1].split("\r\n")[0] for head, _ in server.requests]
    assert tokens == ["t1", "t1", "t1", "t2"]


async def test_a_failing_plugin_is_a_cluster_error(connect) -> None:
    config = {"exec": {"command": "/bin/false"}}
    with pytest.raises(ClusterError, match="exec"):
        await connect(Connection("http://127.0.0.1:1", plugin=CredentialPlugin("exec", config))).get(NAMESPACES, "x")


async def test_lists_can_be_compressed(serve, connect, answered) -> None:
    body = orjson.dumps({"items": [{"metadata": {"name": "a"}}], "metadata": {"resourceVersion": "7"}})
    server = await serve(lambda head: answered(gzip.compress(body), Content_Encoding="gzip"))
    listed = await connect(server.connection).list(CONFIGMAPS)
    assert [item["kind"] for item in listed.items] == ["ConfigMap"]
    assert "Accept-Encoding: gzip" in server.requests[0][0]


async def test_an_empty_list_may_be_null(serve, connect, answered) -> None:
    server = await serve(lambda head: answered(b'{"items":null,"metadata":{"resourceVersion":"7","continue":null}}'))
    listed = await connect(server.connection).list(CONFIGMAPS)
    assert (listed.items, listed.resource_version, listed.continue_token) == ([], "7", "")


async def test_odd_names_are_encoded(serve, connect, answered) -> None:
    server = await serve(lambda head: answered(OBJECT))
    roles = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
    client = connect(server.connection)
    await client.get(roles, "system:node")
    await client.get(roles, "a/b c?d")
    paths = [head.split(" ")[1].rsplit("/", 1)[1] for head, _ in server.requests]
    assert paths == ["system:node", "a%2Fb%20c%3Fd"]


async def test_large_bodies_are_sent(serve, connect, answered) -> None:
    server = await serve(lambda head: answered(OBJECT))
    obj = {"metadata": {"name": "x", "namespace": "n"}, "data": {"text": "x" * 1_500_000}}
    await connect(server.connection).create(CONFIGMAPS, obj)
    assert orjson.loads(server.requests[0][1]) == obj


async def test_a_deletion_sends_its_options_and_preconditions(serve, connect, answered) -> None:
    server = await serve(lambda head: answered(b'{"kind":"Status","status":"Success"}'))
    await connect(server.connection).delete(
        CONFIGMAPS, "x", "n", propagation_policy="Orphan", uid="u", resource_version="7", grace_period_s=0
    )
    assert orjson.loads(server.requests[0][1]) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Orphan",
        "gracePeriodSeconds": 0,
    }


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def added(revision: int) -> bytes:
    return b'{"type":"ADDED","object":{"metadata":{"name":"x","resourceVersion":"%d"}}}\n' % revision


async def collect(client: HTTPClient) -> list[str]:
    found: list[str] = []
    async for batch in client.watch(CONFIGMAPS, "n", resource_version="5", timeout_s=30):
        found += [event.object["metadata"]["resourceVersion"] for event in batch]
    return found


async def test_a_watch_requests_bookmarks(serve, connect) -> None:
    server = await serve(lambda head: CHUNKED + chunk(added(6) + added(7)[:20]) + chunk(added(7)[20:]) + chunk(b""))
    assert await collect(connect(server.connection)) == ["6", "7"]
    target = server.requests[0][0].split(" ")[1]
    assert target.startswith("/api/v1/namespaces/n/configmaps?")
    for parameter in ("watch=true", "allowWatchBookmarks=true", "resourceVersion=5", "timeoutSeconds=30"):
        assert parameter in target


async def test_events_of_no_account_are_not_parsed_and_show_that_the_watch_is_alive(serve, connect) -> None:
    server = await serve(lambda head: CHUNKED + chunk(b"{not JSON}\n{nor this}\n") + chunk(b""))
    watch = connect(server.connection).watch(
        CONFIGMAPS, "n", resource_version="5", skips=lambda line: line.startswith(b"{n")
    )
    assert [batch async for batch in watch] == [[], []]


async def test_changes_before_an_error_event_are_yielded_first(serve, connect) -> None:
    gone = orjson.dumps({"type": "ERROR", "object": orjson.loads(status_of(410, "Expired"))}) + b"\n"
    server = await serve(lambda head: CHUNKED + chunk(added(6) + gone) + chunk(b""))
    found: list[str] = []

    async def follow() -> None:
        async for batch in connect(server.connection).watch(CONFIGMAPS, "n", resource_version="5"):
            found.extend(event.object["metadata"]["resourceVersion"] for event in batch)

    with pytest.raises(Expired):
        await follow()
    assert found == ["6"]


async def test_a_refused_watch_raises_the_servers_status(serve, connect, answered) -> None:
    server = await serve(lambda head: answered(status_of(410, "Expired"), "410 Gone"))
    with pytest.raises(Expired):
        await collect(connect(server.connection))


async def test_a_silent_watch_ends(serve, connect) -> None:
    server = await serve(lambda head: CHUNKED + chunk(added(6)))
    assert await collect(connect(server.connection, watch_idle_timeout_s=0.5)) == ["6"]


async def test_a_watch_that_breaks_is_unreachable(serve, connect) -> None:
    server = await serve(lambda head: CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + chunk(added(6)))
    with pytest.raises(ClusterUnreachable):
        await collect(connect(server.connection))


async def test_an_event_above_the_limit_is_a_cluster_error(serve, connect) -> None:
    server = await serve(lambda head: CHUNKED + chunk(b"x" * 5000))
    with pytest.raises(ClusterError, match="longer than 1000 bytes"):
        await collect(connect(server.connection, watch_line_bytes_max=1000))


async def test_a_closed_client_refuses(serve, connect, answered) -> None:
    server = await serve(lambda head: answered(OBJECT))
    client = connect(server.connection)
    await client.get(NAMESPACES, "x")
    await client.close()
    with pytest.raises(ClusterUnreachable, match="closed"):
        await client.get(NAMESPACES, "x")


async def test_a_plugins_new_certificate_gets_a_new_session(serve, connect, answered, clock, tmp_path, pki) -> None:
    server = await serve(lambda head: answered(OBJECT), tls=True)
    answer = tmp_path / "answer"

    def give(certificate, key) -> None:
        status = {
            "clientCertificateData": certificate.read_text(),
            "clientKeyData": key.read_text(),
            "expirationTimestamp": "2026-01-01T00:10:00Z",
        }
        document = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
        answer.write_bytes(orjson.dumps(document))

    config = {"exec": {"command": "/bin/cat", "args": [str(answer)]}}
    plugin = CredentialPlugin("exec", config)
    client = connect(replace(server.connection, insecure=True, plugin=plugin), clock)
    give(pki.admin_certificate, pki.admin_key)
    await client.get(NAMESPACES, "x")
    await clock.advance(600)
    give(pki.serving.certificate, pki.serving.key)
    await client.get(NAMESPACES, "x")
    assert len(server.requests) == 2


async def test_raw_returns_the_body_whatever_the_status(serve, connect, answered) -> None:
    server = await serve(lambda head: answered(b"no", "500 Internal Server Error"))
    client = connect(server.connection)
    assert await client.raw("POST", "/x?a=1", query={"b": "2"}, body={"c": 3}) == (500, b"no")
    assert await client.raw("PUT", "/y", query={"b": "2"}, body=b"raw") == (500, b"no")
    (post, body), (put, bytes_) = server.requests
    assert post.startswith("POST /x?a=1&b=2 ")
    assert put.startswith("PUT /y?b=2 ")
    assert (orjson.loads(body), bytes_) == ({"c": 3}, b"raw")


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("Thu, 01 Jan 2026 00:00:00 GMT", 0.0),
        ("Thu, 01 Jan 2026 00:01:00 GMT", 60.0),
        ("Wed, 31 Dec 2025 23:59:59 GMT", 0.0),  # the header has whole seconds
        ("Wed, 31 Dec 2025 23:59:30 GMT", -29.0),
        ("yesterday", None),
    ],
)
async def test_the_clock_of_the_server_is_compared_with_ours(serve, connect, answered, date, expected) -> None:
    server = await serve(lambda head: answered(OBJECT, Date=date))
    client = connect(server.connection, ManualClock(datetime(2026, 1, 1, tzinfo=UTC)))
    assert client.clock_skew_s is None
    await client.get(NAMESPACES, "x")
    assert client.clock_skew_s == expected
