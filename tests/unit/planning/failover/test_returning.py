"""Replicas that may return to a cluster: when, and how many at a time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.planning.failover.evictionrecord import EvictionRecord
from federation.planning.failover.returning import Returns, may_return, plan_returns
from federation.planning.failover.tolerance import Returning

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_cluster(*taints: str, ready: str = "True", for_s: float = 300.0, joined: bool = True) -> dict[str, Any]:
    since = to_rfc3339(NOW - timedelta(seconds=for_s))
    found = [{"type": names.CLUSTER_READY, "status": ready, "lastTransitionTime": since}]
    if joined:
        found.append({"type": names.CLUSTER_JOINED, "status": "True"})
    spec = {"taints": [{"key": key} for key in taints]}
    return {"metadata": {"name": "east"}, "spec": spec, "status": {"conditions": found}}


def _plan(cluster: dict[str, Any] | None, *, left: int = 5, returned_s: float | None = None, **more: Any) -> Returns:
    returned_at = None if returned_s is None else NOW - timedelta(seconds=returned_s)
    record = EvictionRecord(left={"east": left}, returned_at=returned_at)
    departed = more.pop("departed", frozenset())
    options = {"batch": 3, "stable_s": 300.0, "interval_s": 60.0, **more}
    return plan_returns(record, lambda name: cluster if name == "east" else None, departed, NOW, **options)


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (None, Returns({})),
        (a_cluster(), Returns({"east": 3})),
        (a_cluster(for_s=299), Returns({"east": 0}, 1.0)),
        (a_cluster(ready="False"), Returns({"east": 0})),
        (a_cluster(joined=False), Returns({"east": 0})),
        (a_cluster(names.TAINT_DRAIN), Returns({"east": 0})),
        (a_cluster("other", names.TAINT_UNREACHABLE), Returns({"east": 0})),
        (a_cluster("other"), Returns({"east": 3})),
    ],
    ids=["gone", "stable", "not yet", "not ready", "not joined", "drained", "unreachable", "another taint"],
)
def test_a_cluster_must_be_stable_and_without_our_taints(cluster: dict[str, Any] | None, expected: Returns) -> None:
    assert _plan(cluster) == expected


def test_nothing_returns_while_a_rule_taints_the_cluster() -> None:
    cluster = a_cluster("sick")
    assert _plan(cluster) == Returns({"east": 3}), "the scheduler judges taints of people"
    cluster["metadata"]["annotations"] = {names.RULED_TAINTS: "sick:"}
    assert _plan(cluster) == Returns({"east": 0})


def test_replicas_return_in_batches_and_only_after_the_old_copy_is_gone() -> None:
    assert _plan(a_cluster(), left=2) == Returns({"east": 2})
    assert _plan(a_cluster(), returned_s=60) == Returns({"east": 3})
    assert _plan(a_cluster(), returned_s=59) == Returns({"east": 0}, 1.0)
    assert _plan(a_cluster(for_s=290), returned_s=59) == Returns({"east": 0}, 10.0)
    assert _plan(a_cluster(), departed=frozenset({"east"})) == Returns({"east": 0})
    # Times of a clock that was ahead by a year.
    assert _plan(a_cluster(), returned_s=-31_536_000) == Returns({"east": 3})
    assert _plan(a_cluster(for_s=-31_536_000)) == Returns({"east": 0}, 300.0)


@pytest.mark.parametrize(
    ("returning", "has_state", "clusters", "clusters_max", "may"),
    [
        (None, False, 1, 1, False),  # it would leave the cluster in which it runs
        (None, False, 1, 2, True),
        (None, False, 2, None, True),
        (None, True, 1, 1, True),  # its data is at home
        (Returning.ALWAYS, False, 1, 1, True),
        (Returning.NEVER, True, 1, None, False),
    ],
)
def test_a_return_takes_no_place_from_a_live_cluster_unless_the_policy_says_so(
    *, returning: Returning | None, has_state: bool, clusters: int, clusters_max: int | None, may: bool
) -> None:
    assert may_return(returning, has_state=has_state, clusters=clusters, clusters_max=clusters_max) is may
