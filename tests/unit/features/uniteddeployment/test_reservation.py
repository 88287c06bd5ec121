"""Which pods are reserved, beside what the vectors say."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.apimachinery.clock import to_rfc3339
from federation.features.uniteddeployment.names import RESERVED_POD_LABEL
from federation.features.uniteddeployment.rules.reservation import Revision, decide_reservations
from federation.features.uniteddeployment.rules.strategy import Strategy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STRATEGY = Strategy(is_adaptive=True, reserves_pods=True, reschedule_after_s=30)
REVISION = Revision("r1", NOW - timedelta(seconds=60))


def a_pod(**metadata: Any) -> dict[str, Any]:
    created = to_rfc3339(NOW - timedelta(seconds=60))
    pending = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": created}
    metadata = {"name": "a", "creationTimestamp": created, **metadata}
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Pending", "conditions": [pending]}}


@pytest.mark.parametrize("labels", [{}, {"labels": None}, {"labels": {}}, {"labels": {RESERVED_POD_LABEL: "false"}}])
def test_a_pod_that_waits_too_long_is_reserved_whatever_labels_it_has(labels: dict[str, Any]) -> None:
    found = decide_reservations([], [a_pod(**labels)], REVISION, STRATEGY, NOW)
    assert (found.reserved, found.labels) == (1, {"a": "true"})
