"""The state: what is counted, for how long, and once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from federation.features.queues.command import _row
from federation.features.queues.rules.admission import _part
from federation.features.queues.rules.configuration import (
    OPTIONS_MAX,
    Component,
    compile_flavor,
    compile_queue,
    options_for,
)
from federation.features.queues.rules.entries import Entry
from federation.features.queues.rules.facts import Lack, Option
from federation.features.queues.rules.queuestate import QueueState
from federation.features.queues.rules.queuestatus import compute_statuses
from federation.features.queues.rules.records import Record
from federation.planning.rendering.admittednodes import PodNodes
from federation.planning.rendering.names import QUEUE_RELEASED
from federation.scheduling.framework.types import PodSet, pod_shape
from federation.scheduling.jobqueues import Admission, Phase

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOW_S = NOW.timestamp()


def a_cluster(name: str = "one", nodes: int = 3, cores: int = 24, **labels: str) -> dict[str, Any]:
    conditions = [{"type": kind, "status": "True"} for kind in ("Joined", "Ready")]
    total, each = str(nodes * cores), {"cpu": str(cores), "pods": "110"}
    classes = [{"nodes": nodes, "largest": each, "free": [{"nodes": nodes, "resources": each}]}]
    resources = {"allocatable": {"cpu": total}, "available": {"cpu": total}, "nodeClasses": classes}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"conditions": conditions, "resources": resources},
    }


def a_state(cores: str = "48", **spec: Any) -> QueueState:
    state = QueueState()
    state.put_flavor("any", {"metadata": {"name": "any"}, "spec": {}})
    quota = {"name": "any", "resources": [{"name": "cpu", "nominalQuota": cores}]}
    body = {"flavors": [quota], "namespaceSelector": {}, **spec}
    state.put_queue("ml", {"metadata": {"name": "ml"}, "spec": body})
    state.put_namespace("team", {})
    state.put_job_queue("team", "q", {"clusterJobQueue": "ml"})
    state.put_cluster("one", a_cluster())
    return state


def an_entry(name: str, pods: int = 12, cores: int = 2, created_s: float = 0.0, **more: Any) -> Entry:
    shape = pod_shape((("cpu", cores * 1000),))
    sets = (PodSet("pods", pods, pods, shape),)
    components = (Component(frozenset(), pods, shape.request),)
    entry = Entry(
        f"team/{name}", "team", name, "Job", "q", created_s, components, sets, {"cpu": pods * cores * 1000}, (), None,
        None, frozenset(), frozenset(), has_finished=False, is_deleted=False,
    )  # fmt: skip
    return replace(entry, **more)


def admitted(name: str, pods: int = 12, **more: Any) -> Entry:
    admission = Admission(Phase.ADMITTED, "q", NOW, holds={"any": {"cpu": pods * 2000}}, clusters=["one"])
    return an_entry(name, pods, **{"admission": admission, "placed": frozenset(("one",)), **more})


def started(state: QueueState, now_s: float = NOW_S + 60) -> list[str]:
    return sorted(state.decide(now_s).admitted)


def written(state: QueueState) -> dict[str, Record]:
    return state.records(state.decide(NOW_S), NOW)


def used(state: QueueState) -> str:
    statuses = compute_statuses(state, state.decide(NOW_S), NOW_S)
    return str(statuses.cluster_queues["ml"]["usage"][0]["used"])


def test_a_job_is_counted_once_until_it_has_finished_however_often_it_is_observed() -> None:
    state = a_state()
    for _ in range(3):
        state.put(admitted("a"), NOW_S)
    assert used(state) == "24"
    for _ in range(3):
        state.put(admitted("a", has_finished=True), NOW_S + 60)
    assert used(state) == "0"
    assert state.means_s == {"ml": 60.0}
    state.remove("team/a", NOW_S + 90)
    state.remove("team/a", NOW_S + 90)
    assert (used(state), state.means_s) == ("0", {"ml": 60.0})


def test_another_ledger_of_the_same_objects_decides_the_same() -> None:
    """So a restart keeps the order: nothing but the objects is needed."""
    entries = [admitted("a"), *(an_entry(f"w{n}", 8, created_s=n) for n in range(4))]
    first, second = a_state(), a_state()
    for entry in entries:
        first.put(entry, NOW_S)
    for entry in reversed(entries):
        second.put(entry, NOW_S)
    assert first.decide(NOW_S) == second.decide(NOW_S)
    assert list(first.decide(NOW_S).waits) == ["team/w1", "team/w2", "team/w3"]


@pytest.mark.parametrize(("refusals", "wait_s"), [(1, 5), (2, 10), (4, 40), (20, 300)])
def test_a_job_that_the_scheduler_refused_is_tried_later(refusals: int, wait_s: int) -> None:
    state = a_state()
    admission = Admission(Phase.REFUSED, "q", NOW, refusals=refusals)
    state.put(an_entry("a", admission=admission), NOW_S)
    assert started(state, NOW_S + wait_s - 1) == []
    assert started(state, NOW_S + wait_s) == ["team/a"]


def test_clusters_that_the_scheduler_excluded_are_tried_again_after_a_while() -> None:
    state = a_state()
    admission = Admission(Phase.REFUSED, "q", NOW, refusals=1, excluded=["one"])
    state.put(an_entry("a", admission=admission), NOW_S)
    assert started(state, NOW_S + 599) == []
    assert started(state, NOW_S + 601) == ["team/a"]


def test_a_lost_job_is_in_front_until_it_was_lost_too_often() -> None:
    state = a_state("24", lossesMax=2)
    state.put(an_entry("old", created_s=1), NOW_S)
    for losses, expected in ((2, ["team/lost"]), (3, ["team/old"])):
        admission = Admission(Phase.LOST, "q", NOW, losses=losses)
        state.put(an_entry("lost", created_s=2, admission=admission), NOW_S)
        assert started(state) == expected
    assert state.problem_of(state.entries["team/lost"]) == "it lost its cluster 3 times, and 2 are allowed"


def test_an_evicted_job_holds_its_quota_until_it_has_left_and_waits_then() -> None:
    state = a_state("24")
    state.put(an_entry("next", created_s=9), NOW_S)
    leaving = admitted("a", admission=Admission(Phase.EVICTED, "q", NOW, holds={"any": {"cpu": 24_000}}), created_s=1)
    state.put(leaving, NOW_S)
    assert started(state) == []
    state.put(replace(leaving, placed=frozenset(), departed=frozenset(("one",))), NOW_S)
    assert started(state) == []
    state.put(replace(leaving, placed=frozenset()), NOW_S)
    assert started(state) == ["team/a"]


def test_a_queue_that_is_full_leaves_later_jobs_outside() -> None:
    state = a_state("24", pendingMax=2)
    for n in (5, 3, 4, 1, 2):
        state.put(an_entry(f"j{n}", 13, created_s=n), NOW_S)
    assert list(state.decide(NOW_S).waits) == ["team/j1", "team/j2"]


def test_evictions_are_budgeted_by_the_hour() -> None:
    state = a_state(preemption={"withinQueue": "LowerPriority", "evictionsPerHour": 1})
    state.put_priority("high", 9)
    state.put_queue(
        "ml",
        {
            "metadata": {"name": "ml"},
            "spec": {
                "flavors": [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": "48"}]}],
                "namespaceSelector": {},
                "priorityClassNames": ["high"],
                "preemption": {"withinQueue": "LowerPriority", "evictionsPerHour": 1},
            },
        },
    )
    state.put(admitted("a", 24), NOW_S)
    state.put(an_entry("high", 24, priority_classes=("high",)), NOW_S)
    assert list(state.decide(NOW_S).evicted) == ["team/a"]
    state.assume("team/a", state.records(state.decide(NOW_S), NOW)["team/a"], 0)
    state.revoke("team/a")
    assert list(state.decide(NOW_S + 3599).evicted) == []
    assert list(state.decide(NOW_S + 3601).evicted) == ["team/a"]


def test_the_oldest_job_counts_unless_time_brings_it_nothing() -> None:
    state = a_state()
    state.put(admitted("a", 24), NOW_S)
    state.put(an_entry("never", 100, created_s=NOW_S - 900), NOW_S)
    state.put(an_entry("later", 4, created_s=NOW_S - 300), NOW_S)
    state.put(an_entry("new", 4, created_s=NOW_S - 10), NOW_S)

    assert compute_statuses(state, state.decide(NOW_S), NOW_S).oldest_s == {"ml": 300.0}


def test_pods_that_no_empty_node_has_room_for_hold_no_cluster() -> None:
    state = a_state("1000")
    state.put(an_entry("odd", 4, 13), NOW_S)
    state.put(an_entry("even", 4, 12), NOW_S)
    option = Option({}, frozenset())
    assert [state.can_hold(f"team/{name}", "one", option) for name in ("odd", "even")] == [False, True]
    assert not state.can_hold("team/even", "gone", option)
    given = Option({}, frozenset(), (PodNodes({}, {"gpu": "a100"}),))
    assert not state.can_hold("team/even", "one", given), "no node has the label that its pods get"


def test_a_malformed_queue_admits_nothing_and_says_why() -> None:
    state = a_state(namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]})
    state.put(an_entry("a"), NOW_S)
    found = state.decide(NOW_S)
    assert found.waits["team/a"].lack is Lack.PROBLEM
    status = compute_statuses(state, found, NOW_S).cluster_queues["ml"]
    assert "Near" in str(status["message"])
    assert (status["pending"], status["admitted"]) == (0, 0)


def test_the_label_of_a_cluster_decides_whether_a_flavor_has_it() -> None:
    state = a_state()
    state.put_flavor("any", {"metadata": {"name": "any"}, "spec": {"clusterSelector": {"matchLabels": {"tier": "a"}}}})
    state.put(an_entry("a"), NOW_S)
    assert started(state) == []
    state.put_cluster("one", a_cluster(tier="a"))
    assert started(state) == ["team/a"]


def test_a_placed_job_that_moves_to_another_queue_keeps_what_it_holds() -> None:
    state = a_state()
    state.put(replace(admitted("a"), queue="other"), NOW_S)
    assert state.job_of("team/a").holds == {("any", "cpu"): 24_000}
    state.put(replace(admitted("a"), queue="other", placed=frozenset()), NOW_S)
    assert state.job_of("team/a").holds is None


@pytest.mark.parametrize(
    ("holds", "pods", "expected"),
    [
        ({"cpu": 24_000}, 12, False),
        ({"cpu": 24_000}, 13, True),
        ({"cpu": 24_000, "pods": 12}, 12, False),
        ({"cpu": 26_000, "pods": 12}, 13, True),
        ({"cpu": 26_000}, 13, False),
        ({"pods": 12}, 12, True),
    ],
    ids=["as admitted", "more cpu", "pods are counted", "more pods", "pods are not counted", "a new resource"],
)
def test_a_job_has_grown_beyond_its_admission(holds: dict[str, int], pods: int, expected: bool) -> None:
    state = a_state()
    admission = Admission(Phase.ADMITTED, "q", NOW, holds={"any": holds}, clusters=["one"])
    state.put(an_entry("a", pods, admission=admission, placed=frozenset(("one",))), NOW_S)
    assert state.job_of("team/a").has_grown is expected


def test_sixteen_choices_of_flavors_are_tried() -> None:
    components = tuple(Component(frozenset({("k", name)}), 1, (("cpu", 1000),)) for name in "abcde")
    limits = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": "9"}]} for name in ("spot", "base")]
    spec = {"flavors": limits, "namespaceSelector": {}}
    queue = compile_queue({"metadata": {"name": "ml"}, "spec": spec})
    flavors = {name: compile_flavor({"metadata": {"name": name}, "spec": {}}) for name in ("spot", "base")}
    found = options_for(components, queue, flavors, {"one": {}})
    assert len(found) == OPTIONS_MAX == 16


@pytest.mark.parametrize(("cores", "borrowed"), [("24", None), ("20", "4")])
def test_a_queue_borrows_what_it_uses_beyond_its_quota(cores: str, borrowed: str | None) -> None:
    state = a_state(cores)
    state.put(admitted("a"), NOW_S)
    (line,) = compute_statuses(state, state.decide(NOW_S), NOW_S).cluster_queues["ml"]["usage"]
    assert (line["used"], line.get("borrowed")) == ("24", borrowed)


@pytest.mark.parametrize(
    ("free", "needs", "part"),
    [
        ({"cpu": 5, "gpu": 8}, {"cpu": 10, "gpu": 10}, 0.5),
        ({"cpu": -5}, {"cpu": 10}, 0.0),
        ({}, {"cpu": 10}, 0.0),
        ({"cpu": 5}, {"gpu": 0, "cpu": 2}, 0.0),
        ({"cpu": 5}, {}, 1.0),
    ],
)
def test_the_smallest_part_that_is_free_counts(free: dict[str, int], needs: dict[str, int], part: float) -> None:
    assert _part(free, needs) == part


def test_a_queue_without_a_status_is_listed_without_numbers() -> None:
    queue = {"metadata": {"namespace": "team", "name": "q"}, "spec": {"clusterJobQueue": "ml"}}
    assert _row(queue) == ["team", "q", "ml", "", "", "", ""]


def test_what_a_job_does_not_need_any_more_is_left_to_its_queue_once_members_have_reported_it() -> None:
    state = a_state()
    smaller = {"released": False, "components": an_entry("a", 4).components}
    state.put(admitted("a", **smaller), NOW_S)
    assert written(state) == {}
    state.put(admitted("a", **smaller, has_reported=True), NOW_S)
    assert written(state)["team/a"].admission.holds == {"any": {"cpu": 8_000}}
    for changed in ({"has_finished": True}, {"placed": frozenset[str]()}, {"components": an_entry("a", 12).components}):
        state.put(admitted("a", **{**smaller, "has_reported": True, **changed}), NOW_S)
        assert written(state) == {}


def test_an_admission_counts_from_the_decision_on_and_is_written_again_until_its_object_is_seen() -> None:
    """The write may have been made, although its answer was lost."""
    state = a_state("24")
    state.put(an_entry("a"), NOW_S, 7)
    decision = written(state)["team/a"]
    state.assume("team/a", decision, 7)
    state.put(an_entry("before", created_s=-1.0, released=False), NOW_S, 8)
    assert (started(state), used(state), written(state)) == ([], "24", {"team/a": decision})
    assert not state.put(an_entry("a"), NOW_S, 7), "the version that it was decided for says nothing"
    assert (started(state), used(state)) == ([], "24")
    state.put(an_entry("a"), NOW_S, 9)
    assert (started(state), used(state), list(written(state))) == (["team/before"], "0", ["team/before"])


def test_an_admission_that_was_refused_counts_no_longer() -> None:
    state = a_state("24")
    state.put(an_entry("a"), NOW_S, 7)
    state.assume("team/a", written(state)["team/a"], 7)
    state.revoke("team/a")
    assert (started(state), used(state)) == (["team/a"], "0")
    state.assume("team/a", written(state)["team/a"], 6)
    assert (started(state), used(state)) == (["team/a"], "0"), "a write to an older version ends with a conflict"


def test_what_is_evicted_holds_its_quota_while_the_write_is_under_way_and_is_counted_once() -> None:
    state = a_state("24")
    state.put(admitted("a", is_suspended=True, released=False), NOW_S, 7)
    state.put(an_entry("next"), NOW_S, 8)
    for _ in range(2):
        state.assume("team/a", written(state)["team/a"], 7)
        assert (started(state), used(state), list(written(state))) == ([], "24", ["team/a"])
    assert [len(times) for times in state._evictions.values()] == [1]


def test_a_job_that_is_set_aside_while_it_leaves_holds_its_quota() -> None:
    state = a_state("24")
    leaving = Admission(Phase.EVICTED, "q", NOW, holds={"any": {"cpu": 24_000}})
    state.put(admitted("a", admission=leaving), NOW_S)
    state.record_fault("team/a", ValueError("odd"))
    state.put(an_entry("next"), NOW_S)
    assert (started(state), used(state)) == ([], "24")


def test_the_quota_of_what_left_a_lost_cluster_is_free_until_that_returns() -> None:
    state = a_state("24")
    leaving = Admission(Phase.EVICTED, "q", NOW, holds={"any": {"cpu": 24_000}})
    state.put(admitted("a", admission=leaving, placed=frozenset(), departed=frozenset(("two",))), NOW_S)
    assert used(state) == "0"
    state.put_cluster("two", a_cluster("two"))
    assert used(state) == "24"
    state.put_cluster("two", None)
    assert used(state) == "0"


def test_a_job_whose_author_suspends_it_gives_way_and_waits_until_that_ends() -> None:
    state = a_state()
    state.put(admitted("a", is_suspended=True, released=False), NOW_S)
    assert state.decide(NOW_S).evicted["team/a"].because == "its author suspended it"
    evicted = Admission(Phase.EVICTED, "q", NOW)
    waiting = an_entry("a", admission=evicted, is_suspended=True, released=False)
    state.put(waiting, NOW_S)
    assert (started(state), state.problem_of(waiting)) == (
        [],
        "its author suspended it; it waits for its turn as soon as that ends",
    )
    state.put(replace(waiting, is_suspended=False), NOW_S)
    assert started(state) == ["team/a"]


@pytest.mark.parametrize(
    ("is_suspended", "released", "expected"),
    [
        (True, True, None),
        (True, False, None),
        (False, False, None),
        (False, True, False),
        (True, None, True),
        (False, None, False),
    ],
)
def test_only_a_suspension_from_the_start_is_left_to_the_queue(
    is_suspended: bool, released: bool | None, expected: bool | None
) -> None:
    state = a_state()
    state.put(admitted("a", is_suspended=is_suspended, released=released), NOW_S)
    found = written(state).get("team/a")
    text = found.annotations.get(QUEUE_RELEASED) if found is not None else None
    assert {None: None, "true": True, "false": False}[text] is expected


def test_the_queue_that_admitted_a_job_pays_for_it_whatever_its_job_queue_names_later() -> None:
    state = a_state()
    job = admitted("a", 24)
    assert job.admission is not None
    state.put(replace(job, admission=structs.replace(job.admission, pays="ml")), NOW_S)
    state.put_job_queue("team", "q", None)
    state.put_job_queue("team", "q2", {"clusterJobQueue": "ml"})
    state.put(an_entry("b", 1, queue="q2"), NOW_S)
    assert (started(state), used(state)) == ([], "48")
    state.put_queue(
        "ml",
        {
            "metadata": {"name": "ml"},
            "spec": {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
        },
    )
    assert (started(state), used(state)) == ([], "48"), "the last valid version is in force"


@pytest.mark.parametrize(
    ("found", "expected"),
    [(frozenset({"low"}), True), (frozenset({"low", "high"}), False), (None, False)],
    ids=["the cluster lacks it", "the cluster has it", "not known"],
)
def test_a_job_waits_while_no_cluster_has_a_class_of_its_pods(found: frozenset[str] | None, *, expected: bool) -> None:
    state = a_state()
    state.put_classes("one", "PriorityClass", found)
    state.put(an_entry("a", classes=(("PriorityClass", "high"),)), NOW_S)
    assert bool(state.decide(NOW_S).waits) is expected
    assert ("PriorityClass high" in state.problem_of(state.entries["team/a"])) is expected


@pytest.mark.parametrize(
    ("unstarted_s", "after_s", "leaves"),
    [(NOW_S, 59, False), (NOW_S, 61, True), (None, 3_600, False)],
    ids=["a minute is not over", "no pod for a minute", "there was one"],
)
def test_a_job_leaves_a_cluster_that_creates_none_of_its_pods(
    unstarted_s: float | None, after_s: float, *, leaves: bool
) -> None:
    state = a_state()
    state.put(admitted("a", unstarted_s=unstarted_s), NOW_S)
    state.put(an_entry("next", created_s=1.0), NOW_S)
    decisions = state.decide(NOW_S + after_s)
    assert bool(decisions.evicted) is leaves
    if leaves:
        record = state.records(decisions, NOW + timedelta(seconds=after_s))["team/a"]
        assert record.admission.excluded == ["one"]
        state.put(an_entry("a", admission=record.admission), NOW_S)
        assert not state.job_of("team/a").may_displace


@pytest.mark.parametrize(
    ("queue", "job_queue", "because"),
    [
        ({"stopPolicy": "HoldAndDrain"}, {}, "ClusterJobQueue ml is stopped: spec.stopPolicy is HoldAndDrain"),
        ({}, {"stopPolicy": "HoldAndDrain"}, "JobQueue q is stopped: spec.stopPolicy is HoldAndDrain"),
        ({"stopPolicy": "Hold"}, {"stopPolicy": "Hold"}, ""),
    ],
)
def test_a_queue_that_is_stopped_starts_nothing_and_a_drained_one_ends_what_runs(
    queue: dict[str, str], job_queue: dict[str, str], because: str
) -> None:
    state = a_state(**queue)
    state.put_job_queue("team", "q", {"clusterJobQueue": "ml", **job_queue})
    state.put(admitted("a"), NOW_S)
    state.put(an_entry("next", created_s=1.0), NOW_S)
    decisions = state.decide(NOW_S)
    assert [each.because for each in decisions.evicted.values()] == ([because] if because else [])
    assert not decisions.admitted


def test_a_job_that_its_author_stopped_leaves_and_waits() -> None:
    state = a_state()
    state.put(admitted("a", is_held=True), NOW_S)
    assert state.decide(NOW_S).evicted["team/a"].because == "its author stopped it"
    state.put(an_entry("b", is_held=True), NOW_S)
    assert "queue-stop" in state.problem_of(state.entries["team/b"])


def test_the_list_has_every_job_that_is_counted_as_waiting() -> None:
    check = {"name": "budget", "url": "https://budget.example.com/"}
    state = a_state(admissionChecks=[check])
    state.put(an_entry("a"), NOW_S)
    decisions = state.decide(NOW_S)
    assert "team/a" in decisions.admitted
    status = compute_statuses(state, decisions, NOW_S).job_queues["team", "q"]
    assert status["pending"] == 1
    assert [each["waitsFor"] for each in status["waiting"]] == [
        "the admission checks of ClusterJobQueue ml have not answered yet"
    ]
