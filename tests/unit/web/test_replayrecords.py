"""Records of decisions over HTTP: pages, and who may read what everybody's decisions depended on."""

import base64

import httpx
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, RBAC, binding, grant, role, rule, user, wait_allowed

from federation.apiserver.auth.identity import Attributes, User
from federation.scheduling.replay.logentries import Chunk
from federation.scheduling.whatif.state import FEDERATED

URL = "/federation/v1/replay/records"
SINCE = {"since": "2026-01-01T00:00:00Z"}
START_US = 1_767_225_600_000_000


async def test_records_come_in_pages_from_the_beginning_of_their_segment(
    parts: Parts, admin: httpx.AsyncClient
) -> None:
    log = parts.journal.chunks
    for number in range(3):
        log.append(Chunk(START_US - 9, number + 1, START_US - 9 + number, START_US + number, 2, b"content"))
    first = (await admin.get(URL, params=SINCE)).json()
    assert first["items"][0] == {
        "segment": START_US - 9,
        "number": 1,
        "firstUs": START_US - 9,
        "lastUs": START_US,
        "decisions": 2,
        "content": base64.b64encode(b"content").decode(),
    }
    rest = (await admin.get(URL, params={**SINCE, **first["metadata"]})).json()
    assert [len(page["items"]) for page in (first, rest)] == [3, 0]
    assert rest["metadata"] == {}


async def test_a_bad_request_names_the_parameter(admin: httpx.AsyncClient) -> None:
    for query, words in (
        ({"since": "2026-01-01T00:00:00"}, "since: a time needs a time zone"),
        ({}, "since: Field required"),
        ({**SINCE, "continue": "x"}, "continue: "),
        ({**SINCE, "namespace": "default"}, "namespace: no such parameter"),
    ):
        answer = await admin.get(URL, params=query)
        assert (answer.status_code, words in answer.json()["message"]) == (400, True), answer.json()


async def test_the_path_or_the_objects_of_a_namespace_are_not_enough_to_read_records(
    parts: Parts, admin: httpx.AsyncClient
) -> None:
    """Whoever may get every path of the federation cannot read templates with it."""
    path_rule = {"verbs": ["get"], "nonResourceURLs": ["/federation/*"]}
    cluster_role = role("paths", path_rule)
    assert (await admin.post(f"{RBAC}/clusterroles", json=cluster_role)).status_code == 201
    bound = binding("paths", "ClusterRole", "paths", user("bob"))
    assert (await admin.post(f"{RBAC}/clusterrolebindings", json=bound)).status_code == 201
    await grant(admin, rule("list", FEDERATED[0].plural, group=FEDERATED[0].group), to=user("bob"))
    await wait_allowed(parts, User("bob"), Attributes("get", path="/federation/v1/decisions"))
    async with connect(parts.app, BOB) as bob:
        refused = await bob.get(URL, params=SINCE)
    assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")
    assert "at the cluster scope" in refused.json()["message"]
