"""The freezes and suspensions that an object waits for."""

from typing import Any

import pytest

from federation.planning.diagnosis.holdingrules import holding_rules

FROZEN = "ChangeFreeze sale holds until 2026-01-01T00:00:00Z: ask ops"
SUSPENDED = "DeliverySuspension default/disk holds until it is deleted: copies (owner: me)"


def an_entry(status: str, message: str) -> dict[str, str]:
    return {"cluster": "east", "status": status, "message": message}


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ({}, set()),
        ({"clusters": [an_entry("WaitingForUpdate", FROZEN)]}, {"ChangeFreeze/sale"}),
        ({"clusters": [an_entry("DeliverySuspended", SUSPENDED)]}, {"DeliverySuspension/default/disk"}),
        ({"clusters": [an_entry("OK", FROZEN), an_entry("WaitingForUpdate", "waits for replicas")]}, set()),
        ({"conditions": [{"type": "Scheduled", "reason": "Frozen", "message": FROZEN}]}, {"ChangeFreeze/sale"}),
        ({"conditions": [{"type": "Scheduled", "reason": "Held", "message": FROZEN}]}, set()),
        (
            {"clusters": [an_entry("DeliverySuspended", "ClusterDeliverySuspension west is malformed: x")] * 2},
            {"ClusterDeliverySuspension/west"},
        ),
    ],
)
def test_it_is_read_from_statuses_and_the_condition(status: Any, found: set[str]) -> None:
    assert holding_rules({"status": status}) == found
