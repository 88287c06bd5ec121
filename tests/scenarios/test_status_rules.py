"""A custom kind gets the fields of its status on the host by the rules of its FederatedTypeConfig."""

from typing import Any

import pytest
from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, FEDERATED_OBJECTS, FEDERATED_TYPE_CONFIGS
from federation.apimachinery import conditions
from federation.apimachinery.resources import CRDS, Object, Resource
from federation.client.client import PatchType
from federation.controllers.statusaggregate.names import (
    REASON_STATUS_AGGREGATED,
    REASON_STATUS_REFUSED,
    REASON_STATUS_RULE_FAILED,
)

WIDGETS = Resource("example.com", "v1", "Widget", "widgets")
NAME = "widgets.example.com"
RULES = [
    {
        "path": "status.phase",
        "expression": "members.all(m, m.status.?phase.orValue('') == 'Up') ? 'Up' : 'Starting'",
    },
    {"path": "status.total", "expression": "members.map(m, int(m.status.?total.orValue(0))).sum()"},
]


def _definition() -> Object:
    status = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"phase": {"x-kubernetes-preserve-unknown-fields": True}, "total": {"type": "integer"}},
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object"}, "status": status}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
    }
    return {"apiVersion": CRDS.api_version, "kind": CRDS.kind, "metadata": {"name": NAME}, "spec": spec}


def _config(rules: list[Object]) -> Object:
    source = {"group": "example.com", "version": "v1", "kind": "Widget", "pluralName": "widgets", "scope": "Namespaced"}
    return {
        "apiVersion": FEDERATED_TYPE_CONFIGS.api_version,
        "kind": "FederatedTypeConfig",
        "metadata": {"name": NAME},
        "spec": {
            "sourceType": source,
            "controllers": [[names.GLOBAL_SCHEDULER], [names.OVERRIDE_CONTROLLER]],
            "statusAggregation": {"enabled": True, "rules": rules},
        },
    }


async def _prepare(world: World) -> None:
    kinds = [{"apiVersion": kind.api_version, "kind": kind.kind} for kind in (CRDS, WIDGETS)]
    policy = a_policy({}, name="all", resourceSelectors=kinds, schedulingMode="Duplicate")
    del policy["metadata"]["namespace"]
    await world.create(FEDERATED_TYPE_CONFIGS, _config(RULES))
    await world.create(CLUSTER_PROPAGATION_POLICIES, {**policy, "kind": "ClusterPropagationPolicy"})
    await world.create(CRDS, _definition())
    metadata = {"name": "one", "namespace": "default"}
    await world.create(WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {}})

    async def holders() -> set[str]:
        found = set()
        for name, member in world.members.items():
            if await member.find(CRDS, NAME, "") is not None:
                found |= {name} if await member.find(WIDGETS, "one") is not None else set()
        return found

    await world.until_equal(holders, {"east", "north"})


async def _report(world: World, cluster: str, **status: Any) -> None:
    body = {"status": status}
    admin = world.members[cluster].admin
    await admin.patch(WIDGETS, "one", body, patch_type=PatchType.MERGE, namespace="default", subresource="status")


async def _set_rules(world: World, rules: list[Object]) -> None:
    body = {"spec": {"statusAggregation": {"enabled": True, "rules": rules}}}
    await world.user.patch(FEDERATED_TYPE_CONFIGS, NAME, body, patch_type=PatchType.MERGE)


@pytest.mark.slow("the first world of its kind in a worker is made from nothing")
async def test_rules_compute_the_status_and_their_problems_are_a_condition() -> None:
    async with a_world(members=("east", "north")) as world:
        await _prepare(world)

        async def status() -> Any:
            found = (await world.user.get(WIDGETS, "one", "default")).get("status") or {}
            return found.get("phase"), found.get("total")

        async def condition() -> Any:
            (federated,) = [
                each
                for each in (await world.user.list(FEDERATED_OBJECTS, "default")).items
                if each["spec"]["template"]["kind"] == "Widget"
            ]
            found = conditions.find((federated.get("status") or {}).get("conditions"), names.STATUS_AGGREGATED) or {}
            return found.get("status"), found.get("reason"), "clusters [north]" in found.get("message", "")

        await _report(world, "east", phase="Up", total=2)
        await world.until_equal(status, ("Starting", 2))
        await _report(world, "north", phase="Up", total=3)
        await world.until_equal(status, ("Up", 5))
        assert await condition() == (None, None, False), "an object without problems has no condition"

        await _report(world, "north", phase={"not": "a text"}, total=4)
        await world.until_equal(status, ("Starting", 6))
        strict = {"path": "status.phase", "expression": "members.map(m, string(m.status.phase)).join(' ')"}
        await _set_rules(world, [strict, RULES[1]])
        await world.until_equal(condition, ("False", REASON_STATUS_RULE_FAILED, True))
        await _report(world, "north", phase="Up", total=1)
        await world.until_equal(status, ("Up Up", 3))
        await world.until_equal(condition, ("True", REASON_STATUS_AGGREGATED, False))

        wrong_type = {"path": "status.total", "expression": "'many'"}
        await _set_rules(world, [{**RULES[0], "expression": "'Odd'"}, wrong_type])
        await world.until_equal(condition, ("False", REASON_STATUS_REFUSED, False))
        assert await status() == ("Odd", 3), "the host's schema takes numbers only, and the other field is written"
        await _set_rules(world, RULES)
        await world.until_equal(status, ("Up", 3))
        await world.until_equal(condition, ("True", REASON_STATUS_AGGREGATED, False))
