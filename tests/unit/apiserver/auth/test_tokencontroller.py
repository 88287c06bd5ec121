"""Secrets of type kubernetes.io/service-account-token."""

import asyncio
import base64
from typing import Any

import httpx
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import eventually
from tests.unit.apiserver.rbacobjects import service_account

from federation.apimachinery import wellknown
from federation.apimachinery.clock import ManualClock, SystemClock
from federation.apiserver.auth.tokencontroller import TokenController


async def test_secrets_get_token_ca_and_namespace(parts: Parts, admin: httpx.AsyncClient) -> None:
    tokens = parts.authenticator.tokens
    assert tokens is not None
    controller = TokenController(parts.registry, tokens, ca=lambda: b"CA", clock=SystemClock())
    task = asyncio.create_task(controller.run())
    account = await service_account(admin)
    secret = {
        "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": wellknown.SERVICE_ACCOUNT_TOKEN_TYPE,
    }
    await admin.post("/api/v1/namespaces/default/secrets", json=secret)
    found: dict[str, Any] = {}

    async def is_filled() -> bool:
        found.update((await admin.get("/api/v1/namespaces/default/secrets/s")).json())
        return "token" in (found.get("data") or {})

    await eventually(is_filled)
    assert base64.b64decode(found["data"]["ca.crt"]) == b"CA"
    assert base64.b64decode(found["data"]["namespace"]) == b"default"
    assert found["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == account["metadata"]["uid"]
    token = base64.b64decode(found["data"]["token"]).decode()
    reviewed = await parts.authenticator.review(token, ())
    assert reviewed is not None
    assert reviewed.user.name == "system:serviceaccount:default:robot"
    await admin.delete("/api/v1/namespaces/default/secrets/s")
    assert await parts.authenticator.review(token, ()) is None
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_secret_that_is_older_than_its_account_gets_a_token(parts: Parts, admin: httpx.AsyncClient) -> None:
    tokens, clock = parts.authenticator.tokens, ManualClock()
    assert tokens is not None
    secret = {
        "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": wellknown.SERVICE_ACCOUNT_TOKEN_TYPE,
    }
    await admin.post("/api/v1/namespaces/default/secrets", json=secret)
    controller = TokenController(parts.registry, tokens, ca=lambda: b"CA", clock=clock)
    task = asyncio.create_task(controller.run())

    async def waits_for_its_account() -> bool:
        return clock.next_deadline_s is not None

    await eventually(waits_for_its_account)
    await service_account(admin)

    async def is_filled() -> bool:
        await clock.advance(1)
        answer = await admin.get("/api/v1/namespaces/default/secrets/s")
        return "token" in (answer.json().get("data") or {})

    await eventually(is_filled)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
