"""TokenRequests."""

from typing import Any

import httpx
import pytest
from tests.unit.apiserver.rbacobjects import service_account


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"expirationSeconds": 1}, 422),
        ({"expirationSeconds": 1 << 40}, 422),
        ({"expirationSeconds": "x"}, 400),
        ({"audiences": "x"}, 400),
        ("x", 400),
        ([1], 400),
        ({"boundObjectRef": {"kind": "Deployment", "name": "x"}}, 400),
        ({"boundObjectRef": {"kind": "Node", "name": "x"}}, 404),
        ({"boundObjectRef": {"kind": "Pod", "name": "absent"}}, 404),
        ({"boundObjectRef": {"kind": "Secret", "name": "s", "uid": "other"}}, 409),
    ],
)
async def test_invalid_token_requests_are_refused(admin: httpx.AsyncClient, spec: Any, code: int) -> None:
    await service_account(admin)
    await admin.post("/api/v1/namespaces/default/secrets", json={"metadata": {"name": "s"}})
    url = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    assert (await admin.post(url, json={"spec": spec})).status_code == code
    assert (await admin.post(url.replace("robot", "absent"), json={})).status_code == 404
