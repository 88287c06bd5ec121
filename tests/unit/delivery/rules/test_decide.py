"""The decision about one object in one cluster: the whole table, and what the rows say that the table does not show.

`decisions.txt` has the decision of each case, `words.txt` what each row says beside it. `WRITE_DECISIONS=1` writes them
anew; read the difference before you commit.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.deliveryfacts import HASH, LIVE, NOW, combinations, facts

from federation.api import names
from federation.api.federatedtype import RetentionRule
from federation.delivery.rules.decide import ROWS, decide
from federation.delivery.rules.decision import Decision, Question, describe
from federation.delivery.rules.facts import Hold
from federation.delivery.rules.memberrecord import NOTHING_KNOWN, next_failure
from federation.delivery.rules.plan import ObservedObject, Operation, Removal, cluster_state_of, removal_attempt
from federation.delivery.rules.status import ClusterStatus

_TABLE = Path(__file__).with_name("decisions.txt")
_WORDS = Path(__file__).with_name("words.txt")
_FLAGS = {
    "keeps_status": "keeps its status",
    "is_brief": "brief",
    "is_refusal": "refused",
    "shows_object": "shows the object",
}


def _text(decision: Decision) -> str:
    what = decision.operation or decision.status or "nothing"
    status = f" ({decision.status})" if decision.operation else ""
    question = f", ask {decision.question.name}" if decision.question else ""
    again = f", again after {decision.recheck_after_s:g} s" if decision.recheck_after_s is not None else ""
    return f"{what}{status}{question}{again} [{decision.row}]"


def test_every_case_has_its_decision() -> None:
    lines = [f"{name} => {_text(decide(found))}" for name, found in combinations()]
    if os.environ.get("WRITE_DECISIONS"):
        _TABLE.write_text("\n".join(lines) + "\n")
    assert lines == _TABLE.read_text().splitlines()
    assert len(lines) > 500


def _words(decision: Decision) -> str:
    flags = [text for name, text in _FLAGS.items() if getattr(decision, name)]
    held = f"held: {decision.held.outcome} {decision.held.message}" if decision.held else ""
    return f"{decision.row} ({', '.join(flags)}): {decision.message}{held}".rstrip(": ")


def test_every_row_has_its_words() -> None:
    lines = sorted({_words(decide(found)) for _, found in combinations()})
    if os.environ.get("WRITE_DECISIONS"):
        _WORDS.write_text("\n".join(lines) + "\n")
    assert lines == _WORDS.read_text().splitlines()


def test_every_row_decides_somewhere() -> None:
    rows = [row.name for row in ROWS]
    assert len(set(rows)) == len(rows)
    assert {decide(found).row for _, found in combinations()} == set(rows)


@pytest.mark.parametrize(
    ("cluster", "use", "obj", "expected"),
    [
        ("ready", "placed", "absent", (Operation.CREATE, ClusterStatus.PENDING_CREATE)),
        ("ready", "placed", "present", (Operation.UPDATE, ClusterStatus.UPDATE_TIMED_OUT)),
        ("ready", "placed", "going", (Operation.UPDATE, ClusterStatus.UPDATE_TIMED_OUT)),
        ("ready", "placed", "colliding", (Operation.CREATE, ClusterStatus.PENDING_CREATE)),
        ("ready", "placed", "unknown", (None, ClusterStatus.CACHED_RETRIEVAL_FAILED)),
        ("ready", "unplaced", "absent", (None, None)),
        ("ready", "unplaced", "present", (Operation.DELETE, ClusterStatus.WAITING_FOR_REMOVAL)),
        ("ready", "unplaced", "going", (None, ClusterStatus.WAITING_FOR_REMOVAL)),
        ("ready", "unplaced", "colliding", (None, None)),
        ("ready", "kept", "present", (None, ClusterStatus.KEPT)),
        ("ready", "kept", "going", (None, ClusterStatus.WAITING_FOR_REMOVAL)),
        ("ready", "departing", "present", (Operation.UPDATE, ClusterStatus.UPDATE_TIMED_OUT)),
        ("ready", "old membership", "present", (None, None)),
        ("ready", "old deletion", "present", (None, None)),
        ("ready", "deleted", "present", (Operation.DELETE, ClusterStatus.WAITING_FOR_REMOVAL)),
        ("ready", "released", "present", (Operation.RELEASE, ClusterStatus.WAITING_FOR_REMOVAL)),
        ("leaving", "deleted", "present", (Operation.DELETE, ClusterStatus.WAITING_FOR_REMOVAL)),
        ("leaving", "kept", "present", (None, None)),
        ("leaving", "unplaced", "going", (None, ClusterStatus.WAITING_FOR_REMOVAL)),
        ("cascading", "placed", "present", (None, ClusterStatus.WAITING_FOR_CASCADING_DELETION)),
        ("cascading", "unplaced", "going", (None, None)),
        ("silent", "deleted", "absent", (None, ClusterStatus.CLUSTER_NOT_READY)),
        ("without finalizer", "placed", "present", (None, ClusterStatus.FINALIZER_CHECK_FAILED)),
        ("ready", "finished", "absent", (None, ClusterStatus.FINISHED)),
    ],
)
def test_the_first_rows_are_those_of_the_reference(cluster: str, use: str, obj: str, expected: tuple[Any, Any]) -> None:
    decision = decide(facts(cluster, use, obj))
    assert (decision.operation, decision.status) == expected


@pytest.mark.parametrize(
    ("sight", "message"),
    [("unseen for long", "their list has not ended within 15 s"), ("not listable", "no list")],
)
def test_a_status_that_is_not_known_any_more_is_published_after_a_while(sight: str, message: str) -> None:
    late = facts(obj="unknown", sight=sight, kind="v1 ConfigMap")
    early = decide(replace(late, sight=late.sight._replace(unseen_s=5.0)))
    assert (early.keeps_status, early.recheck_after_s) == (True, 10.0)
    decision = decide(late)
    assert (decision.keeps_status, decision.recheck_after_s) == (False, None)
    assert decision.message == f"its objects of v1 ConfigMap are not known: {message}"


def test_a_kind_that_outlives_its_placement_is_deleted_with_its_source() -> None:
    assert decide(facts("ready", "deleted", "present", is_kept=True)).operation is Operation.DELETE


def test_what_a_write_needs_is_in_its_decision() -> None:
    decision = decide(facts("ready", "placed", "absent"))
    assert decision.write is not None
    assert decision.write.desired.hash == HASH
    assert decide(facts("ready", "unplaced", "present")).write is None


@pytest.mark.parametrize(
    ("given", "question"),
    [
        ({"use": "new", "obj": "unknown"}, Question.LOOK_UP),
        ({"use": "placed", "obj": "unknown"}, None),
        ({"use": "unplaced", "obj": "absent", "record": "unconfirmed"}, Question.CONFIRM),
        ({"use": "unplaced", "obj": "absent", "record": "unconfirmed lately"}, None),
        ({"use": "last look", "obj": "absent"}, Question.CONFIRM),
        ({"use": "last look", "obj": "absent", "record": "gone"}, None),
        ({"use": "confirmed", "obj": "absent"}, None),
        ({"use": "placed", "obj": "absent", "record": "unconfirmed"}, None),
        ({"use": "placed", "obj": "absent", "record": "unconfirmed other"}, Question.CONFIRM),
        ({"use": "placed", "obj": "scaled"}, Question.SCALER),
        ({"use": "placed", "obj": "scaled", "record": "no scaler"}, None),
        ({"use": "placed", "obj": "scaled", "content": "is as wanted"}, None),
        ({"use": "placed", "obj": "present", "record": "scaler before", "content": "is as wanted"}, Question.SCALER),
        ({"use": "placed", "obj": "present", "host": "unasked"}, Question.ADMISSION),
        ({"use": "placed", "obj": "present", "host": "refused before"}, Question.ADMISSION),
        ({"use": "placed", "obj": "present", "host": "refused"}, None),
    ],
)
def test_a_question_is_asked_when_its_answer_can_change_the_decision(
    given: dict[str, str], question: Question | None
) -> None:
    decision = decide(facts(**given))
    assert decision.question is question
    assert question is None or decision.operation is None
    busy = decide(facts(**given, flight="in flight"))
    assert busy.question in (None, Question.LOOK_UP, Question.ADMISSION)


def test_replicas_of_an_autoscaler_are_looked_at_again_when_its_answer_ends() -> None:
    assert decide(facts(record="scaler", content="is as wanted")).recheck_after_s == 100.0
    assert decide(facts(record="scaler", content="is fought over")).recheck_after_s == 30.0
    assert decide(facts(use="unplaced", record="scaler")).recheck_after_s is None


def test_a_failure_is_shown_until_its_retry_is_due() -> None:
    decision = decide(facts(record="failed"))
    assert (decision.status, decision.message, decision.recheck_after_s) == (ClusterStatus.CREATION_FAILED, "no", 5.0)
    assert decide(facts(record="failed before")).operation is Operation.UPDATE
    assert decide(facts(record="failed otherwise")).operation is Operation.UPDATE
    assert facts(now_s=NOW + 5, record="failed").backoff(HASH) is None


TERMS: list[dict[str, Any]] = [
    {"federated": {names.CONFLICT_RESOLUTION: "adopt"}},
    {"federated": {names.CLUSTERS_TO_ADOPT: '{"clusters":["m1"]}'}},
    {"stops_at_drift": True},
    {"retention": (RetentionRule("spec.paused"),)},
    {"live": LIVE},
]


@pytest.mark.parametrize("terms", TERMS, ids=lambda terms: next(iter(terms)))
def test_a_write_on_other_terms_does_not_wait_for_the_failure(terms: dict[str, Any]) -> None:
    content = facts().content
    assert content.write is not None
    record = NOTHING_KNOWN._replace(
        failure=next_failure(None, ClusterStatus.ALREADY_EXISTS, "", content.write.attempt, NOW)
    )
    assert decide(facts(record="nothing", find_content=lambda: content)).row == "write"
    waiting = replace(facts(find_content=lambda: content), record=record)
    assert decide(waiting).row == "write failed"
    other = replace(content, write=replace(content.write, **terms))
    assert decide(replace(waiting, find_content=lambda: other)).row == "write"


def test_an_object_is_released_although_its_deletion_failed_a_moment_ago() -> None:
    failure = next_failure(None, ClusterStatus.DELETION_FAILED, "no", removal_attempt("u1", Operation.DELETE), NOW)
    found = replace(facts(use="deleted"), record=NOTHING_KNOWN._replace(failure=failure))
    assert decide(found).row == "removal failed"
    assert decide(replace(found, removal=Removal.ORPHAN)).operation is Operation.RELEASE


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"obj": "absent"}, "the object is created"),
        ({"obj": "present"}, "the object is updated"),
        ({"use": "unplaced"}, "the object is deleted"),
        ({"use": "released"}, "the object is released"),
        ({"content": "is as wanted"}, None),
        ({"obj": "scaled"}, "it is asked which autoscaler in the member owns the replicas"),
    ],
)
def test_users_read_what_comes_next(given: dict[str, str], text: str | None) -> None:
    assert describe(decide(facts(**given))) == text
    assert describe(None) is None


def a_cluster(**status: Any) -> dict[str, Any]:
    found = [{"type": type_, "status": "True"} for type_ in status.pop("true", ())]
    return {"metadata": {"name": "m1"}, "status": {"conditions": found, **status}}


@pytest.mark.parametrize(
    ("cluster", "ready", "joined"),
    [
        (a_cluster(true=["Joined", "Ready"]), True, True),
        (a_cluster(true=["Joined"]), False, True),
        (a_cluster(true=["Ready"]), False, False),
        (a_cluster(joinPerformed=True), False, True),
        (a_cluster(), False, False),
        ({"metadata": {"name": "m1"}}, False, False),
    ],
    ids=["ready", "not ready", "not joined", "joining", "new", "without status"],
)
def test_a_cluster_is_ready_when_it_is_joined_and_may_have_objects_once_it_was_joining(
    cluster: dict[str, Any], ready: bool, joined: bool
) -> None:
    state = cluster_state_of(cluster)
    assert (state.name, state.ready, state.joined) == ("m1", ready, joined)
    assert (state.terminating, state.cascading_delete, state.has_finalizer) == (False, False, False)
    assert (state.uid, state.is_drained) == ("", False)


def test_marks_of_a_cluster_are_read_from_their_places() -> None:
    cluster = a_cluster(clusterUid="u1")
    cluster["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {names.CASCADING_DELETE: ""},
        "finalizers": ["other", names.CASCADING_DELETE_FINALIZER],
    }
    cluster["spec"] = {"taints": [{"key": "other"}, {"key": names.TAINT_DRAIN}]}
    state = cluster_state_of(cluster)
    assert (state.terminating, state.cascading_delete, state.has_finalizer) == (True, True, True)
    assert (state.uid, state.is_drained) == ("u1", True)
    cluster["spec"] = {"taints": [{"key": "other"}]}
    cluster["metadata"]["finalizers"] = ["other"]
    cluster["metadata"]["annotations"] = {"other": ""}
    state = cluster_state_of(cluster)
    assert (state.cascading_delete, state.has_finalizer, state.is_drained) == (False, False, False)


def test_nothing_is_written_or_removed_while_a_suspension_holds() -> None:
    for name, found in combinations():
        decision = decide(replace(found, suspension=Hold("DeliverySuspension web holds", 60.0)))
        assert decision.operation is None, name


def test_an_object_that_finalizers_hold_in_a_member_names_them() -> None:
    live = {"metadata": {"uid": "1", "deletionTimestamp": "x", "finalizers": ["example.com/b", "example.com/a"]}}
    decision = decide(facts(is_deleted=True, live=live, observed=ObservedObject(exists=True, terminating=True)))
    assert (decision.row, decision.status) == ("being removed", ClusterStatus.WAITING_FOR_REMOVAL)
    assert decision.message == "its finalizers [example.com/a,example.com/b] hold it there"
