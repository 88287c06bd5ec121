"""What is remembered ahead of the caches: which entry stays through which event."""

from collections.abc import Callable
from typing import Any

import pytest

from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.delivery.members.expectations import Expectations, MemberKey, generation_of
from federation.delivery.rules.status import ClusterStatus

KEY, OTHER = (MemberKey(cluster, DEPLOYMENTS, "default", "web") for cluster in ("m1", "m2"))


def obj(revision: int, generation: int | None = 1, uid: str = "u") -> Object:
    more = {} if generation is None else {"generation": generation}
    return {"metadata": {"name": "web", "resourceVersion": str(revision), "uid": uid, **more}}


def _filled(key: MemberKey = KEY) -> Expectations:
    """Return expectations with each kind of entry, as far as one excludes no other."""
    found = Expectations()
    found.record_write(key, obj(10), "accepted", is_subset=False)
    found.record_removal(key, "lost")
    found.record_write(key, obj(10), "accepted", is_subset=False)
    found.record_unconfirmed_write(key)
    found.record_failure(key, ClusterStatus.UPDATE_FAILED, "no", "h", 0.0)
    found.set_deletion_pending(key, is_under_way=True)
    return found


def _entries(found: Expectations, key: MemberKey = KEY) -> set[str]:
    entries = {
        "written": found.revision(key) > 0,
        "deleting": found.is_deletion_pending(key),
        "deleted": found.is_deletion_requested(key, "u"),
        "gone": found.is_gone(key, "owner"),
        "accepted": found.is_accepted(key, "accepted", obj(10)),
        "failure": found.failure(key, "h") is not None,
        "unconfirmed": found.is_unconfirmed(key),
        "lost": bool(found.lost_uid(key)),
    }
    return {name for name, is_there in entries.items() if is_there}


ALL = {"written", "deleting", "accepted", "failure", "unconfirmed"}
EVENTS: dict[str, Callable[[Expectations], Any]] = {
    "write": lambda found: found.record_write(KEY, obj(11), "accepted", is_subset=True),
    "write as sent": lambda found: found.record_write(KEY, obj(11), "other", is_subset=False),
    "deletion request": lambda found: found.record_deletion_request(KEY, "u"),
    "removal": lambda found: found.record_removal(KEY, "u"),
    "absence": lambda found: found.record_absence(KEY),
    "deletion ended": lambda found: found.set_deletion_pending(KEY, is_under_way=False),
    "failure forgotten": lambda found: found.forget_failure(KEY),
    "cluster forgotten": lambda found: found.forget_cluster("m1"),
    "other cluster forgotten": lambda found: found.forget_cluster("m2"),
    "observed": lambda found: found.observe(KEY, 10),
    "observed earlier": lambda found: found.observe(KEY, 9),
}


@pytest.mark.parametrize(
    ("event", "left"),
    [
        ("write", {"written", "deleting"}),
        ("write as sent", {"written", "deleting"}),
        ("deletion request", ALL - {"written", "failure"} | {"deleted"}),
        ("removal", ALL - {"written", "accepted"} | {"lost"}),
        ("absence", {"deleting"}),
        ("deletion ended", ALL - {"deleting"}),
        ("failure forgotten", ALL - {"failure"}),
        ("cluster forgotten", set()),
        ("other cluster forgotten", ALL),
        ("observed", ALL - {"written"}),
        ("observed earlier", ALL),
    ],
)
def test_each_event_ends_its_entries_and_no_others(event: str, left: set[str]) -> None:
    found = _filled()
    assert _entries(found) == ALL
    EVENTS[event](found)
    assert _entries(found) == left


def test_entries_of_other_objects_stay() -> None:
    for event in set(EVENTS) - {"other cluster forgotten"}:
        found = _filled(OTHER)
        EVENTS[event](found)
        assert _entries(found, OTHER) == ALL, event


def test_a_write_ends_the_deletions_before_it() -> None:
    found = Expectations()
    found.record_removal(KEY, "u")
    found.record_deletion_request(KEY, "u", "owner")
    assert _entries(found) == {"deleted", "gone", "lost"}
    found.record_write(KEY, obj(11), "h", is_subset=True)
    assert _entries(found) == {"written"}


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
    found = Expectations()
    found.record_write(KEY, obj(10), "h", is_subset=True)
    newest = found.newest(KEY, cached, cache_revision=cache_revision)
    assert newest == (None if expected is None else obj(expected))
    is_behind = expected == 10 and cache_revision < 10
    assert (found.revision(KEY) == 10) is is_behind


def test_owners_of_fields_are_not_kept() -> None:
    found, written = Expectations(), obj(10)
    written["metadata"]["managedFields"] = [{"manager": "kubectl", "operation": "Update"}]
    found.record_write(KEY, written, "h", is_subset=True)
    newest = found.newest(KEY, None, cache_revision=9)
    assert newest is not None
    assert not newest["metadata"].get("managedFields")
    assert written["metadata"]["managedFields"], "the answer itself stays as it is"


@pytest.mark.parametrize(
    ("live", "is_accepted"),
    [
        (obj(12, 1), True),
        (obj(10, 2), False),
        (obj(10, 1, uid="other"), False),
    ],
)
def test_an_accepted_deviation_is_that_of_one_generation(live: Object, is_accepted: bool) -> None:
    found = Expectations()
    found.record_write(KEY, obj(10), "h", is_subset=False)
    assert found.is_accepted(KEY, "h", live) is is_accepted
    assert not found.is_accepted(KEY, "other", live)


def test_without_generations_every_change_ends_an_accepted_deviation() -> None:
    found = Expectations()
    found.record_write(KEY, obj(10, None), "h", is_subset=False)
    assert found.is_accepted(KEY, "h", obj(10, None))
    assert not found.is_accepted(KEY, "h", obj(11, None))


def test_a_server_that_names_a_pause_is_obeyed_beyond_the_own_one() -> None:
    found = Expectations()
    first = found.record_failure(KEY, ClusterStatus.UPDATE_FAILED, "busy", "h", 100.0, retry_after_s=7.0)
    assert (first.retry_at_s, first.count) == (107.0, 1)
    second = found.record_failure(KEY, ClusterStatus.UPDATE_FAILED, "busy", "h", 100.0, retry_after_s=0.1)
    assert (second.retry_at_s, second.count) == (100.5, 2)


def test_the_generation_of_nothing_is_0() -> None:
    assert [generation_of(each) for each in (None, {}, {"metadata": {}}, obj(1, 3))] == [0, 0, 0, 3]
