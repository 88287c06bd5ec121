"""The table of tenancy is current, and the API server answers each of its cells as it says, in and beyond a namespace."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.tenants import MERGE, Tenants, tenants
from tools.generate_tenancy import (
    CLUSTER,
    CONTAINED,
    OTHER,
    OWN,
    PARTIES,
    PROJECT,
    REACHES,
    Kind,
    kinds,
    main,
    name_of,
    project,
    rights,
    scopes,
    verbs_in,
)

from federation.api import agents
from federation.apimachinery.resources import Object
from federation.features.projects.rules import made_by

ATTACKS = Path(__file__).parent
REFUSED = (401, 403)


def test_the_page_is_current() -> None:
    assert main(["--check"]) == 0, "run make generate"


def test_what_tenants_write_is_reviewed_for_its_effect_on_others() -> None:
    """A kind that a role in a namespace may write is listed with its effect beyond the namespace, or as without one."""
    writes = {"create", "update", "patch", "delete", "deletecollection"}
    written = {
        kind.title
        for (_, kind, namespace), verbs in rights().items()
        if namespace == OWN and verbs & writes and not kind.subresource
    }
    reaching = {each for reach in REACHES for each in reach.kinds}
    assert written - reaching - set(CONTAINED) == set(), "say in tools/generate_tenancy.py what it does to others"
    assert (reaching | set(CONTAINED)) - written == set(), "no tenant writes it"
    assert not reaching & set(CONTAINED)
    assert [reach.test for reach in REACHES if not (ATTACKS / reach.test).is_file()] == []


def test_no_party_writes_anything_beyond_its_namespace() -> None:
    """The review of the table in one place: reading the own project is all."""
    beyond = {
        (party, kind.plural): verbs
        for (party, kind, namespace), verbs in rights().items()
        if namespace == OTHER and verbs
    }
    reading = frozenset(("get", "list", "watch"))
    assert beyond == {("project", "federatedclusters"): reading, ("project", "projects"): reading}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Tenants]:
    async with tenants(tmp_path) as served:
        root = await served.root()
        for namespace in (OWN, OTHER):
            body = {"metadata": {"name": namespace}}
            assert (await root.post("/api/v1/namespaces", json=body)).status_code == 201
        yield served


async def client_of(host: Tenants, party: str) -> httpx.AsyncClient:
    """Return a client of a party with the rights that it gets."""
    if party == "member":
        return await host.client("")
    if party == "agent":
        return await host.client(agents.agent_user("some-uid"))
    if party != "project":
        await host.bind(party, party, namespace=OWN)
        return await host.client(party)
    root = await host.root()
    for made in made_by(project(), [OWN], [CLUSTER]):
        if made.field == "spec.members" or made.resource.plural == "clusterroles":
            answer = await root.post(made.resource.path(made.obj["metadata"].get("namespace", "")), json=made.obj)
            assert answer.status_code == 201, answer.text
    bound = {(OWN, f"project-{PROJECT}-edit"), ("", f"federation:project:{PROJECT}")}
    await host.until(lambda: bound <= set(host.parts.authorizer._bindings))  # no public view of the cache
    return await host.client("project")


async def send(client: httpx.AsyncClient, kind: Kind, verb: str, namespace: str) -> int:
    """Send the request of a cell; the object does not exist, so an allowed one is answered with anything but 403."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    where = f"/namespaces/{namespace}" if kind.is_namespaced else ""
    collection, name = f"{root}{where}/{kind.plural}", name_of(kind, namespace)
    item = f"{collection}/{name}{'/' + kind.subresource if kind.subresource else ''}"
    body: Object = {"metadata": {"name": name}}
    dry: dict[str, Any] = {"params": {"dryRun": "All"}}
    requests: dict[str, tuple[str, str, dict[str, Any]]] = {
        "get": ("GET", item, {}),
        "list": ("GET", collection, {"params": {"fieldSelector": f"metadata.name={name}"}}),
        "watch": ("GET", collection, {"params": {"watch": "1", "timeoutSeconds": "1"}}),
        "create": ("POST", item if kind.subresource else collection, {"json": body, **dry}),
        "update": ("PUT", item, {"json": body, **dry}),
        "patch": ("PATCH", item, {"json": {}, "headers": MERGE, **dry}),
        "delete": ("DELETE", item, dry),
        "deletecollection": ("DELETE", collection, dry),
    }
    method, path, more = requests[verb]
    return (await client.request(method, path, **more)).status_code


@pytest.mark.slow("a request for each kind, verb and namespace")
@pytest.mark.parametrize("party", PARTIES)
async def test_the_server_answers_as_the_table_says(host: Tenants, party: str) -> None:
    client, table, wrong = await client_of(host, party), rights(), []
    for kind in kinds():
        for namespace in scopes(kind):
            allowed = table[party, kind, namespace]
            for verb in verbs_in(kind, namespace):
                if verb == "watch" and verb in allowed:
                    continue  # it does not end; who may list may watch
                code = await send(client, kind, verb, namespace)
                if (code in REFUSED) is (verb in allowed):
                    wrong.append(f"{verb} {kind.title} in {namespace}: {code}")
    assert not wrong
