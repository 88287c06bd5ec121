"""Attack: a user gets rights by writing roles and bindings, or creates objects without the permission to create."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.tenants import MERGE, RBAC, Tenants, rule, tenants

from federation.apimachinery.resources import Object
from federation.apiserver.store.interface import Entry
from federation.apiserver.store.memory import MemoryStore

RBAC_GROUP = "rbac.authorization.k8s.io"
ROLES, BINDINGS = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
JSON_PATCH = {"content-type": "application/json-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Tenants]:
    async with tenants(tmp_path) as served:
        yield served


def a_binding(name: str, kind: str, role: str, user: str = "administrator") -> Object:
    subject = {"kind": "User", "apiGroup": RBAC_GROUP, "name": user}
    reference = {"apiGroup": RBAC_GROUP, "kind": kind, "name": role}
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": reference,
        "subjects": [subject],
    }


class BusyStore(MemoryStore):
    """A store that lets other requests run before it answers, as a database does."""

    async def get(self, key: str) -> Entry | None:
        await asyncio.sleep(0)
        return await super().get(key)


async def test_a_patch_is_checked_on_the_state_that_it_changes(tmp_path: Path) -> None:
    """One request adds a verb while another exchanges the resource: the sum must be refused whatever the order."""
    async with tenants(tmp_path, store=BusyStore()) as host:
        await race(host)


async def race(host: Tenants) -> None:
    client = await host.client("administrator")
    harmless, read_only = rule("get", "configmaps", ""), rule("get", "resourcequotas", "")
    add_verb = [{"op": "replace", "path": "/rules/0/verbs", "value": ["create", "get"]}]
    exchange = {"rules": [read_only]}
    assert (await client.post(ROLES, json={"metadata": {"name": "mine"}, "rules": [harmless]})).status_code == 201

    async def send(patch: object, headers: dict[str, str], pause: int) -> None:
        for _ in range(pause):
            await asyncio.sleep(0)
        await client.patch(f"{ROLES}/mine", json=patch, headers=headers)

    for pause in range(-10, 10):
        reset = await client.patch(f"{ROLES}/mine", json={"rules": [harmless]}, headers=MERGE)
        assert reset.status_code == 200, reset.text
        await asyncio.gather(send(exchange, MERGE, max(-pause, 0)), send(add_verb, JSON_PATCH, max(pause, 0)))
        rules = (await client.get(f"{ROLES}/mine")).json()["rules"]
        assert rules != [{**read_only, "verbs": ["create", "get"]}], f"escalated with a pause of {pause}"


@pytest.mark.parametrize("kind", ["Role", "ClusterRole"])
async def test_a_binding_to_a_role_that_is_made_later_is_refused(host: Tenants, kind: str) -> None:
    client = await host.client("administrator")
    answer = await client.post(BINDINGS, json=a_binding("early", kind, "coming-soon"))
    assert answer.status_code == 404, answer.text
    assert "coming-soon" in answer.json()["message"]
    applied = await client.patch(
        f"{BINDINGS}/early?fieldManager=me", json=a_binding("early", kind, "coming-soon"), headers=APPLY
    )
    assert applied.status_code == 404, applied.text
    assert (await (await host.root()).post(BINDINGS, json=a_binding("early", kind, "coming-soon"))).status_code == 201


async def test_a_role_may_be_bound_right_after_its_creation(host: Tenants) -> None:
    """The authorizer's index follows by watch; `kubectl apply` of a role and its binding must not depend on it."""
    client = await host.client("administrator")
    role = {"metadata": {"name": "new"}, "rules": [rule("get", "configmaps", "")]}
    assert (await client.post(ROLES, json=role)).status_code == 201
    assert (await client.post(BINDINGS, json=a_binding("new", "Role", "new"))).status_code == 201


async def test_a_binding_to_a_brand_new_powerful_role_is_refused(host: Tenants) -> None:
    root, client = await host.root(), await host.client("administrator")
    for number in range(5):
        name = f"powerful-{number}"
        role = {"metadata": {"name": name}, "rules": [rule("*", "*", "*")]}
        assert (await root.post(f"{RBAC}/clusterroles", json=role)).status_code == 201
        answer = await client.post(BINDINGS, json=a_binding(name, "ClusterRole", name))
        assert answer.status_code == 403, answer.text


@pytest.mark.parametrize("query", ["", "&dryRun=All"])
async def test_apply_and_replace_create_only_with_the_permission_to_create(host: Tenants, query: str) -> None:
    await host.grant("somebody", rule("get,patch,update", "configmaps,roles", "*"))
    client = await host.client("somebody")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "smuggled"}, "data": {"a": "1"}}
    applied = await client.patch(f"{CONFIG_MAPS}/smuggled?fieldManager=me{query}", json=body, headers=APPLY)
    assert applied.status_code == 403, applied.text
    assert 'cannot create resource "configmaps"' in applied.json()["message"]
    role: Object = {"metadata": {"name": "smuggled"}, "rules": []}
    replaced = await client.put(f"{ROLES}/smuggled?fieldManager=me{query}", json=role)
    assert replaced.status_code == 403, replaced.text
    assert 'cannot create resource "roles"' in replaced.json()["message"]
    root = await host.root()
    assert (await root.get(f"{CONFIG_MAPS}/smuggled")).status_code == 404
    assert (await root.get(f"{ROLES}/smuggled")).status_code == 404
    known = {**body, "metadata": {"name": "known"}}
    applied = await root.patch(f"{CONFIG_MAPS}/known?fieldManager=me", json=known, headers=APPLY)
    assert applied.status_code == 201, applied.text
    changed = {**known, "data": {"a": "1", "b": "2"}}
    applied = await client.patch(f"{CONFIG_MAPS}/known?fieldManager=me{query}", json=changed, headers=APPLY)
    assert applied.status_code == 200, applied.text


async def test_a_named_permission_to_create_covers_an_apply(host: Tenants) -> None:
    named = {**rule("create,patch", "configmaps", ""), "resourceNames": ["allowed"]}
    await host.grant("somebody", named)
    client = await host.client("somebody")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "allowed"}}
    applied = await client.patch(f"{CONFIG_MAPS}/allowed?fieldManager=me", json=body, headers=APPLY)
    assert applied.status_code == 201, applied.text
