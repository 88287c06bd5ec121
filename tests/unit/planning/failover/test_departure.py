"""Whether replicas may leave one cluster now."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.planning.changehold import Hold
from federation.planning.failover.departure import evicting_of, not_lost, stay_of
from federation.planning.failover.evictionrecord import StayReason
from federation.planning.failover.halts import HaltReason, halt_of
from federation.planning.failover.tolerance import FailoverMode, FailoverRules, Tolerance

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FREE = Tolerance(may_leave=True, grace_s=0.0)
RULES = FailoverRules()
HALT = Hold(HaltReason.MAJORITY, "most clusters are lost")


def _ago(seconds: float) -> str:
    return to_rfc3339(NOW - timedelta(seconds=seconds))


def _cluster(*keys: str, ready: str = "Unknown", added_s: float = 60, changed_s: float = 60) -> dict[str, Any]:
    times = {"lastTransitionTime": _ago(changed_s)}
    return {
        "metadata": {"name": "east"},
        "spec": {"taints": [{"key": key, "effect": "NoExecute", "timeAdded": _ago(added_s)} for key in keys]},
        "status": {"conditions": [{"type": "Joined", "status": "True"}, {"type": "Ready", "status": ready, **times}]},
    }


def _stay(cluster: dict[str, Any], tolerance: Tolerance = FREE, halt: Hold | None = None, **more: Any) -> str:
    evicting = evicting_of(cluster)
    assert evicting is not None
    found = stay_of(evicting, tolerance, more.pop("rules", RULES), halt, NOW, settle_s=15.0, **more)
    return str(found.reason) if found is not None else ""


LOST = _cluster(names.TAINT_UNREACHABLE)
DRAINED = _cluster(names.TAINT_DRAIN, ready="True")


def test_only_our_taints_empty_a_cluster() -> None:
    assert evicting_of(_cluster()) is None
    assert evicting_of(_cluster("maintenance")) is None
    taint = {"key": names.TAINT_UNREACHABLE, "effect": "NoSchedule"}
    assert evicting_of({**LOST, "spec": {"taints": [taint]}}) is None
    assert evicting_of({**LOST, "spec": None}) is None
    drained = evicting_of(_cluster(names.TAINT_UNREACHABLE, names.TAINT_DRAIN))
    assert drained is not None
    assert drained.is_drained


def _ruled(ready: str) -> dict[str, Any]:
    cluster = _cluster("sick", ready=ready)
    cluster["metadata"]["annotations"] = {names.RULED_TAINTS: "other:NoSchedule,sick:NoExecute"}
    return cluster


def _at_fault(*keys: str, **metadata: Any) -> dict[str, Any]:
    """Return a cluster that is not ready for a reason of ours, with NoExecute taints of an earlier loss or of rules."""
    cluster = _cluster(*keys, ready="False")
    cluster["metadata"] |= metadata
    cluster["status"]["conditions"][1]["reason"] = "CredentialsRejected"
    return cluster


@pytest.mark.parametrize("key", [names.TAINT_UNREACHABLE, names.TAINT_NOT_READY, "sick"])
def test_nothing_leaves_a_cluster_for_a_fault_of_ours_whatever_taints_it_has(key: str) -> None:
    cluster = _at_fault(key, annotations={names.RULED_TAINTS: "sick:NoExecute"})
    assert _stay(cluster) == StayReason.HALTED
    evicting = evicting_of(cluster)
    assert evicting is not None
    assert not evicting.is_lost
    assert "(CredentialsRejected); to empty it: fedctl drain east" in not_lost(evicting)


def test_a_drain_empties_a_cluster_also_if_our_credentials_are_at_fault() -> None:
    cluster = _at_fault(names.TAINT_DRAIN, names.TAINT_NOT_READY)
    assert _stay(cluster) == ""
    assert _stay(cluster, blocked="a budget") == StayReason.BUDGET


def test_a_taint_of_a_rule_drains_a_ready_cluster_and_a_halt_holds_it_for_one_that_is_not() -> None:
    drained, lost = evicting_of(_ruled("True")), evicting_of(_ruled("Unknown"))
    assert drained is not None
    assert drained.is_drained
    assert lost is not None
    assert not lost.is_drained
    assert not _stay(_ruled("True"), halt=HALT)
    assert _stay(_ruled("True"), blocked="a budget") == StayReason.BUDGET
    assert _stay(_ruled("Unknown"), halt=HALT) == StayReason.HALTED


@pytest.mark.parametrize("added", [None, "", "yesterday"])
def test_a_taint_without_a_time_is_older_than_any_grace_time(added: str | None) -> None:
    cluster = {**LOST, "spec": {"taints": [{"key": names.TAINT_DRAIN, "effect": "NoExecute", "timeAdded": added}]}}
    assert not _stay(cluster, Tolerance(may_leave=True, grace_s=600.0))


def test_replicas_leave_a_lost_cluster_and_a_drained_one() -> None:
    assert not _stay(LOST)
    assert not _stay(DRAINED)


def test_the_grace_time_of_a_drained_cluster_that_is_lost_begins_with_the_loss() -> None:
    cluster = _cluster(names.TAINT_DRAIN, names.TAINT_UNREACHABLE, added_s=60)
    cluster["spec"]["taints"][0]["timeAdded"] = _ago(3600)
    graceful = Tolerance(may_leave=True, grace_s=600.0)
    assert _stay(cluster, graceful) == StayReason.GRACE
    cluster["spec"]["taints"][1]["timeAdded"] = _ago(601)
    assert not _stay(cluster, graceful)


def test_a_halt_keeps_what_is_lost_and_not_what_is_drained() -> None:
    assert _stay(LOST, halt=HALT) == StayReason.HALTED
    assert not _stay(DRAINED, halt=HALT)


def test_a_budget_keeps_what_is_drained() -> None:
    assert _stay(DRAINED, blocked="all allows 0") == StayReason.BUDGET
    assert not _stay(LOST, blocked="all allows 0")


def test_nothing_leaves_a_cluster_that_is_ready_again() -> None:
    assert _stay(_cluster(names.TAINT_UNREACHABLE, ready="True")) == StayReason.READY


def test_nothing_leaves_until_further_losses_would_be_known() -> None:
    assert _stay(_cluster(names.TAINT_UNREACHABLE, changed_s=10)) == StayReason.HALTED
    assert not _stay(_cluster(names.TAINT_UNREACHABLE, changed_s=15))


def test_a_grace_time_counts_from_the_taint_and_only_where_pods_may_still_run() -> None:
    patient = Tolerance(may_leave=True, grace_s=90.0, state="state")
    assert _stay(LOST, patient) == StayReason.GRACE
    assert not _stay(_cluster(names.TAINT_UNREACHABLE, added_s=90), patient)
    assert not _stay(DRAINED, patient)
    assert _stay(_cluster(names.TAINT_DRAIN), patient) == StayReason.GRACE


@pytest.mark.parametrize(
    ("tolerance", "rules", "expected"),
    [
        (Tolerance(False, 0.0, "a claim stays", is_kept=True), FailoverRules(FailoverMode.AUTO), StayReason.KEPT),
        (Tolerance(False, 0.0), FailoverRules(FailoverMode.NEVER), StayReason.NEVER),
        (Tolerance(False, 0.0, "it has state"), RULES, StayReason.STATE),
    ],
    ids=["kind", "policy", "state"],
)
def test_what_may_not_leave_stays_in_drained_clusters_too(
    tolerance: Tolerance, rules: FailoverRules, expected: StayReason
) -> None:
    assert _stay(DRAINED, tolerance, rules=rules) == expected
    assert _stay(LOST, tolerance, rules=rules) == expected


def test_the_condition_of_a_cluster_says_why_nothing_leaves() -> None:
    condition = {"type": names.EVICTION_ALLOWED, "status": "False", "message": "most clusters are lost"}
    assert halt_of({"status": {"conditions": [condition]}}) == "most clusters are lost"
    assert not halt_of({"status": {"conditions": [{**condition, "status": "True"}]}})
    assert not halt_of({"status": None})
