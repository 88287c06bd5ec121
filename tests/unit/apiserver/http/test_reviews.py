"""Access reviews, rules reviews, self subject reviews and token reviews."""

from typing import Any

import httpx
import pytest
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, SELF_SUBJECT_REVIEWS, grant, rule, user, wait_allowed_in_default

REVIEWS = "/apis/authorization.k8s.io/v1"


async def test_self_subject_reviews(parts: Parts, admin: httpx.AsyncClient) -> None:
    await grant(admin, rule("get", "configmaps", resourceNames=["a"]), to=user("bob"))
    await wait_allowed_in_default(parts)
    async with connect(parts.app, BOB) as bob:
        who = (await bob.post(SELF_SUBJECT_REVIEWS, json={})).json()
        assert who["status"]["userInfo"] == {"username": "bob", "groups": ["devs", "system:authenticated"]}
        spec = {"resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "default", "name": "a"}}
        answer = await bob.post(f"{REVIEWS}/selfsubjectaccessreviews", json={"spec": spec})
        assert (answer.status_code, answer.json()["status"]["allowed"]) == (201, True)
        assert answer.json()["status"]["reason"] == 'RBAC: allowed by RoleBinding "r/default" of Role "r" to User "bob"'
        spec = {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}
        answer = await bob.post(f"{REVIEWS}/selfsubjectaccessreviews", json={"spec": spec})
        assert answer.json()["status"] == {"allowed": False}
        rules = (await bob.post(f"{REVIEWS}/selfsubjectrulesreviews", json={"spec": {"namespace": "default"}})).json()
        assert {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"]} in rules[
            "status"
        ]["resourceRules"]
        assert (await bob.post(f"{REVIEWS}/subjectaccessreviews", json={})).status_code == 403


@pytest.mark.parametrize(
    ("resource", "body", "code"),
    [
        ("selfsubjectaccessreviews", {}, 422),
        ("selfsubjectaccessreviews", {"spec": "x"}, 400),
        ("selfsubjectaccessreviews", {"spec": {"resourceAttributes": "x"}}, 400),
        (
            "selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"verb": "x"}, "nonResourceAttributes": {"path": "/"}}},
            422,
        ),
        ("subjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get"}}}, 422),
        ("subjectaccessreviews", {"spec": {"user": "x", "groups": "y"}}, 400),
        ("selfsubjectrulesreviews", {"spec": {}}, 400),
        ("selfsubjectrulesreviews", [], 400),
    ],
)
async def test_incomplete_reviews_are_refused(admin: httpx.AsyncClient, resource: str, body: Any, code: int) -> None:
    assert (await admin.post(f"{REVIEWS}/{resource}", json=body)).status_code == code


async def test_reviews_of_other_users(parts: Parts, admin: httpx.AsyncClient) -> None:
    await grant(admin, rule("get", "configmaps"), to=user("bob"))
    await wait_allowed_in_default(parts)
    attributes = {"verb": "get", "resource": "configmaps", "namespace": "default"}
    spec = {"user": "bob", "groups": ["x"], "resourceAttributes": attributes}
    assert (await admin.post(f"{REVIEWS}/subjectaccessreviews", json={"spec": spec})).json()["status"]["allowed"]
    local = f"{REVIEWS}/namespaces/default/localsubjectaccessreviews"
    assert (await admin.post(local, json={"spec": spec})).json()["status"]["allowed"]
    elsewhere = f"{REVIEWS}/namespaces/other/localsubjectaccessreviews"
    assert (await admin.post(elsewhere, json={"spec": spec})).status_code == 400
