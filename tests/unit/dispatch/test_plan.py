"""Decisions, statuses and the ledger: what the vectors do not ask."""

from datetime import UTC, datetime
from typing import Any

from federation.api import names
from federation.api.resources import DEPLOYMENTS, Object
from federation.dispatch.ledger import Ledger, MemberKey
from federation.dispatch.ownwrites import OwnWrites
from federation.dispatch.plan import (
    ABSENT,
    UNKNOWN,
    ClusterFacts,
    ObjectFacts,
    Removal,
    decide,
    decide_removal,
    is_other_derived_service,
)
from federation.dispatch.status import ClusterStatus, plan_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)
KEY = MemberKey("m1", DEPLOYMENTS, "default", "web")


def obj(revision: int, generation: int = 1, uid: str = "u") -> Object:
    return {"metadata": {"name": "web", "resourceVersion": str(revision), "generation": generation, "uid": uid}}


def test_an_unready_cluster_that_may_hold_the_object_is_remembered() -> None:
    decision = decide(ClusterFacts("m1", ready=False), is_selected=False, is_recorded=True, observed=UNKNOWN)
    assert decision.status is ClusterStatus.CLUSTER_NOT_READY


def test_nothing_is_done_without_a_cache() -> None:
    for is_selected in (True, False):
        decision = decide(ClusterFacts("m1"), is_selected=is_selected, is_recorded=True, observed=UNKNOWN)
        assert decision.operation is None
        assert decision.status is ClusterStatus.CACHED_RETRIEVAL_FAILED


def test_a_missing_finalizer_is_looked_for_again() -> None:
    decision = decide(ClusterFacts("m1", has_finalizer=False), is_selected=True, is_recorded=False, observed=ABSENT)
    assert decision.recheck_after_s == 10.0


def test_what_is_being_removed_is_waited_for() -> None:
    going = ObjectFacts(exists=True, terminating=True)
    decision = decide(ClusterFacts("m1"), is_selected=False, is_recorded=True, observed=going)
    assert decision.status is ClusterStatus.WAITING_FOR_REMOVAL
    assert decision.operation is None


def test_orphaning_follows_the_annotation() -> None:
    adopted = {names.ADOPTED: "true"}
    assert decide_removal({}, adopted) is Removal.DELETE
    assert decide_removal({names.ORPHAN: "all"}, {}) is Removal.ORPHAN
    assert decide_removal({names.ORPHAN: "adopted"}, {}) is Removal.DELETE
    assert decide_removal({names.ORPHAN: "adopted"}, adopted) is Removal.ORPHAN
    assert decide_removal({names.ORPHAN: "all", names.INTERNAL_ORPHAN: "adopted"}, {}) is Removal.DELETE


def test_a_derived_service_and_another_only_share_a_name() -> None:
    derived = {names.DERIVED_SERVICE: "web"}
    assert is_other_derived_service(derived, {"metadata": {}})
    assert is_other_derived_service({}, {"metadata": {"annotations": derived}})
    assert not is_other_derived_service(derived, {"metadata": {"annotations": derived}})


def _status(**more: Any) -> Any:
    return plan_status(
        more.pop("status", {}),
        generation=more.pop("generation", 1),
        statuses=more.pop("statuses", {"m1": "OK"}),
        generations=more.pop("generations", {"m1": 1}),
        now=more.pop("now", NOW),
        **more,
    )


def test_a_status_is_stable_and_its_times_mean_something() -> None:
    first = _status()
    assert first["conditions"][0]["status"] == "True"
    assert _status(status=first, now=LATER) is None
    broken = _status(status=first, statuses={"m1": "CreationFailed"}, message="m1: CreationFailed", now=LATER)
    assert broken["conditions"][0]["status"] == "False"
    assert broken["conditions"][0]["lastTransitionTime"] == "2026-01-02T00:00:00Z"
    again = _status(status=broken, statuses={"m1": "CreationFailed"}, message="m1: still", now=LATER)
    assert again["conditions"][0]["message"] == "m1: still"


def test_other_conditions_stay() -> None:
    scheduled = {"type": "Scheduled", "status": "False"}
    planned = _status(status={"conditions": [scheduled]})
    assert scheduled in planned["conditions"]


def test_the_ledger_bridges_the_caches_lag() -> None:
    ledger = Ledger()
    ledger.note_written(KEY, obj(10, 2), "hash", is_subset=True)
    assert ledger.newest(KEY, obj(9, 1), cache_revision=9) == obj(10, 2)
    assert ledger.newest(KEY, None, cache_revision=9) == obj(10, 2)
    assert ledger.newest(KEY, None, cache_revision=11) is None, "somebody deleted it since"
    assert ledger.newest(KEY, obj(9, 1), cache_revision=9) == obj(9, 1), "and then it is forgotten"


def test_a_deletion_is_asked_once_per_object() -> None:
    ledger = Ledger()
    ledger.note_deletion_asked(KEY, "u")
    assert ledger.is_deletion_asked(KEY, "u")
    assert not ledger.is_deletion_asked(KEY, "other")
    ledger.note_gone(KEY)
    assert not ledger.is_deletion_asked(KEY, "u")


def test_what_a_server_rewrites_is_accepted_until_somebody_changes_it() -> None:
    ledger = Ledger()
    ledger.note_written(KEY, obj(10, 2), "hash", is_subset=False)
    assert ledger.is_accepted(KEY, "hash", obj(12, 2)), "a status moved the revision only"
    assert not ledger.is_accepted(KEY, "hash", obj(13, 3))
    assert not ledger.is_accepted(KEY, "other", obj(12, 2))


def test_failures_back_off_and_end_with_another_content() -> None:
    ledger = Ledger()
    delays = [
        ledger.note_failed(KEY, ClusterStatus.UPDATE_FAILED, "no", "hash", 100.0).retry_at_s - 100.0 for _ in range(12)
    ]
    assert delays[:3] == [0.25, 0.5, 1.0]
    assert delays[-1] == 60.0
    assert ledger.failure(KEY, "hash") is not None
    assert ledger.failure(KEY, "other") is None
    ledger.forget_cluster("m1")
    assert ledger.failure(KEY, "hash") is None


def test_own_writes_win_until_the_cache_has_them() -> None:
    cache = {"web": obj(9)}
    own: OwnWrites[str] = OwnWrites(cache.get)
    own.note("web", obj(10))
    assert own.newest("web") == obj(10)
    own.saw("web")
    assert own.newest("web") == obj(10)
    cache["web"] = obj(11)
    assert own.newest("web") == obj(11)
    own.note("web", obj(12))
    cache["web"] = obj(12)
    own.saw("web")
    assert len(own) == 0
    own.note("web", obj(13))
    del cache["web"]
    assert own.newest("web") is None
    assert len(own) == 0


def test_a_write_that_the_cache_had_before_the_writer_was_answered_is_not_kept() -> None:
    """In one process events are often delivered first; nothing would ever take the write out again."""
    cache = {"web": obj(10)}
    own: OwnWrites[str] = OwnWrites(cache.get)
    own.note("web", obj(10))
    own.note("gone", obj(10))
    assert len(own) == 0
