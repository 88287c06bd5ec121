"""Entries of "Needs attention": one for each cause."""

from typing import Any

import pytest

from federation.web.ui.attention import is_stuck, to_entries
from federation.web.ui.clustercards import Concern

SILENT = Concern("west", "Not ready", "connection refused")


def a_cause(attention: str, subject: str, count: int = 3, **more: Any) -> dict[str, Any]:
    found = {"key": f"{attention}:{subject}", "attention": attention, "subject": subject, "title": subject}
    return {**found, "text": "no quota", "count": count, "samples": [], **more}


def a_rollout(state: str, *, is_paused: bool = False) -> dict[str, Any]:
    conditions = [{"type": "Paused", "status": "True" if is_paused else "False", "message": "wave canary is empty"}]
    return {
        "metadata": {"namespace": "shop", "name": "web-deployments.apps"},
        "spec": {"targetRef": {"kind": "Deployment", "name": "web"}},
        "status": {"state": state, "conditions": conditions},
    }


def entries(*causes: dict[str, Any], **more: Any) -> Any:
    given = {"concerns": [], "holds": {}, "rollouts": (), "pod_reason": "", "with_others": True, **more}
    return to_entries(causes, **given)


def test_a_dead_cluster_is_one_entry_with_its_reason_and_the_number_of_its_objects() -> None:
    (entry,) = entries(a_cause("stale", "west", 53), concerns=[SILENT])
    assert (entry.badge, entry.title, entry.text, entry.count) == ("Does not answer", "west", "connection refused", 53)
    (alone,) = entries(concerns=[SILENT])
    assert (alone.badge, alone.title, alone.count) == ("Not ready", "west", 0)


def test_a_second_concern_about_the_same_cluster_is_not_lost() -> None:
    halted = Concern("west", "Failover halts", "more than half of the clusters are lost")
    assert {entry.badge for entry in entries(a_cause("stale", "west"), concerns=[halted, SILENT])} == {
        "Does not answer",
        "Failover halts",
    }


def test_a_hold_says_what_waits() -> None:
    spec = {"cause": "Deletion PersistentVolumeClaim data", "count": 11}
    (entry,) = entries(a_cause("held", "h1", 11), holds={"h1": {"spec": spec}})
    assert (entry.href, entry.count) == ("/ui/holds/h1", 11)
    assert [entry.href for entry in entries(holds={"h1": {"spec": spec}})] == ["/ui/holds/h1"]


def test_workloads_that_are_not_ready_name_what_their_pods_wait_for() -> None:
    (entry,) = entries(a_cause("not-ready", "replicas do not become ready"), pod_reason="Insufficient cpu")
    assert entry.title == "Insufficient cpu"


def test_refusals_come_before_what_waits_and_many_objects_before_few() -> None:
    found = entries(a_cause("held", "h", 99), a_cause("not-delivered", "b", 1), a_cause("not-placed", "a", 5))
    assert [entry.title for entry in found] == ["a", "b", "h"]


@pytest.mark.parametrize(
    ("rollout", "expected"),
    [
        (a_rollout("Failed"), True),
        (a_rollout("Progressing"), False),
        (a_rollout("Progressing", is_paused=True), True),
        (a_rollout("Complete"), False),
        ({"metadata": {}}, False),
    ],
)
def test_a_rollout_that_waits_for_somebody_is_stuck(rollout: dict[str, Any], expected: bool) -> None:
    assert is_stuck(rollout) is expected


def test_a_stuck_rollout_leads_to_its_page_and_says_why() -> None:
    (entry,) = entries(rollouts=[a_rollout("Progressing", is_paused=True), a_rollout("Complete")])
    assert (entry.href, entry.text) == ("/ui/rollouts/shop/web-deployments.apps", "wave canary is empty")
    assert entries(rollouts=[a_rollout("Failed")], with_others=False) == []
