"""Attack: a tenant approves what the guard holds, or somebody approves in another's name."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.manifests import a_deployment
from tests.support.tenants import MERGE, OURS, Tenants, rule, tenants

from federation.api import names
from federation.api.federatedtype import default_type_configs, from_config
from federation.api.resources import PLACEMENT_HOLDS
from federation.apimachinery.resources import Object
from federation.client.local import LocalClient
from federation.planning.federatedobject import builder
from federation.planning.guard.record import held_moves, past_move

HOLDS = f"{OURS}/placementholds"
HOLD: Object = {
    "apiVersion": PLACEMENT_HOLDS.api_version,
    "kind": "PlacementHold",
    "metadata": {"name": "web-1"},
    "spec": {"cause": "ClusterPropagationPolicy web", "count": 50, "objects": ["Deployment default/web"]},
}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Tenants]:
    async with tenants(tmp_path) as served:
        await LocalClient(served.parts.registry).create(PLACEMENT_HOLDS, HOLD)
        yield served


def _approval(reason: str = "planned", **more: str) -> Object:
    return {"spec": {"approval": {"reason": reason, **more}}}


@pytest.mark.parametrize("user", ["viewer", "editor", "administrator"])
async def test_a_tenant_cannot_approve_read_create_or_delete_a_hold(host: Tenants, user: str) -> None:
    client = await host.client(user)
    answers = [
        await client.patch(f"{HOLDS}/web-1", json=_approval(), headers=MERGE),
        await client.get(f"{HOLDS}/web-1"),
        await client.post(HOLDS, json=HOLD),
        await client.delete(f"{HOLDS}/web-1"),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4


async def test_the_api_server_records_who_approved_and_when_and_the_user_cannot_forge_it(host: Tenants) -> None:
    await host.grant("operator", rule("get,patch,update", "placementholds"), namespace="")
    client = await host.client("operator")
    forged = _approval(by="somebody", at="2999-01-01T00:00:00Z")
    answer = await client.patch(f"{HOLDS}/web-1", json=forged, headers=MERGE)
    assert answer.status_code == 200, answer.text
    approval = answer.json()["spec"]["approval"]
    assert (approval["by"], approval["reason"]) == ("operator", "planned")
    assert not approval["at"].startswith("2999")

    root = await host.root()
    for later in (_approval("another"), {"spec": {"approval": None}}, _approval(by="root")):
        answer = await root.patch(f"{HOLDS}/web-1", json=later, headers=MERGE)
        stored = (await root.get(f"{HOLDS}/web-1")).json()
        assert stored["spec"]["approval"] == approval, answer.text


@pytest.mark.parametrize("reason", ["", "  "])
async def test_an_approval_needs_a_reason(host: Tenants, reason: str) -> None:
    answer = await (await host.root()).patch(f"{HOLDS}/web-1", json=_approval(reason), headers=MERGE)
    assert answer.status_code == 422, answer.text
    assert answer.json()["details"]["causes"][0]["field"] == "spec.approval.reason"


async def test_an_administrator_changes_nothing_but_the_approval(host: Tenants) -> None:
    root = await host.root()
    assert (await root.post(HOLDS, json={**HOLD, "metadata": {"name": "mine"}})).status_code == 403
    answer = await root.patch(f"{HOLDS}/web-1", json={"spec": {"count": 1}}, headers=MERGE)
    assert answer.status_code == 403, answer.text
    labelled = await root.patch(f"{HOLDS}/web-1", json={"metadata": {"labels": {"team": "a"}}}, headers=MERGE)
    assert labelled.status_code == 200, labelled.text


def test_a_user_cannot_forge_the_guards_records_on_the_federated_object() -> None:
    type_ = next(
        from_config(config) for config in default_type_configs() if config["spec"]["sourceType"]["kind"] == "Deployment"
    )
    source = a_deployment("web")
    source["metadata"] |= {
        "uid": "u1",
        "annotations": {
            names.HELD_PLACEMENT: '{"cause":"ClusterPropagationPolicy web","from":["east"],"hold":"old","since":"0"}',
            names.HELD_FOLLOWING: '{"cause":"Following shop/Secret","from":["east"],"hold":"old","since":"0"}',
            names.HELD_OVERRIDES: '{"cause":"OverridePolicy shop/web","from":["east"],"hold":"old","since":"0"}',
            names.PREVIOUS_PLACEMENT: '{"at":"2026-01-01T00:00:00Z","causes":[],"placement":{}}',
        },
    }
    federated = builder.build(source, type_)
    assert held_moves(federated) == []
    assert past_move(federated) is None
