"""The table of the fleet's quota in the web UI."""

from federation.features.queues.screens import to_fleet_row


def test_the_use_of_a_flavor_is_a_part_of_its_quota() -> None:
    line = {"flavor": "any", "resource": "cpu", "nominalQuota": "8", "used": "6500m"}
    row = to_fleet_row({"spec": {"cohort": "lab"}, "status": {"pending": 2, "usage": [line]}})
    assert (row["cohort"], row["pending"], row["usage"][0]["percent"]) == ("lab", 2, 81)


def test_a_queue_without_a_status_or_quota_is_shown_too() -> None:
    line = {"flavor": "any", "resource": "cpu", "nominalQuota": "0", "used": "0"}
    assert to_fleet_row({})["usage"] == []
    assert to_fleet_row({"status": {"usage": [line]}})["usage"][0]["percent"] == 0
