"""Unschedulable objects: a change marks those whose hint matches it."""

from datetime import UTC, datetime

from federation.controllers.schedule.unschedulable import UnschedulableObjects, UnschedulableRecord
from federation.runtime.controller import Key
from federation.scheduling.framework.types import ClusterChange
from federation.scheduling.queueinghints import QueueingHint

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A, B, C = (Key("default", name) for name in "abc")


def record(**hints: ClusterChange) -> UnschedulableRecord:
    clusters = {ClusterChange.MEMBERSHIP | change: frozenset((name,)) for name, change in hints.items()}
    return UnschedulableRecord("why", b"", NOW, "basis", QueueingHint(clusters))


def test_a_change_wakes_those_that_it_can_help() -> None:
    objects = UnschedulableObjects()
    objects.add(A, record(east=ClusterChange.TAINTS, west=ClusterChange.LABELS))
    objects.add(B, record(east=ClusterChange.READINESS))
    objects.add(C, UnschedulableRecord("why", b"", NOW))
    assert objects.mark_retry_on("east", ClusterChange.TAINTS) == [A]
    assert objects.mark_retry_on("west", ClusterChange.TAINTS) == []
    assert objects.mark_retry_on("east", ClusterChange.READINESS | ClusterChange.RESOURCES) == [B]
    assert objects.mark_retry_on("east", ClusterChange.MEMBERSHIP) == [A, B]
    assert [objects.has_retry(key) for key in (A, B, C)] == [True, True, False]


def test_a_change_is_compared_once_per_group() -> None:
    objects = UnschedulableObjects()
    for number in range(1000):
        objects.add(Key("default", str(number)), record(east=ClusterChange.TAINTS))
    assert len(objects._groups) == 1
    maps = {id(found.hint.clusters) for key in objects.list_keys() if (found := objects.get(key)) is not None}
    assert len(maps) == 1
    assert len(objects.mark_retry_on("east", ClusterChange.TAINTS)) == 1000
    for number in range(1000):
        objects.remove(Key("default", str(number)))
    assert (len(objects), objects._groups, objects._retries) == (0, {}, set())


def test_a_new_reason_replaces_the_old_one_and_a_mark_is_made_use_of_once() -> None:
    objects = UnschedulableObjects()
    objects.add(A, record(east=ClusterChange.TAINTS))
    objects.add(A, record(east=ClusterChange.LABELS))
    assert objects.mark_retry_on("east", ClusterChange.TAINTS) == []
    assert objects.mark_retry_on("east", ClusterChange.LABELS) == [A]
    objects.clear_retry(A)
    assert not objects.has_retry(A)
    objects.mark_retry((A, B))
    assert (objects.has_retry(A), objects.has_retry(B)) == (True, False), "who does not wait is not marked"
    assert objects.list_keys() == [A]
