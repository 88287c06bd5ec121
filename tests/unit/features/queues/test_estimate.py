"""What users see of queues: when waiting jobs are expected to start, and the use of the quota."""

import pytest

from federation.features.queues.rules.estimate import Running, estimate_starts, expected_end
from federation.features.queues.screens import to_fleet_row

NOW = 1_000.0


@pytest.mark.parametrize(
    ("limit_s", "mean_s", "end"),
    [
        (None, None, None),
        (100.0, None, NOW + 60),
        (None, 50.0, NOW + 10),
        (100.0, 50.0, NOW + 10),
        (30.0, None, NOW + 4),
    ],
    ids=["nothing known", "its limit", "the mean", "the earlier of both", "late: a tenth of its time later"],
)
def test_a_job_is_expected_to_end(limit_s: float | None, mean_s: float | None, end: float | None) -> None:
    assert expected_end(NOW - 40, limit_s, mean_s, NOW) == end


def test_jobs_start_in_their_order_as_running_ones_end() -> None:
    running = [Running(NOW - 10, 30.0, 0.5), Running(NOW, 50.0, 0.5)]
    assert estimate_starts(running, [0.5, 0.25, 0.25], None, NOW) == [NOW + 20, NOW + 50, NOW + 50]


def test_jobs_beyond_those_that_run_start_generations_later_or_nobody_knows() -> None:
    running = [Running(NOW, 50.0, 1.0)]
    assert estimate_starts(running, [1.0, 1.0], None, NOW) == [NOW + 50, None]
    assert estimate_starts(running, [1.0, 1.0, 1.0], 100.0, NOW) == [NOW + 50, NOW + 150, NOW + 250]


def test_what_fits_now_starts_now() -> None:
    assert estimate_starts([], [0.5, 0.5], None, NOW) == [NOW, NOW]


def test_the_use_of_a_flavor_is_a_part_of_its_quota() -> None:
    line = {"flavor": "any", "resource": "cpu", "nominalQuota": "8", "used": "6500m"}
    row = to_fleet_row({"spec": {"cohort": "lab"}, "status": {"pending": 2, "usage": [line]}})
    assert (row["cohort"], row["pending"], row["usage"][0]["percent"]) == ("lab", 2, 81)


def test_a_queue_without_a_status_or_quota_is_shown_too() -> None:
    line = {"flavor": "any", "resource": "cpu", "nominalQuota": "0", "used": "0"}
    assert to_fleet_row({})["usage"] == []
    assert to_fleet_row({"status": {"usage": [line]}})["usage"][0]["percent"] == 0


def test_nothing_starts_behind_a_job_whose_end_nobody_knows_although_others_are_short() -> None:
    lost = Running(NOW - 600, None, 0.9, has_end=False)
    assert estimate_starts([lost], [0.1, 0.5], 2.0, NOW) == [NOW, NOW + 2.0 * (0.6 - 0.1) / 0.1]
