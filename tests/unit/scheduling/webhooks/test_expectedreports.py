"""Webhooks of both protocols get clusters less the replicas that no member has reported yet."""

from typing import Any

import orjson
import pytest

from federation.scheduling.framework.assumed import Request
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.testing import NOW, a_divided_unit
from federation.scheduling.framework.types import SchedulingUnit
from federation.scheduling.snapshot import to_cluster
from federation.scheduling.webhooks.configuration import CLUSTER_FIELDS, WebhookOptions
from federation.scheduling.webhooks.expectedreports import expected_report
from federation.scheduling.webhooks.v1alpha1payload import cluster_bodies
from federation.scheduling.webhooks.v1beta1 import Webhook

AVAILABLE = {"cpu": "3900m", "memory": "8Gi", "pods": "0x", "nvidia.com/gpu": "-1"}
EAST = to_cluster({"metadata": {"name": "east"}, "status": {"resources": {"available": AVAILABLE}}})
WEBHOOK = Webhook(WebhookOptions("p", "v1beta1", {"replicas": "http://p/replicas"}, cluster_fields=CLUSTER_FIELDS))
POD: Request = (("cpu", 1500), ("memory", 1 << 30), ("nvidia.com/gpu", 1), ("pods", 1))


def a_unit_after(count: int) -> SchedulingUnit:
    return a_divided_unit(2, assumed={"east": {POD: count}} if count else {})


def available_of(cluster: Any) -> dict[str, str]:
    available: dict[str, str] = cluster["status"]["resources"]["available"]
    return available


def test_available_resources_are_reduced_and_never_below_what_was_reported_or_zero() -> None:
    assert expected_report(a_unit_after(0), EAST) is EAST.source
    after_two = {"cpu": "900m", "memory": "6Gi", "pods": "0x", "nvidia.com/gpu": "-1"}
    assert available_of(expected_report(a_unit_after(2), EAST)) == after_two
    assert available_of(expected_report(a_unit_after(3), EAST))["cpu"] == "0"
    assert expected_report(a_unit_after(3), EAST) is expected_report(a_unit_after(3), EAST)
    assert EAST.source["status"]["resources"]["available"] is AVAILABLE


def replicas_request(unit: SchedulingUnit) -> Any:
    (request,) = next(WEBHOOK.replicas_of_clusters(unit, (EAST,), CycleState(NOW)))
    return orjson.loads(request.body)["clusters"][0]["resources"]["available"]


@pytest.mark.parametrize("counts", [(0, 1, 2, 0), (2, 2, 1)])
def test_every_request_has_the_figures_of_its_own_decision(counts: tuple[int, ...]) -> None:
    for count in counts:
        unit = a_unit_after(count)
        wanted = f"{3900 - 1500 * count}m"
        assert replicas_request(unit)["cpu"] == wanted
        (body,) = cluster_bodies(unit, [EAST])
        assert available_of(orjson.loads(body)["cluster"])["cpu"] == wanted
