"""Which ReplicaSet of a Deployment counts, and which of its pods."""

from datetime import UTC, datetime, timedelta

import pytest

from federation.apimachinery.resources import Object
from federation.planning.automigration.podanalysis import count_pods, count_replica_set, has_scheduling_changed
from federation.planning.automigration.replicasets import newest_replica_set, slim_replica_set, template_hash

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_replica_set(name: str, labels: dict[str, str], created: str) -> Object:
    metadata = {"name": name, "namespace": "n", "uid": name, "creationTimestamp": created}
    return slim_replica_set({"metadata": metadata, "spec": {"template": {"metadata": {"labels": labels}}}})


def test_the_newest_replica_set_is_the_one_with_the_deployments_template() -> None:
    deployment = {"metadata": {"name": "web"}, "spec": {"template": {"metadata": {"labels": {"app": "2"}}}}}
    old = a_replica_set("old", {"app": "1", "pod-template-hash": "x"}, "2026-01-02T00:00:00Z")
    new = a_replica_set("new", {"app": "2", "pod-template-hash": "y"}, "2026-01-01T00:00:00Z")
    twin = a_replica_set("twin", {"app": "2", "pod-template-hash": "z"}, "2026-01-03T00:00:00Z")
    assert newest_replica_set(deployment, [old, twin, new]) is new
    assert newest_replica_set(deployment, [old]) is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"metadata": {"labels": {"pod-template-hash": "x"}}, "spec": {}}, {"spec": {}}, True),
        ({"metadata": {"labels": {"pod-template-hash": "x"}, "creationTimestamp": None}}, {"metadata": {}}, True),
        ({"spec": {"volumes": [], "securityContext": {}, "subdomain": ""}}, {"spec": {}}, True),
        ({"spec": {"containers": [{}, {"name": "a"}]}}, {"spec": {"containers": [{"name": "a"}]}}, False),
        ({"spec": {"hostUsers": False}}, {"spec": {}}, False),
        ({"spec": {"a": 0}}, {"spec": {}}, False),
        ({"metadata": {"labels": {"a": "b"}}}, {"metadata": {}}, False),
    ],
)
def test_templates_are_compared_as_kubernetes_does(one: Object, other: Object, *, expected: bool) -> None:
    assert (template_hash(one) == template_hash(other)) is expected


def test_a_scheduling_condition_that_says_the_same_has_not_changed() -> None:
    def pod(**condition: str | None) -> Object:
        return {"status": {"conditions": [{"type": "PodScheduled", "status": "False", **condition}]}}

    assert not has_scheduling_changed(pod(message="", lastProbeTime=None), pod())
    assert has_scheduling_changed(pod(reason="Unschedulable"), pod())
    assert has_scheduling_changed(pod(), {"status": {"conditions": []}})
    assert not has_scheduling_changed({}, {"status": {"conditions": None}})


def test_pods_wait_until_the_threshold_and_those_that_leave_do_not_count() -> None:
    def waiting(age_s: float, **metadata: str) -> Object:
        since = (NOW - timedelta(seconds=age_s)).isoformat()
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": since}
        return {"metadata": metadata, "status": {"conditions": [condition]}}

    gated = {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}}
    timeless = {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}
    leaving, ended = waiting(99, deletionTimestamp="x"), {"status": {"phase": "Failed"}}
    on_node = {"spec": {"nodeName": "a"}}
    pods = [waiting(60), waiting(10), waiting(25), gated, timeless, leaving, ended, on_node]
    count = count_pods(pods, NOW, 60)
    assert (count.total, count.scheduled, count.unschedulable, count.next_crossing_s) == (6, 1, 2, 35)


def test_a_replica_set_has_the_pods_of_its_status_and_at_least_those_that_wait() -> None:
    long_ago = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": None}
    waiting = [{"metadata": {}, "status": {"phase": "Pending", "conditions": [long_ago]}}] * 2
    now = datetime(2026, 1, 1, tzinfo=UTC)
    counted = count_replica_set({"status": {"replicas": 5}}, waiting, now, 60.0)
    assert (counted.total, counted.scheduled, counted.unschedulable) == (5, 3, 2)
    assert count_replica_set({"status": {}}, waiting, now, 60.0).scheduled == 0


@pytest.mark.parametrize("since", ["2025-12-31T23:59:00", "2025-12-31T23:59:00Z", "2026-01-01T00:59:00+01:00"])
def test_a_time_without_a_zone_is_utc(since: str) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": since}
    count = count_pods([{"metadata": {}, "status": {"conditions": [condition]}}], NOW, 90)
    assert (count.unschedulable, count.next_crossing_s) == (0, 30)
