"""Behaviour vectors: does the status of a federated object have to be written?"""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.vectors import case_id, load

from federation.dispatch.status import plan_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("case", load("sync_status"), ids=case_id)
def test_status_is_written_when_something_changed(case: dict[str, Any]) -> None:
    given = case["input"]
    planned = plan_status(
        given["status"] or {},
        generation=given["generation"],
        statuses=given["statusMap"],
        generations=given["generationMap"],
        reason=given["reason"],
        resources_updated=given["resourcesUpdated"],
        now=NOW,
    )
    assert (planned is not None) == case["expected"]["changed"]
