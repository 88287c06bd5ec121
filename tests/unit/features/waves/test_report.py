"""The status of a FederatedRollout: what users read."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.apimachinery import conditions
from federation.features.waves.rules.report import settled_of, templates_of, to_status
from federation.features.waves.rules.waveplan import plan_waves
from federation.planning.status.readiness import Counts
from federation.planning.waves.rolloutstatus import record_of, waiting_wave
from federation.planning.waves.waverecord import Observed, Phase, Record
from federation.planning.waves.waverules import Gate, Rules, Wave
from federation.planning.waves.wishes import Wishes, read_wishes, to_abortion, to_approval, to_pause, to_return

NOW = datetime(2026, 1, 1, 12, 30, 15, 500_000, tzinfo=UTC)
RULES = Rules(
    "PropagationPolicy default/web",
    (Wave("canary", frozenset("a"), gate=Gate(soak_s=60)), Wave("second", frozenset("b"), is_paused=True)),
    rolls_back=True,
)


def a_status(
    record: Record,
    live: dict[str, str],
    wishes: Wishes | None = None,
    problem: str = "",
    at: datetime = NOW,
    rules: Rules = RULES,
) -> dict[str, Any]:
    observed = {
        name: Observed("v2", revision, problem=problem if name == "a" else "") for name, revision in live.items()
    }
    plan = plan_waves(record, rules, observed, wishes or Wishes(), at)
    templates = {"v1": {"spec": {}}}
    return to_status(
        plan, None, observed, templates, {"a": Counts(3, 3, 1, 2)}, policy=RULES.policy, generation=4, now=at
    )


def started() -> dict[str, Any]:
    return a_status(Record(), {"a": "v1", "b": "v1"})


def test_a_rollout_that_has_started_shows_waves_clusters_and_the_reason_to_wait() -> None:
    status = started()
    assert {key: status[key] for key in ("observedGeneration", "revision", "state", "wave", "progress")} == {
        "observedGeneration": 4,
        "revision": 1,
        "state": "Progressing",
        "wave": "canary",
        "progress": "0/2",
    }
    assert status["message"] == "wave canary: a: it does not have the new template yet"
    progressing = conditions.find(status["conditions"], "Progressing")
    assert progressing is not None
    assert (progressing["status"], progressing["message"]) == ("True", status["message"])
    assert status["waves"] == [
        {"name": "canary", "state": "Progressing", "clusters": ["a"], "startedAt": "2026-01-01T12:30:15.500000Z"},
        {"name": "second", "state": "Pending", "clusters": ["b"]},
    ]
    assert status["clusters"] == [
        {
            "name": "a",
            "wave": "canary",
            "revision": "v1",
            "target": "v2",
            "good": "v1",
            "changed": True,
            "startedAt": "2026-01-01T12:30:15.500000Z",
            "disruptedSince": "2026-01-01T12:30:15.500000Z",
            "message": "waits for template v2",
            "replicas": 3,
            "updatedReplicas": 1,
            "readyReplicas": 2,
        },
        {
            "name": "b",
            "wave": "second",
            "revision": "v1",
            "target": "v2",
            "good": "v1",
            "changed": False,
            "message": "waits for wave second",
            "replicas": 0,
            "updatedReplicas": 0,
            "readyReplicas": 0,
        },
    ]
    assert templates_of(status) == {"v1": {"spec": {}}}


def reasons(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


@pytest.mark.parametrize(
    ("live", "wishes", "problem", "after_s", "state", "expected"),
    [
        ({"a": "v2", "b": "v1"}, Wishes(), "", 1, "Soaking", {"Progressing": ("True", "Progressing")}),
        ({"a": "v2", "b": "v1"}, Wishes(is_paused=True), "", 1, "Soaking", {"Paused": ("True", "PausedByUser")}),
        (
            {"a": "v2", "b": "v1"},
            Wishes(),
            "not ready",
            700,
            "Failed",
            {"Healthy": ("False", "GateNotHeld"), "RolledBack": ("True", "WaveFailed")},
        ),
    ],
    ids=["soaking", "paused", "rolling back"],
)
def test_conditions_follow_the_plan(
    live: dict[str, str],
    wishes: Wishes,
    problem: str,
    after_s: int,
    state: str,
    expected: dict[str, tuple[str, str]],
) -> None:
    status = a_status(record_of(started()), live, wishes, problem, NOW + timedelta(seconds=after_s))
    assert status["waves"][0]["state"] == state
    assert expected.items() <= reasons(status).items()
    assert all(each["message"] for each in status["conditions"])


def test_a_wave_that_waits_for_approval_says_so() -> None:
    soaking = a_status(record_of(started()), {"a": "v2", "b": "v1"})
    status = a_status(record_of(soaking), {"a": "v2", "b": "v1"}, at=NOW + timedelta(seconds=60))
    assert [wave["state"] for wave in status["waves"]] == ["Complete", "WaitingForApproval"]
    assert conditions.is_true(status["conditions"], "Paused")
    assert status["progress"] == "1/2"
    assert waiting_wave(status) == "second"


def test_after_a_wave_that_failed_the_next_one_waits_for_approval() -> None:
    at, rules = NOW + timedelta(seconds=700), replace(RULES, rolls_back=False)
    status = a_status(record_of(started()), {"a": "v2", "b": "v1"}, None, "not ready", at, rules)
    assert record_of(status).phase is Phase.STOPPED
    assert waiting_wave(status) == "second"


def test_no_wave_waits_while_one_goes_on() -> None:
    assert waiting_wave({}) is None
    assert waiting_wave(started()) is None


def test_an_absent_status_is_the_initial_state() -> None:
    assert record_of(None) == record_of({}) == Record()
    assert templates_of(None) == {}


def test_the_wishes_of_users_are_read_from_the_fields_that_are_written() -> None:
    assert read_wishes({}) == read_wishes({"approvedWave": None, "abort": None, "paused": None}) == Wishes()
    written = {**to_pause(is_paused=True), **to_abortion(3), **to_return(4), **to_approval(2, "second", "known")}
    assert read_wishes(written) == Wishes(True, 3, 4, 2, "second", "known")


@pytest.mark.parametrize(
    ("status", "settled"), [(None, ""), ({}, ""), ({"settled": None}, ""), ({"settled": "r1"}, "r1")]
)
def test_the_settled_revision_is_read(status: dict[str, Any] | None, settled: str) -> None:
    assert settled_of(status) == settled
