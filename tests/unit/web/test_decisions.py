"""The decision journal over HTTP: filters, pages, parameters and permissions."""

from datetime import UTC, datetime

import httpx
import orjson
import pytest
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, RBAC, binding, role, rule, user, wait_allowed

from federation.apiserver.auth.identity import Attributes, User
from federation.journal.decisions import DecisionRecord


async def test_decisions_come_from_the_journal(parts: Parts, admin: httpx.AsyncClient) -> None:
    for minute in (1, 2):
        moment = datetime(2026, 1, 1, 0, minute, tzinfo=UTC)
        record = DecisionRecord(moment, "apps", "Deployment", "default", "web", "placed", 1.5, b'{"clusters":["a"]}')
        await parts.journal.append(record)
    url = "/federation/v1/decisions?kind=Deployment&namespace=default&name=web"
    (newest,) = (await admin.get(url)).json()["items"]
    assert newest == {
        "at": "2026-01-01T00:02:00.000000Z",
        "group": "apps",
        "kind": "Deployment",
        "namespace": "default",
        "name": "web",
        "outcome": "placed",
        "durationMs": 1.5,
        "repeats": 0,
        "lastAt": "2026-01-01T00:02:00.000000Z",
        "explanation": {"clusters": ["a"]},
    }
    assert len((await admin.get(f"{url}&limit=5&group=apps")).json()["items"]) == 2
    earlier = (await admin.get(f"{url}&until=2026-01-01T00:01:30Z")).json()["items"]
    assert earlier[0]["at"] == "2026-01-01T00:01:00.000000Z"
    assert (await admin.get(f"{url}&limit=5&since=2026-01-01T00:02:00Z&outcome=placed")).json()["items"] == [newest]


async def test_decisions_come_in_pages(parts: Parts, admin: httpx.AsyncClient) -> None:
    for number in range(7):
        moment = datetime(2026, 1, 1, 0, number, tzinfo=UTC)
        explanation = orjson.dumps({"text": "x" * 3_000_000})
        record = DecisionRecord(moment, "apps", "Deployment", "default", f"web-{number}", "placed", 1.5, explanation)
        await parts.journal.append(record)
    seen: list[str] = []
    token, pages = "", 0
    while token or not pages:
        query = {"limit": "4", **({"continue": token} if token else {})}
        answer = (await admin.get("/federation/v1/decisions", params=query)).json()
        token, pages = answer["metadata"].get("continue", ""), pages + 1
        seen += [item["name"] for item in answer["items"]]
    assert seen == [f"web-{number}" for number in reversed(range(7))]
    assert pages == 3, "explanations beyond some megabytes are on the next page"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("kind=a&nmae=b", "nmae: no such parameter; there are continue, group, kind"),
        ("continue=x", "continue: Input should be a valid integer"),
        ("since=yesterday", "since: not a time; write one with its zone, for example 2026-01-01T00:00:00Z"),
        ("kind=a&name=b&limit=0", "limit: Input should be greater than or equal to 1"),
        ("kind=a&name=b&limit=100000", "limit: Input should be less than or equal to 500"),
        ("kind=a&name=b&since=yesterday", "since: "),
        ("kind=a&name=b&until=2026-01-01T00:00:00", "until: a time needs a time zone"),
    ],
)
async def test_the_message_of_a_bad_request_names_the_parameter(
    admin: httpx.AsyncClient, query: str, message: str
) -> None:
    answer = await admin.get(f"/federation/v1/decisions?{query}")
    assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
    assert message in answer.json()["message"]


async def test_a_user_who_may_read_an_object_may_read_its_decisions(parts: Parts, admin: httpx.AsyncClient) -> None:
    await admin.post(f"{RBAC}/namespaces/default/roles", json=role("web", rule("get", "deployments", group="apps")))
    bound = binding("web", "Role", "web", user("bob"))
    await admin.post(f"{RBAC}/namespaces/default/rolebindings", json=bound)
    await wait_allowed(parts, User("bob"), Attributes("get", "apps", "v1", "deployments", "", "default", "web"))
    url = "/federation/v1/decisions"
    async with connect(parts.app, BOB) as bob:
        allowed = await bob.get(f"{url}?kind=Deployment&namespace=default&name=web")
        assert (allowed.status_code, allowed.json()["items"]) == (200, [])
        for query, words in (
            ("kind=Deployment&namespace=other&name=web", 'in API group "apps" in the namespace "other"'),
            ("kind=Deployment&namespace=default", 'cannot list resource "deployments"'),
            ("kind=Deployment&name=web", 'cannot get resource "deployments" in API group "apps" at the cluster scope'),
            ("kind=Nothing&namespace=default&name=web", 'cannot get path "/federation/v1/decisions"'),
            ("kind=Deployment&kind=Secret&namespace=default&name=web", 'cannot get resource "secrets"'),
            ("", 'cannot get path "/federation/v1/decisions"'),
        ):
            refused = await bob.get(f"{url}?{query}")
            assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden"), query
            assert words in refused.json()["message"]
