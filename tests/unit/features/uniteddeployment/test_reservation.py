"""Which pods are reserved, beside what the vectors say."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.apimachinery.clock import to_rfc3339
from federation.features.uniteddeployment.names import RESERVED_POD_LABEL
from federation.features.uniteddeployment.rules.reservation import (
    Revision,
    SubsetReservation,
    decide_reservations,
    mark_scaled_up,
)
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


@pytest.mark.parametrize(
    ("reserved", "was_schedulable", "next_replicas", "is_marked"),
    [(0, False, 3, True), (0, False, 2, False), (0, True, 3, False), (1, False, 3, False), (1, True, 3, False)],
    ids=["recovered and larger", "not larger", "was schedulable", "has a reserved pod", "has one since now"],
)
def test_only_a_subset_that_has_recovered_and_grows_reserves_its_new_pods(
    reserved: int, was_schedulable: bool, next_replicas: int, is_marked: bool
) -> None:
    subset = SubsetReservation([], reserved, was_schedulable=was_schedulable)
    assert bool(mark_scaled_up(subset, 2, next_replicas, NOW)) is is_marked
