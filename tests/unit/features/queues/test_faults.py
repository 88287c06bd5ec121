"""An unexpected error in one job: the job waits with a reason, and the queues go on."""

from typing import Any

import pytest
from tests.unit.features.queues.test_queueledger import NOW_S, a_ledger, admitted, an_entry, started, used

from federation.apimachinery.errors import Forbidden
from federation.features.queues.rules.facts import Lack
from federation.features.queues.rules.faults import PER_ROUND_MAX, RETRY_S, JobFailed
from federation.features.queues.rules.queueledger import Ledger
from federation.features.queues.rules.queuestatus import compute_statuses

INTERNAL = "an internal error (TypeError), see the log of the host; it is tried again in minutes"
BROKEN: dict[str, dict[str, Any]] = {
    "while the round looks at it": {"limit_s": "an hour"},
    "while its facts are made": {"priority_classes": None},
}
"""Facts that no code of ours makes, and where they raise an error."""


def reasons(ledger: Ledger, now_s: float = NOW_S + 60) -> dict[str, str]:
    statuses = compute_statuses(ledger, ledger.decide(now_s), now_s)
    waiting = statuses.job_queues["team", "q"].get("waiting", ())
    return {line["name"]: line["waitsFor"] for line in waiting}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_the_others_start_and_the_broken_job_says_why_it_waits(broken: dict[str, Any]) -> None:
    ledger = a_ledger()
    for name in ("a", "b"):
        ledger.put(an_entry(name), NOW_S)
    ledger.put(an_entry("broken", created_s=-1.0, **broken), NOW_S)

    assert started(ledger) == ["team/a", "team/b"]
    assert reasons(ledger) == {"broken": INTERNAL}
    assert [fault.key for fault in ledger.faults.take_new()] == ["team/broken"]
    assert ledger.faults.take_new() == [], "it is logged once"


def test_a_job_that_waits_says_why_although_its_line_cannot_be_made() -> None:
    ledger = a_ledger(cores="24")
    ledger.put(admitted("runs"), NOW_S)
    ledger.put(an_entry("waits", created_s=1.0), NOW_S)
    ledger.put(an_entry("broken", kind={"not": "comparable"}, created_s=float("nan")), NOW_S)

    found = reasons(ledger)

    assert found["waits"].startswith("needs 24 cores")
    assert set(found) == {"waits", "broken"}


def test_a_running_job_that_is_set_aside_keeps_its_quota() -> None:
    ledger = a_ledger()
    ledger.put(admitted("broken", priority_classes=None), NOW_S)
    ledger.put(an_entry("a"), NOW_S)
    ledger.put(an_entry("b"), NOW_S)

    assert len(started(ledger)) == 1
    assert used(ledger) == "24"


def test_it_is_tried_again_when_it_changes_and_after_minutes() -> None:
    ledger = a_ledger()
    ledger.put(an_entry("job", limit_s="an hour"), NOW_S)
    assert started(ledger) == []

    ledger.put(an_entry("job"), NOW_S)
    assert started(ledger) == ["team/job"]

    ledger.record_fault("team/job", Forbidden("a webhook refuses it"))
    assert started(ledger, NOW_S) == []
    assert reasons(ledger, NOW_S + 1) == {"job": "its admission was not accepted: a webhook refuses it"}
    assert started(ledger, NOW_S + RETRY_S) == ["team/job"]


def test_an_error_of_ours_does_not_show_its_text_to_tenants() -> None:
    ledger = a_ledger()
    ledger.put(an_entry("job"), NOW_S)
    ledger.record_fault("team/job", KeyError("of-another-tenant"))

    assert "of-another-tenant" not in reasons(ledger)["job"]


def test_many_broken_jobs_are_set_aside_in_several_calls() -> None:
    ledger = a_ledger()
    for number in range(PER_ROUND_MAX + 2):
        ledger.put(an_entry(f"broken-{number:02}", limit_s="an hour", created_s=-1.0), NOW_S)
    ledger.put(an_entry("job"), NOW_S)

    with pytest.raises(JobFailed):
        ledger.decide(NOW_S)

    decisions = ledger.decide(NOW_S)
    assert list(decisions.admitted) == ["team/job"]
    assert {waits.lack for waits in decisions.waits.values()} == {Lack.PROBLEM}


def test_many_jobs_that_stay_broken_hold_no_other_one_when_they_are_tried_again() -> None:
    ledger = a_ledger()
    for number in range(3 * PER_ROUND_MAX):
        ledger.put(an_entry(f"broken-{number:02}", limit_s="an hour", created_s=-1.0), NOW_S)
    for _ in range(2):
        with pytest.raises(JobFailed):
            ledger.decide(NOW_S)
    ledger.decide(NOW_S)
    ledger.faults.take_new()

    for number in range(4):
        now_s = NOW_S + RETRY_S + number
        ledger.put(an_entry("job", created_s=number), now_s)
        assert started(ledger, now_s) == ["team/job"]
    assert len(ledger.faults.take_new()) == 2 * PER_ROUND_MAX, "a few are tried again in each call"
