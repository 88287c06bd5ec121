"""Health taints: which are added and removed, and that the taints of users stay."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.planning.clusters.clustertaints import describe_changes, describe_taint, plan_taints, postpone

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AT = to_rfc3339(NOW)
LATER = NOW + timedelta(seconds=90)
USERS = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def _health(key: str, added: str = AT) -> list[dict[str, Any]]:
    return [{"key": key, "effect": effect, "timeAdded": added} for effect in ("NoSchedule", "NoExecute")]


def test_a_silent_cluster_is_unreachable_and_one_that_answers_is_not_ready() -> None:
    assert plan_taints([USERS], "Unknown", NOW) == [USERS, *_health(names.TAINT_UNREACHABLE)]
    assert plan_taints(None, "False", NOW) == _health(names.TAINT_NOT_READY)


def test_a_cluster_that_is_not_lost_gets_nothing_new_and_keeps_what_it_has() -> None:
    no_schedule, no_execute = _health(names.TAINT_NOT_READY)
    assert plan_taints([USERS], "False", NOW, is_lost=False) == [USERS, no_schedule]
    assert plan_taints([no_schedule, no_execute], "False", LATER, is_lost=False) == [no_schedule]
    assert plan_taints([no_schedule], "False", LATER, is_lost=False) is None
    assert plan_taints(_health(names.TAINT_UNREACHABLE), "False", LATER, is_lost=False) == [no_schedule]
    lost = plan_taints([no_schedule], "Unknown", LATER)
    assert lost is not None
    assert {taint["effect"]: taint["timeAdded"] for taint in lost} == {
        "NoSchedule": AT,
        "NoExecute": to_rfc3339(LATER),
    }, "the time of a toleration begins with the loss"


def test_time_in_which_no_answer_could_be_heard_does_not_count_against_a_cluster() -> None:
    no_schedule, no_execute = _health(names.TAINT_UNREACHABLE)
    drain = {"key": names.TAINT_DRAIN, "effect": "NoExecute", "timeAdded": AT}
    at_30 = {**no_execute, "timeAdded": to_rfc3339(NOW + timedelta(seconds=30))}
    assert postpone([no_schedule, no_execute, drain], 30.0, LATER) == [no_schedule, at_30, drain]
    assert postpone([no_execute], 1e12, LATER) == [{**no_execute, "timeAdded": to_rfc3339(LATER)}], "at most until now"
    damaged = {**no_execute, "timeAdded": "yesterday"}
    assert postpone([damaged], 30.0, LATER) == [damaged]


def test_nothing_changes_while_the_condition_stays() -> None:
    assert plan_taints([USERS, *_health(names.TAINT_UNREACHABLE)], "Unknown", LATER) is None
    assert plan_taints([USERS], "True", NOW) is None
    assert plan_taints(None, "True", NOW) is None
    assert plan_taints([*_health(names.TAINT_UNREACHABLE)], "", NOW) is None, "there is no such status"


def test_a_ready_cluster_loses_only_the_health_taints() -> None:
    drain = {"key": names.TAINT_DRAIN, "effect": "NoExecute", "timeAdded": AT}
    assert plan_taints([*_health(names.TAINT_NOT_READY), USERS, drain], "True", LATER) == [USERS, drain]
    assert plan_taints(_health(names.TAINT_NOT_READY), "True", LATER) == []


def test_a_cluster_that_becomes_unreachable_after_it_was_not_ready_keeps_its_time() -> None:
    assert plan_taints(_health(names.TAINT_NOT_READY), "Unknown", LATER) == _health(names.TAINT_UNREACHABLE)


def test_a_time_of_a_clock_that_was_ahead_is_now_from_here_on_whoever_wrote_it() -> None:
    drain = {"key": names.TAINT_DRAIN, "effect": "NoExecute", "timeAdded": "2027-01-01T00:00:00Z"}
    ahead = [drain, *_health(names.TAINT_UNREACHABLE, "2027-01-01T00:00:00Z")]
    planned = plan_taints(ahead, "Unknown", NOW)
    assert planned == [{**drain, "timeAdded": AT}, *_health(names.TAINT_UNREACHABLE)]
    assert plan_taints(planned, "Unknown", NOW) is None
    # Clocks of two machines may differ a little.
    assert plan_taints(_health(names.TAINT_UNREACHABLE, "2026-01-01T00:00:59Z"), "Unknown", NOW) is None


def test_a_user_who_removes_the_health_taints_gets_them_back() -> None:
    assert plan_taints([], "Unknown", LATER) == _health(names.TAINT_UNREACHABLE, to_rfc3339(LATER))
    no_schedule, no_execute = _health(names.TAINT_UNREACHABLE)
    assert plan_taints([no_execute], "Unknown", LATER) == [no_execute, {**no_schedule, "timeAdded": to_rfc3339(LATER)}]
    without_time = {**no_execute, "timeAdded": None}
    assert plan_taints([no_schedule, without_time], "Unknown", LATER) == [
        no_schedule,
        {**no_execute, "timeAdded": to_rfc3339(LATER)},
    ]


def test_changes_are_described_as_kubectl_shows_taints() -> None:
    assert describe_taint(USERS) == "dedicated=gpu:NoSchedule"
    added, removed = describe_changes([USERS, *_health(names.TAINT_NOT_READY)], _health(names.TAINT_UNREACHABLE))
    assert added == f"{names.TAINT_UNREACHABLE}:NoSchedule, {names.TAINT_UNREACHABLE}:NoExecute"
    assert removed == f"{names.TAINT_NOT_READY}:NoSchedule, {names.TAINT_NOT_READY}:NoExecute"


TAINTS = st.fixed_dictionaries(
    {"key": st.sampled_from([*sorted(names.HEALTH_TAINTS), names.TAINT_DRAIN, "own"])},
    optional={
        "effect": st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
        "value": st.sampled_from(["", "x", None]),
        "timeAdded": st.sampled_from([AT, to_rfc3339(LATER), None]),
    },
)


@given(st.lists(TAINTS, max_size=6), st.lists(st.sampled_from(["True", "False", "Unknown"]), min_size=1, max_size=6))
def test_whatever_the_history_the_taints_fit_the_condition(taints: list[dict[str, Any]], statuses: list[str]) -> None:
    """Users' taints stay in their order, a plan is stable, and while unready no time moves forward."""
    own = [taint for taint in taints if taint["key"] not in names.HEALTH_TAINTS]
    times: dict[str, str] = {}
    for number, ready in enumerate(statuses):
        now = LATER + timedelta(seconds=number)
        planned = plan_taints(taints, ready, now)
        taints = [dict(taint) for taint in (taints if planned is None else planned)]
        assert plan_taints(taints, ready, now) is None
        ours = [taint for taint in taints if taint["key"] in names.HEALTH_TAINTS]
        assert [taint for taint in taints if taint not in ours] == own
        assert sorted(taint["effect"] for taint in ours) == ([] if ready == "True" else ["NoExecute", "NoSchedule"])
        now_times = {taint["effect"]: taint["timeAdded"] for taint in ours}
        assert all(now_times[effect] == added for effect, added in times.items() if effect in now_times)
        times = now_times
