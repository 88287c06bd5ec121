"""The violations in the status of a plan."""

from datetime import UTC, datetime
from typing import Any

import pytest

from federation.features.topologyspreadplan.rules.check import Violation
from federation.features.topologyspreadplan.rules.report import violations_to_json

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EARLIER = "2025-12-31T00:00:00Z"


@pytest.mark.parametrize(
    ("before", "since"),
    [
        (None, "2026-01-01T00:00:00Z"),
        ([{"rule": "V1", "domain": "z0", "since": EARLIER}], EARLIER),
        ([{"rule": "V1", "domain": "z0"}], "2026-01-01T00:00:00Z"),
        ([{"rule": "V1", "domain": "z1", "since": EARLIER}], "2026-01-01T00:00:00Z"),
        ([{"rule": "V2", "domain": "z0", "since": EARLIER}], "2026-01-01T00:00:00Z"),
    ],
)
def test_a_violation_keeps_the_time_of_its_first_observation(before: list[dict[str, Any]] | None, since: str) -> None:
    (found,) = violations_to_json([Violation("V1", "Error", "z0", "m", 2, 1)], before, NOW)
    assert found == {
        "rule": "V1", "severity": "Error", "message": "m", "count": 2, "limit": 1, "domain": "z0", "since": since,
    }  # fmt: skip
