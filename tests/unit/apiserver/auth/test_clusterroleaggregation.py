"""Aggregation of ClusterRoles."""

import asyncio
from typing import Any

import httpx
import pytest
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import eventually

from federation.apimachinery.clock import SystemClock
from federation.apiserver.auth.clusterroleaggregation import ClusterRoleAggregationController, aggregate_rules

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def rule(resource: str) -> dict[str, Any]:
    return {"verbs": ["get"], "apiGroups": [""], "resources": [resource]}


def role(name: str, *resources: str, label: str = "", sums: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"metadata": {"name": name}, "rules": [rule(resource) for resource in resources]}
    if label:
        made["metadata"]["labels"] = {label: "true"}
    if sums:
        made["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {sums: "true"}}]}
    return made


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ([], []),
        ([role("b", "pods", label="x"), role("a", "secrets", label="x")], ["secrets", "pods"]),
        ([role("a", "pods", label="x"), role("b", "pods", "nodes", label="x")], ["pods", "nodes"]),
        ([role("a", "pods", label="y"), role("b", "nodes")], []),
        ([role("a", "pods", label="x", sums="x")], ["pods"]),
    ],
)
def test_aggregated_rules_are_distinct_and_ordered_by_role_name(
    roles: list[dict[str, Any]], expected: list[str]
) -> None:
    own = role("sum", "left-over", label="x", sums="x")
    by_name = {entry["metadata"]["name"]: entry for entry in (own, *roles)}
    assert aggregate_rules(own, by_name) == [rule(resource) for resource in expected]


def test_a_role_without_aggregation_rule_is_ignored() -> None:
    assert aggregate_rules(role("a", "pods"), {}) is None
    assert aggregate_rules({**role("a"), "aggregationRule": {}}, {}) is None


async def test_settling_updates_nested_roles_once(parts: Parts, admin: httpx.AsyncClient) -> None:
    roles = [role("outer", sums="y"), role("inner", sums="x", label="y"), role("part", "pods", label="x")]
    for made in roles:
        await admin.post(ROLES, json=made)
    controller = ClusterRoleAggregationController(parts.registry, SystemClock())
    await controller.settle()
    for name in ("inner", "outer"):
        assert (await admin.get(f"{ROLES}/{name}")).json()["rules"] == [rule("pods")]
    before = await parts.registry.store.revision()
    await controller.settle()
    assert await parts.registry.store.revision() == before


async def test_aggregated_rules_follow_changes_of_their_roles(parts: Parts, admin: httpx.AsyncClient) -> None:
    for made in (role("all", sums="x"), role("outer", sums="y"), role("inner", sums="x", label="y")):
        await admin.post(ROLES, json=made)
    running = asyncio.create_task(ClusterRoleAggregationController(parts.registry, SystemClock()).run())

    async def resources(name: str) -> list[str]:
        rules = (await admin.get(f"{ROLES}/{name}")).json().get("rules") or []
        return [rule["resources"][0] for rule in rules]

    async def become(expected: list[str]) -> None:
        for name in ("all", "inner", "outer"):

            async def has_become(name: str = name) -> bool:
                return await resources(name) == expected

            await eventually(has_become)

    await admin.post(ROLES, json=role("part", "pods", label="x"))
    await become(["pods"])
    await admin.post(ROLES, json=role("more", "nodes", label="x"))
    await become(["nodes", "pods"])
    merge = {"content-type": "application/merge-patch+json"}
    await admin.patch(f"{ROLES}/part", json={"metadata": {"labels": None}}, headers=merge)
    await become(["nodes"])
    await admin.patch(f"{ROLES}/all", json={"rules": [rule("secrets")]}, headers=merge)
    await become(["nodes"])
    await admin.delete(f"{ROLES}/more")
    await become([])
    assert len((await admin.get(f"{ROLES}/view")).json()["rules"]) > 5
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
