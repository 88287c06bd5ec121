"""Times of conditions that are merged from members."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.apimachinery.clock import to_rfc3339
from federation.planning.aggregation.context import CLOCKS_DIFFER_S, keep_condition_times

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = to_rfc3339(NOW)
EARLIER = to_rfc3339(NOW - timedelta(hours=1))
TOO_LATE = to_rfc3339(NOW + timedelta(seconds=CLOCKS_DIFFER_S + 60))
WANTED = {"type": "Available", "status": "True", "reason": "R", "message": "m"}


@pytest.mark.parametrize(
    ("change", "transition", "update"),
    [
        pytest.param({}, EARLIER, EARLIER, id="unchanged"),
        pytest.param({"message": "other"}, EARLIER, STAMP, id="another message"),
        pytest.param({"reason": "Other"}, EARLIER, STAMP, id="another reason"),
        pytest.param({"status": "False"}, STAMP, STAMP, id="another status"),
        pytest.param({"type": "Other"}, STAMP, STAMP, id="new"),
        pytest.param({"lastUpdateTime": None}, EARLIER, STAMP, id="no time of update"),
        pytest.param({"lastTransitionTime": TOO_LATE}, STAMP, STAMP, id="a clock that was ahead"),
    ],
)
def test_times_change_with_what_they_are_about(change: dict[str, Any], transition: str, update: str) -> None:
    before = {**WANTED, "lastTransitionTime": EARLIER, "lastUpdateTime": EARLIER, **change}
    found = keep_condition_times([before], [WANTED], NOW, update_field="lastUpdateTime")
    assert found == [{**WANTED, "lastTransitionTime": transition, "lastUpdateTime": update}]


def test_a_kind_with_one_time_gets_no_second() -> None:
    assert keep_condition_times(None, [WANTED], NOW) == [{**WANTED, "lastTransitionTime": STAMP}]
