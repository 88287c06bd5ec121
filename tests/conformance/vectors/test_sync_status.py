"""Behaviour vectors: does the status of a federated object have to be written?"""

from datetime import UTC, datetime
from typing import Any

from tests.support.vectors import each_case, filled, load

from federation.delivery.rules.status import plan_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@each_case(load("sync_status"))
def test_status_is_written_when_something_changed(case: dict[str, Any]) -> None:
    given = filled(
        case["input"], status={}, generation=0, statusMap={}, generationMap={}, reason="", resourcesUpdated=False
    )
    planned = plan_status(
        given["status"],
        generation=given["generation"],
        statuses=given["statusMap"],
        generations=given["generationMap"],
        reason=given["reason"],
        resources_updated=given["resourcesUpdated"],
        now=NOW,
    )
    assert (planned is not None) == bool(case["expected"].get("changed"))
