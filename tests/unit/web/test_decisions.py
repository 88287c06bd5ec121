"""The decision journal over HTTP: filters, pages, parameters and permissions."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from sqlalchemy import make_url
from tests.support.apiserver import Parts
from tests.support.world import a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, RBAC, binding, role, rule, user, wait_allowed
from tests.unit.web.test_delivery import served

from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.apiserver.semantics.kinds.builtin import builtin_kinds
from federation.apiserver.semantics.kinds.kinds import Kinds
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sqlite import SQLiteDatabase
from federation.journal.decisions import DecisionRecord
from federation.journal.sqljournal import SQLJournal
from federation.web import application


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


async def test_the_part_moves_has_what_changed_without_scores(parts: Parts, admin: httpx.AsyncClient) -> None:
    changed = {"previous": {"a": 1}, "placements": {"b": None}, "because": ["x"], "reason": "r", "unplaced": 2}
    scores = {"clusters": ["a", "b"], "scores": {"totals": [1, 2]}, "rejected": {"a": {"plugin": "P"}}}
    for number, explanation in enumerate(({"unit": {"mode": "Divide"}, **changed, **scores}, {"reason": "later"})):
        moment = datetime(2026, 1, 1, 0, number, tzinfo=UTC)
        record = DecisionRecord(moment, "apps", "Deployment", "default", "web", "o", 1.5, orjson.dumps(explanation))
        await parts.journal.append(record)
    url = "/federation/v1/decisions?kind=Deployment&namespace=default&name=web&limit=5&part=moves"
    deferred, decided = (item["explanation"] for item in (await admin.get(url)).json()["items"])
    assert decided == {"unit": {}, **changed}
    assert deferred == {"reason": "later"}
    assert (await admin.get(url.replace("moves", "scores"))).status_code == 400


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


async def test_decisions_are_found_by_cluster_and_by_what_changed(parts: Parts, admin: httpx.AsyncClient) -> None:
    told = [
        {"unit": {}, "clusters": ["east", "west"], "previous": {}, "placements": {"east": 1}},
        {"unit": {}, "clusters": ["east", "west"], "previous": {"east": 1}, "placements": {"west": 1}, "because": ["replicaCount"]},
        {"placements": {"west": 1}, "because": ["clusterTaintsHashes"]},
        {"unit": {}, "previous": {"west": 1}, "rejected": {"east": {"plugin": "P", "reasons": ["no"]}}},
    ]  # fmt: skip
    for number, explanation in enumerate(told):
        moment = datetime(2026, 1, 1, 0, number, tzinfo=UTC)
        record = DecisionRecord(
            moment, "apps", "Deployment", "default", str(number), "x", 1.5, orjson.dumps(explanation)
        )
        await parts.journal.append(record)

    async def found(query: str) -> list[str]:
        answer = (await admin.get(f"/federation/v1/decisions?limit=9&{query}")).json()
        return [item["name"] for item in answer["items"]]

    assert await found("cluster=east") == ["1", "0"]
    assert await found("cluster=west") == ["3", "2", "1"]
    assert await found("changed=replicas") == ["1"]
    assert await found("changed=taints of clusters&cluster=west") == ["2"]
    assert await found("cluster=eas") == []


async def test_a_page_ends_after_a_number_of_decisions_with_or_without_results(
    parts: Parts, admin: httpx.AsyncClient
) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    placed = orjson.dumps({"placements": {"east": 1}})
    for number in range(2_002):
        explanation = placed if number in (0, 2_001) else b"{}"
        record = DecisionRecord(moment, "apps", "Deployment", "default", str(number), "x", 1.5, explanation)
        await parts.journal.append(record)
    query = {"cluster": "east", "limit": "5"}
    first = (await admin.get("/federation/v1/decisions", params=query)).json()
    second = (await admin.get("/federation/v1/decisions", params={**query, **first["metadata"]})).json()
    assert [[item["name"] for item in page["items"]] for page in (first, second)] == [["2001"], ["0"]]
    assert second["metadata"] == {}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("kind=a&nmae=b", "nmae: no such parameter; there are changed, cluster, continue, group, kind"),
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


async def test_without_a_kind_a_user_sees_the_decisions_of_the_kinds_that_he_may_list(tmp_path: Path) -> None:
    async with a_world(members=("east",)) as world, served(world, tmp_path) as (parts, admin):
        for kind, group, namespace in (
            ("Deployment", "apps", "default"), ("Secret", "", "default"), ("Deployment", "apps", "other"),
        ):  # fmt: skip
            await parts.journal.append(
                DecisionRecord(datetime(2026, 1, 1, tzinfo=UTC), group, kind, namespace, "web", "x", 1.0, b"{}")
            )
        await admin.post(
            f"{RBAC}/namespaces/default/roles", json=role("web", rule("list", "deployments", group="apps"))
        )
        bound = binding("web", "Role", "web", user("bob"))
        await admin.post(f"{RBAC}/namespaces/default/rolebindings", json=bound)
        await wait_allowed(parts, User("bob"), Attributes("list", "apps", "v1", "deployments", "", "default"))
        async with connect(parts.app, BOB) as bob:
            answer = (await bob.get("/federation/v1/decisions?namespace=default&limit=9")).json()
            assert [(item["kind"], item["namespace"]) for item in answer["items"]] == [("Deployment", "default")]
            assert "secrets" in answer["hiddenResources"]
            everywhere = (await bob.get("/federation/v1/decisions?limit=9")).json()
            assert everywhere["items"] == answer["items"], "those of his namespaces"
            assert (await bob.get("/federation/v1/decisions?namespace=")).json()["items"] == []
            assert (await bob.get("/federation/v1/decisions?namespace=other")).status_code == 403
        everything = (await admin.get("/federation/v1/decisions?limit=9")).json()
        assert (len(everything["items"]), everything["hiddenResources"]) == (3, [])


async def test_a_store_that_does_not_answer_becomes_a_status(tmp_path: Path) -> None:
    journal = SQLJournal(SQLiteDatabase(make_url(f"sqlite:///{tmp_path / 'state.db'}"), StoreOptions()))
    mounted = application.mount(journal, Kinds(builtin_kinds()), ())

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await mounted.app({**scope, AUTHORIZE: allow}, receive, send)

    async def allow(*_: Any, **__: Any) -> None:
        pass

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
        answer = await client.get("/federation/v1/decisions?kind=Deployment&name=web")
    status = answer.json()
    assert (answer.status_code, status["kind"], status["reason"]) == (503, "Status", "ServiceUnavailable")
    assert "state.db is not open" in status["message"]
