"""Decisions between two reports of a member count each other's replicas as assumed."""

from collections.abc import AsyncIterator

import orjson
import pytest
from tests.support.schedule_harness import Harness, schedule_harness

from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    async with schedule_harness() as harness:
        for name in ("east", "west"):
            await harness.cluster(name)
            await report(harness, name, free_m=400)
        await harness.policy("anywhere", schedulingMode="Divide")
        await harness.policy("east", schedulingMode="Divide", placement=[{"cluster": "east"}])
        yield harness


async def report(harness: Harness, name: str, *, free_m: int) -> None:
    """Report this amount of free cpu for a member with one node."""
    free = {"cpu": f"{free_m}m", "memory": "1Gi", "pods": "100"}
    node_class = {"nodes": 1, "largest": {"cpu": "4", "memory": "1Gi"}, "free": [{"nodes": 1, "resources": free}]}
    sums = {"cpu": f"{free_m}m", "memory": "1Gi"}
    resources = {"allocatable": {"cpu": "4", "memory": "1Gi"}, "available": sums, "nodeClasses": [node_class]}
    await harness.patch(FEDERATED_CLUSTERS, name, {"status": {"resources": resources}}, subresource="status")
    await harness.idle()


async def test_assumed_replicas_are_subtracted_from_free_capacity(harness: Harness) -> None:
    await harness.deployment("first", replicas=4, policy="east")
    await harness.becomes({"east": 4}, "first")
    await harness.deployment("second", replicas=4, policy="anywhere")
    await harness.becomes({"west": 4}, "second")
    (decision,) = await harness.journaled("second")
    assert orjson.loads(decision.explanation)["division"]["room"] == {
        "replicas": {"east": 4, "west": 4},
        "promised": {"east": 4},
    }


async def test_a_report_replaces_assumed_replicas(harness: Harness) -> None:
    await harness.deployment("first", replicas=3, policy="east")
    await harness.becomes({"east": 3}, "first")
    await report(harness, "east", free_m=100)
    await harness.deployment("second", replicas=5, policy="anywhere")
    await harness.becomes({"east": 1, "west": 4}, "second")


async def test_a_deleted_object_releases_its_assumed_replicas(harness: Harness) -> None:
    await harness.deployment("first", replicas=4, policy="east")
    await harness.becomes({"east": 4}, "first")
    await harness.client.delete(FEDERATED_OBJECTS, "first-deployments.apps", "default")
    await harness.idle()
    await harness.deployment("second", replicas=8, policy="anywhere")
    await harness.becomes({"east": 4, "west": 4}, "second")
