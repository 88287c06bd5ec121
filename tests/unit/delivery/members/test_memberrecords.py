"""The container of records: its limits by cluster, our writes ahead of the cache, and how long answers hold."""

import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.rules.corrections import Correction
from federation.delivery.rules.memberrecord import NOTHING_KNOWN, MemberKey
from federation.delivery.rules.status import ClusterStatus
from federation.planning.drift.fields import Field
from federation.planning.drift.fights import CORRECTIONS_MAX

KEY, OTHER = (MemberKey(cluster, DEPLOYMENTS, "default", "web") for cluster in ("m1", "m2"))


def obj(revision: int) -> Object:
    return {"metadata": {"name": "web", "resourceVersion": str(revision), "uid": "u", "generation": 1}}


@pytest.mark.parametrize(
    ("cached", "cache_revision", "expected"),
    [
        (obj(9), 9, 10),
        (obj(10), 10, 10),
        (obj(11), 11, 11),
        (None, 9, 10),
        (None, 10, None),
        (obj(9), 10, 9),
    ],
    ids=["behind", "at it", "ahead", "absent behind", "absent beyond", "an older object beyond"],
)
def test_our_write_counts_until_the_cache_has_reached_it(
    cached: Object | None, cache_revision: int, expected: int | None
) -> None:
    records = MemberRecords(ManualClock())
    records.record_write(KEY, obj(10), "h", is_subset=True)
    newest = records.newest(KEY, cached, cache_revision=cache_revision)
    assert newest == (None if expected is None else obj(expected))
    is_behind = expected == 10 and cache_revision < 10
    assert (records.get(KEY).written is not None) is is_behind


@pytest.mark.parametrize(("revision", "is_kept"), [(9, True), (10, False), (11, False)])
def test_an_event_at_our_write_ends_it(revision: int, is_kept: bool) -> None:
    records = MemberRecords(ManualClock())
    records.record_write(KEY, obj(10), "h", is_subset=True)
    records.record_shown(KEY, obj(revision))
    assert (records.get(KEY).written is not None) is is_kept
    records.record_shown(OTHER, obj(revision))
    assert records.get(OTHER) == NOTHING_KNOWN


def test_owners_of_fields_are_not_kept() -> None:
    records, written = MemberRecords(ManualClock()), obj(10)
    written["metadata"]["managedFields"] = [{"manager": "kubectl", "operation": "Update"}]
    records.record_write(KEY, written, "h", is_subset=True)
    kept = records.get(KEY).written
    assert kept is not None
    assert not kept["metadata"].get("managedFields")
    assert written["metadata"]["managedFields"], "the answer itself stays as it is"


def test_a_cluster_is_forgotten_alone() -> None:
    records = MemberRecords(ManualClock())
    for key in (KEY, OTHER):
        records.record_unanswered_write(key)
        records.record_content(key, "h")
    records.remove_cluster("m1")
    assert records.get(KEY) == NOTHING_KNOWN
    assert records.get(OTHER).is_unconfirmed
    records.remove_cluster("m1")


def test_what_is_known_of_nothing_costs_nothing() -> None:
    records = MemberRecords(ManualClock())
    records.put(KEY, NOTHING_KNOWN)
    records.record_deleting(KEY, is_under_way=True)
    records.record_deleting(KEY, is_under_way=False)
    records.record_failure(KEY, ClusterStatus.UPDATE_FAILED, "no", "h")
    records.record_retry(KEY)
    records.record_retry(OTHER)
    assert not [record for cluster in records._clusters.values() for record in (*cluster.pending, *cluster.history)]


def test_history_is_limited_by_cluster_and_does_not_displace_what_is_pending() -> None:
    records = MemberRecords(ManualClock(), pending_max=2, history_max=3)
    keys = [KEY._replace(name=str(number)) for number in range(6)]
    records.record_unanswered_write(KEY)
    records.record_content(OTHER, "h")
    for key in keys:
        records.record_content(key, "h")
    records.record_content(keys[3], "h")
    records.record_content(keys[0], "h")
    assert [key.name for key in keys if records.get(key).content] == ["0", "3", "5"], "the latest ones"
    assert records.get(KEY).is_unconfirmed
    assert records.get(OTHER).content
    for key in keys[:2]:
        records.record_unanswered_write(key)
    assert not records.get(KEY).is_unconfirmed, "the oldest one"


def test_a_deletion_of_ours_ends_history() -> None:
    records = MemberRecords(ManualClock())
    for key in (KEY, OTHER):
        records.record_content(key, "h")
        records.record_correction(key, Correction((Field("a", ()),), None))
    records.record_deletion(KEY, "u")
    records.record_removal(KEY, "u")
    assert records.get(KEY) == NOTHING_KNOWN
    assert records.drift(OTHER) is not None


async def test_a_fight_pauses_corrections() -> None:
    clock = ManualClock()
    records = MemberRecords(clock)
    assert records.pause_left_s(KEY) == 0
    for _ in range(CORRECTIONS_MAX + 1):
        records.record_correction(KEY, Correction((Field("a", ()),), None))
    await clock.advance(20)
    assert records.pause_left_s(KEY) == 40
    assert records.pause_left_s(OTHER) == 0


async def test_an_answer_about_autoscalers_holds_long_for_one_and_shortly_for_none() -> None:
    clock = ManualClock()
    records = MemberRecords(clock)
    assert (records.get(KEY).scaler_name, records.scaler_left_s(KEY)) == ("", 0)
    assert not records.record_scaler(KEY, "")
    assert records.scaler_left_s(KEY) == 10
    assert records.record_scaler(KEY, "hpa")
    assert not records.record_scaler(KEY, "hpa")
    assert (records.get(KEY).scaler_name, records.scaler_left_s(KEY)) == ("hpa", 300)
    await clock.advance(301)
    left_s = records.scaler_left_s(KEY)
    assert (records.get(KEY).scaler_name, left_s) == ("hpa", 0), "it owns the replicas until the next answer"
    assert records.record_scaler(KEY, "other")
    assert records.record_scaler(KEY, "")


async def test_a_late_answer_about_absence_is_good_for_a_moment_and_once() -> None:
    clock = ManualClock()
    records = MemberRecords(clock)
    assert not records.is_late_absence(KEY)
    records.record_late_absence(KEY)
    assert records.is_late_absence(KEY)
    assert records.take_late_absence(KEY)
    assert not records.take_late_absence(KEY)
    records.record_late_absence(KEY)
    await clock.advance(10)
    assert not records.is_late_absence(KEY)
