"""Impersonation: `kubectl --as`."""

from typing import Any

import httpx
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, CONFIGMAPS, SELF_SUBJECT_REVIEWS


async def test_headers_name_the_impersonated_user(parts: Parts, admin: httpx.AsyncClient) -> None:
    async def review(**headers: str) -> Any:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return (await admin.post(SELF_SUBJECT_REVIEWS, json={}, headers=named)).json()

    assert (await review(impersonate_user="eve"))["status"]["userInfo"]["groups"] == ["system:authenticated"]
    account = (await review(impersonate_user="system:serviceaccount:ns:sa"))["status"]["userInfo"]
    assert account["groups"] == ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
    full = await review(impersonate_user="eve", impersonate_group="g", impersonate_uid="7", impersonate_extra_a_2fb="x")
    assert full["status"]["userInfo"]["uid"] == "7"
    assert (await review(impersonate_group="g"))["code"] == 400
    assert (await review(impersonate_user="system:serviceaccount:"))["kind"] == "SelfSubjectReview"
    async with connect(parts.app, BOB) as bob:
        answer = await bob.get(CONFIGMAPS, headers={"impersonate-user": "admin", "impersonate-group": "system:masters"})
        assert answer.json()["message"].startswith(
            'users "admin" is forbidden: User "bob" cannot impersonate resource "users"'
        )
