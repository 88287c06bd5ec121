"""Secrets of type kubernetes.io/service-account-token."""

import asyncio
import base64
from typing import Any

import httpx
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import eventually
from tests.unit.apiserver.rbacobjects import service_account

from federation.apimachinery import wellknown
from federation.apimachinery.clock import SystemClock
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
