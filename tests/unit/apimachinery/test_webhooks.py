"""Reviews over real HTTPS: trust, deadlines, and every kind of failed call."""

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import Forbidden, NotFound, WebhookFailed
from federation.apimachinery.webhookclient import WebhookClient, WebhookClientOptions
from federation.apimachinery.webhooks import REVIEW_BYTES_MAX, HTTPWebhookCaller, ServiceNetwork
from federation.apiserver.auth.pki import PKI, ensure_pki
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import WriteOptions

Answer = Callable[[dict[str, Any]], Awaitable[bytes]]


def to_http(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def reviewed(review: dict[str, Any], **response: Any) -> bytes:
    uid = review["request"]["uid"]
    answer = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": {"uid": uid, **response}}
    return to_http(orjson.dumps(answer))


@pytest.fixture
def pki(tmp_path: Path) -> PKI:
    return ensure_pki(tmp_path / "pki", now=datetime.now(UTC), names=["127.0.0.1"])


@asynccontextmanager
async def a_webhook_server(pki: PKI, answer: Answer) -> AsyncIterator[dict[str, str]]:
    """Serve `answer` with TLS and yield the client configuration that reaches it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            writer.write(await answer(orjson.loads(await reader.readexactly(int(length.partition(b":")[2])))))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pki.serving.certificate, pki.serving.key)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    bundle = base64.b64encode(pki.ca_certificate.read_bytes()).decode()
    try:
        yield {"url": f"https://127.0.0.1:{port}/check", "caBundle": bundle}
    finally:
        server.close()
        await server.wait_closed()


@pytest.fixture
async def caller() -> AsyncIterator[HTTPWebhookCaller]:
    client = WebhookClient(WebhookClientOptions(response_bytes_max=REVIEW_BYTES_MAX))
    yield HTTPWebhookCaller(client)
    await client.close()


REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u"}}


async def allow(review: dict[str, Any]) -> bytes:
    return reviewed(review, allowed=True)


async def test_a_review_is_sent_and_its_response_returned(pki: PKI, caller: HTTPWebhookCaller) -> None:
    async with a_webhook_server(pki, allow) as config:
        answer = await caller.call(config, REVIEW, timeout_s=60)
    assert answer["response"] == {"uid": "u", "allowed": True}


async def test_a_server_outside_the_ca_bundle_is_refused(pki: PKI, tmp_path: Path, caller: HTTPWebhookCaller) -> None:
    other = ensure_pki(tmp_path / "other", now=datetime.now(UTC))
    bundle = base64.b64encode(other.ca_certificate.read_bytes()).decode()
    async with a_webhook_server(pki, allow) as config:
        with pytest.raises(WebhookFailed, match="certificate verify failed"):
            await caller.call({**config, "caBundle": bundle}, REVIEW, timeout_s=60)


async def test_a_deadline_ends_the_call(pki: PKI, caller: HTTPWebhookCaller) -> None:
    async def hang(review: dict[str, Any]) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with a_webhook_server(pki, hang) as config:
        with pytest.raises(WebhookFailed, match=r"context deadline exceeded after 0\.3s"):
            await caller.call(config, REVIEW, timeout_s=0.3)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (to_http(b"{}", "500 Internal Server Error"), "the server answered 500"),
        (to_http(b"<html>"), "the answer is not JSON"),
        (to_http(b" " * (3 * 1024 * 1024 + 1)), "the answer is larger than"),
        (b"nonsense\r\n\r\n", "Post"),
        (b"", "Post"),
    ],
    ids=["500", "no JSON", "too large", "no HTTP", "hangs up"],
)
async def test_unusable_responses_are_failed_calls(
    pki: PKI, answer: bytes, text: str, caller: HTTPWebhookCaller
) -> None:
    async def respond(review: dict[str, Any]) -> bytes:
        return answer

    async with a_webhook_server(pki, respond) as config:
        with pytest.raises(WebhookFailed, match=text):
            await caller.call(config, REVIEW, timeout_s=60)


async def test_a_refused_connection_is_a_failed_call(pki: PKI, caller: HTTPWebhookCaller) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{free.getsockname()[1]}/"
        with pytest.raises(WebhookFailed, match="Post"):
            await caller.call({"url": url}, REVIEW, timeout_s=60)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"service": {"namespace": "ns", "name": "svc"}}, "service ns/svc cannot be reached"),
        ({"url": "http://127.0.0.1/"}, "is not an https URL"),
        ({"url": "https://127.0.0.1/", "caBundle": "!"}, "caBundle holds no certificates"),
    ],
    ids=["service", "plain HTTP", "broken bundle"],
)
async def test_an_unusable_configuration_is_reported(
    config: dict[str, Any], text: str, caller: HTTPWebhookCaller
) -> None:
    with pytest.raises(WebhookFailed, match=text):
        await caller.call(config, REVIEW, timeout_s=60)


async def test_a_registry_calls_a_real_webhook(pki: PKI, caller: HTTPWebhookCaller) -> None:
    async def decide(review: dict[str, Any]) -> bytes:
        if review["request"]["object"]["data"] == {"k": "bad"}:
            return reviewed(review, allowed=False, status={"code": 403, "reason": "Forbidden", "message": "bad"})
        patch = base64.b64encode(b'[{"op":"add","path":"/data/seen","value":"yes"}]').decode()
        return reviewed(review, allowed=True, patchType="JSONPatch", patch=patch)

    registry = Registry(MemoryStore(), clock=SystemClock(), webhooks=caller)
    await registry.start()
    maps = registry.kinds.lookup("", "v1", "configmaps")
    hooks = registry.kinds.lookup("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations")
    options = WriteOptions(user=lambda: {"username": "me"})
    async with a_webhook_server(pki, decide) as config:
        rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        webhook = {"name": "a.b.c", "clientConfig": config, "rules": [rule], "sideEffects": "None"}
        webhook["admissionReviewVersions"] = ["v1"]
        await registry.create(hooks, "", {"metadata": {"name": "h"}, "webhooks": [webhook]}, options)
        made = await registry.create(maps, "default", {"metadata": {"name": "a"}, "data": {"k": "good"}}, options)
        assert orjson.loads(made)["data"] == {"k": "good", "seen": "yes"}
        with pytest.raises(Forbidden, match=r'admission webhook "a\.b\.c" denied the request: bad'):
            await registry.create(maps, "default", {"metadata": {"name": "b"}, "data": {"k": "bad"}}, options)


async def test_a_service_of_the_network_answers_by_its_path() -> None:
    async def answer(path: str, review: Any) -> Any:
        if path == "/unknown":
            raise NotFound("no such path")
        return {"path": path, "review": review}

    network = ServiceNetwork()
    network.add("kube-system", "spread", answer)
    service = {"namespace": "kube-system", "name": "spread"}
    assert await network.call({"service": {**service, "path": "/a"}}, {"x": 1}, timeout_s=1) == {
        "path": "/a",
        "review": {"x": 1},
    }
    assert (await network.call({"service": service}, {}, timeout_s=1))["path"] == "/"
    with pytest.raises(WebhookFailed, match="no such path"):
        await network.call({"service": {**service, "path": "/unknown"}}, {}, timeout_s=1)
    for config in ({"service": {**service, "name": "another"}}, {"url": "https://a"}, {}):
        with pytest.raises(WebhookFailed, match="without a way to call webhooks"):
            await network.call(config, {}, timeout_s=1)
