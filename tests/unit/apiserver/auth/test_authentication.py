"""Credentials: certificates, static tokens, ServiceAccount tokens, and requests without any."""

from pathlib import Path

import httpx
import pytest
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import CONFIGMAPS, SELF_SUBJECT_REVIEWS, service_account

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import Unauthorized
from federation.apiserver.auth.authentication import Authenticator
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.auth.tokenfile import TokenFile
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore


async def test_only_health_and_version_answer_without_credentials(parts: Parts) -> None:
    async with connect(parts.app, None) as nobody:
        for path in ("/livez", "/readyz", "/healthz", "/version", "/readyz/ping", "/livez?verbose"):
            assert (await nobody.get(path)).status_code == 200, path
        for path in ("/api", "/apis", CONFIGMAPS, "/metrics", "/openapi/v2", "/federation/v1/decisions", "/"):
            answer = await nobody.get(path)
            assert (answer.status_code, answer.json()["message"]) == (401, "Unauthorized"), path


@pytest.mark.parametrize(
    "value", ["Bearer x", "Bearer ", "Basic YTpi", "nonsense", "Bearer " + "x" * 20_000, "Bearer é.b.c"]
)
async def test_invalid_credentials_are_refused_on_every_path(parts: Parts, value: str) -> None:
    async with connect(parts.app, None) as client:
        for path in (CONFIGMAPS, "/version"):
            answer = await client.get(path, headers={"authorization": value.encode()})
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_static_tokens_work_and_the_scheme_is_case_insensitive(parts: Parts) -> None:
    token = parts.token_file.add(user="ci", groups=["system:masters"])
    async with connect(parts.app, None) as client:
        for scheme in ("Bearer", "bearer"):
            assert (await client.get(CONFIGMAPS, headers={"authorization": f"{scheme} {token}"})).status_code == 200


async def test_a_certificate_is_identified_by_its_fingerprint(parts: Parts) -> None:
    user = await parts.authenticator.authenticate(Peer("jane", (), "ab12"), b"")
    assert user.extra == {"authentication.kubernetes.io/credential-id": ("X509SHA256=ab12",)}


async def test_a_token_is_valid_until_its_service_account_is_deleted(parts: Parts, admin: httpx.AsyncClient) -> None:
    account = await service_account(admin)
    url = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    assert (await admin.post(url, json={"spec": {"expirationSeconds": None}})).status_code == 201
    issued = await admin.post(url, json={"spec": {"expirationSeconds": 600}})
    assert issued.status_code == 201
    token = issued.json()["status"]["token"]
    async with connect(parts.app, None, authorization=f"Bearer {token}") as robot:
        info = (await robot.post(SELF_SUBJECT_REVIEWS, json={})).json()["status"]["userInfo"]
        assert info["username"] == "system:serviceaccount:default:robot"
        assert info["uid"] == account["metadata"]["uid"]
        reviewed = await admin.post("/apis/authentication.k8s.io/v1/tokenreviews", json={"spec": {"token": token}})
        assert reviewed.json()["status"]["authenticated"] is True
        other = {"spec": {"token": token, "audiences": ["vault"]}}
        reviewed = await admin.post("/apis/authentication.k8s.io/v1/tokenreviews", json=other)
        assert "authenticated" not in reviewed.json()["status"]
        await admin.delete("/api/v1/namespaces/default/serviceaccounts/robot")
        await service_account(admin)
        parts.authenticator._cache.clear()
        assert (await robot.post(SELF_SUBJECT_REVIEWS, json={})).status_code == 401


async def test_a_bound_token_is_valid_until_its_object_is_deleted(parts: Parts, admin: httpx.AsyncClient) -> None:
    await service_account(admin)
    secrets = "/api/v1/namespaces/default/secrets"
    await admin.post(secrets, json={"metadata": {"name": "s"}})
    reference = {"kind": "Secret", "apiVersion": "v1", "name": "s"}
    url = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    token = (await admin.post(url, json={"spec": {"boundObjectRef": reference}})).json()["status"]["token"]
    assert await parts.authenticator.review(token, ()) is not None
    await admin.delete(f"{secrets}/s")
    assert await parts.authenticator.review(token, ()) is None


async def test_a_token_bound_to_a_node_names_it_and_is_valid_until_it_is_deleted(
    parts: Parts, admin: httpx.AsyncClient
) -> None:
    await service_account(admin)
    node = (await admin.post("/api/v1/nodes", json={"metadata": {"name": "n1"}})).json()
    url = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    spec = {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "n1"}}
    token = (await admin.post(url, json={"spec": spec})).json()["status"]["token"]
    reviewed = await parts.authenticator.review(token, ())
    assert reviewed is not None
    assert reviewed.user.extra["authentication.kubernetes.io/node-name"] == ("n1",)
    assert reviewed.user.extra["authentication.kubernetes.io/node-uid"] == (node["metadata"]["uid"],)
    await admin.delete("/api/v1/nodes/n1")
    assert await parts.authenticator.review(token, ()) is None


async def test_a_user_is_remembered_for_ten_seconds_and_no_longer(tmp_path: Path) -> None:
    clock, path = ManualClock(), tmp_path / "tokens.json"
    token = TokenFile(path).add(user="ci").encode()
    authenticator = Authenticator(
        Registry(MemoryStore(clock=clock), clock=clock), clock=clock, token_file=TokenFile(path)
    )
    assert (await authenticator.authenticate(None, b"Bearer " + token)).name == "ci"
    path.unlink()
    await clock.advance(9.9)
    assert (await authenticator.authenticate(None, b"Bearer " + token)).name == "ci"
    await clock.advance(10.0 - clock.monotonic())
    with pytest.raises(Unauthorized):
        await authenticator.authenticate(None, b"Bearer " + token)
