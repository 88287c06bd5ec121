"""Which cluster a workload leaves because it is unhealthy there: at most once each, and no more than the limit."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.features.applicationfailover.names import (
    REASON_BAD_TEMPLATE,
    REASON_HEALTHY,
    REASON_LIMIT,
    REASON_NOT_KNOWN,
    REASON_UNHEALTHY,
    REASON_UNHEALTHY_EVERYWHERE,
)
from federation.features.applicationfailover.rules.decide import (
    Evidence,
    Outcome,
    Situation,
    decide,
    patience_s,
    without_ended_purges,
)
from federation.planning.failover.application import NO_RECORD, ApplicationRecord, ApplicationRules, PurgeMode
from federation.planning.status.copyhealth import UNKNOWN, Health, Observed

START = datetime(2026, 1, 1, tzinfo=UTC)
GOOD = Observed(Health.HEALTHY)
CLUSTERS = ("east", "north", "west")


def bad(progress: int = 0) -> Observed:
    return Observed(Health.UNHEALTHY, f"{progress} of 3 replicas are available", progress)


class Story:
    """One workload over time, which leaves clusters at once when it is decided."""

    def __init__(self, *placed: str, **rules: Any) -> None:
        self.rules = ApplicationRules(**{"toleration_s": 60, **rules})
        self.placed: dict[str, int | None] = dict.fromkeys(placed)
        self.record: ApplicationRecord = NO_RECORD
        self.evidence: Mapping[str, Evidence] = {}
        self.template = "t1"
        self.now_s = 0.0
        self.left: list[str] = []

    def see(self, after_s: float = 0.0, **observed: Observed) -> Outcome:
        self.now_s += after_s
        outcome = decide(self.record, self.rules, self.evidence, self.situation(observed))
        self.record, self.evidence = outcome.record, outcome.evidence
        if outcome.leaves:
            self.left.append(outcome.leaves)
        return outcome

    def situation(self, observed: Mapping[str, Observed]) -> Situation:
        now = START + timedelta(seconds=self.now_s)
        return Situation(self.template, self.placed, observed, now, self.now_s, frozenset(CLUSTERS))

    def move(self, source: str, target: str) -> None:
        del self.placed[source]
        self.placed[target] = None

    def be_healthy(self, **observed: Observed) -> None:
        self.see(**observed)
        assert self.see(60, **observed).verdict.reason == REASON_HEALTHY


def test_a_workload_leaves_after_its_toleration() -> None:
    story = Story("east")
    story.be_healthy(east=GOOD)
    assert story.see(1, east=bad()).verdict is None, "a rollout is not reported"
    outcome = story.see(20, east=bad())
    assert outcome.verdict.reason == REASON_UNHEALTHY
    assert outcome.after_s == 40
    assert not story.see(39, east=bad()).leaves
    outcome = story.see(1, east=bad())
    assert outcome.leaves == "east"
    assert outcome.record.purges["east"].mode is PurgeMode.GRACIOUSLY
    assert "0 of 3 replicas are available" in outcome.record.evicted["east"].reason


def test_a_copy_that_becomes_better_is_given_time() -> None:
    story = Story("east")
    story.be_healthy(east=GOOD)
    for progress in range(3):
        assert not story.see(59, east=bad(progress)).leaves
    assert not story.see(59, east=bad(1)).leaves, "worse again is no progress"
    assert story.see(1, east=bad(1)).leaves


def test_a_crash_loop_that_is_ready_for_moments_is_unhealthy() -> None:
    story = Story("east")
    story.be_healthy(east=GOOD)
    story.see(1, east=bad())
    for _ in range(3):
        story.see(10, east=GOOD)
        outcome = story.see(10, east=bad())
    assert outcome.leaves == "east"


def test_what_was_healthy_for_moments_only_has_a_bad_template() -> None:
    story = Story("east")
    story.see(east=GOOD)
    story.see(10, east=bad())
    outcome = story.see(4000, east=bad())
    assert outcome.verdict.reason == REASON_BAD_TEMPLATE
    assert not story.left


def test_moves_wait_longer_and_end_at_the_limit() -> None:
    story = Story("east", max_moves=2)
    story.be_healthy(east=GOOD)
    story.see(1, east=bad())
    assert story.see(60, east=bad()).leaves == "east"
    story.move("east", "north")
    story.see(1, north=bad())
    assert not story.see(60, north=bad()).leaves
    assert story.see(60, north=bad()).leaves == "north"
    story.move("north", "west")
    story.see(1, west=bad())
    outcome = story.see(100_000, west=bad())
    assert outcome.verdict.reason == REASON_LIMIT
    assert "left east, north" in outcome.verdict.message
    story.template = "t2"
    assert story.see(1, west=bad()).record.evicted == {}
    assert story.see(100_000, west=bad()).verdict.reason == REASON_BAD_TEMPLATE


def test_patience_doubles_up_to_an_hour_or_the_toleration() -> None:
    assert [patience_s(ApplicationRules(300), moves) for moves in range(6)] == [300, 600, 1200, 2400, 3600, 3600]
    assert patience_s(ApplicationRules(7200), 3) == 7200


def test_one_cluster_leaves_at_a_time_and_none_if_all_are_bad() -> None:
    story = Story("east", "north", "west")
    story.be_healthy(east=GOOD, north=GOOD, west=GOOD)
    story.see(1, east=bad(), north=bad(), west=GOOD)
    assert story.see(60, east=bad(), north=bad(), west=GOOD).leaves == "east"
    outcome = story.see(1000, east=bad(), north=bad(), west=GOOD)
    assert not outcome.leaves, "the first one is still on its way"
    del story.placed["east"]
    assert story.see(1000, north=bad(), west=bad()).verdict.reason == REASON_UNHEALTHY_EVERYWHERE


def test_an_unknown_health_is_no_evidence() -> None:
    story = Story("east")
    story.be_healthy(east=GOOD)
    story.see(1, east=bad())
    assert story.see(50, east=UNKNOWN).verdict.reason == REASON_NOT_KNOWN
    assert not story.see(50, east=bad()).leaves


def test_a_move_without_a_target_is_withdrawn_when_the_copy_is_healthy() -> None:
    story = Story("east", max_moves=1)
    story.be_healthy(east=GOOD)
    story.see(1, east=bad())
    assert story.see(60, east=bad()).leaves == "east"
    story.see(10, east=GOOD)
    outcome = story.see(60, east=GOOD)
    assert outcome.record.evicted == {}
    assert outcome.record.purges == {}


def test_old_copies_leave_as_their_mode_says() -> None:
    for mode, observed, after_s, confirmed, is_gone in (
        (PurgeMode.GRACIOUSLY, {"west": bad()}, 599, (), False),
        (PurgeMode.GRACIOUSLY, {"west": bad()}, 600, (), True),
        (PurgeMode.GRACIOUSLY, {"west": GOOD}, 1, (), True),
        (PurgeMode.GRACIOUSLY, {}, 1, (), False),
        (PurgeMode.NEVER, {"west": GOOD}, 10_000, (), False),
        (PurgeMode.NEVER, {"west": GOOD}, 1, ("east",), True),
        (PurgeMode.DIRECTLY, {"west": GOOD}, 1, (), False),
    ):
        story = Story("east", purge_mode=mode)
        story.be_healthy(east=GOOD)
        story.see(1, east=bad())
        story.see(60, east=bad())
        story.move("east", "west")
        story.now_s += after_s
        record, _ = without_ended_purges(story.record, 600, story.situation(observed), confirmed)
        assert ("east" not in record.purges) is is_gone, (mode, observed, after_s)


@given(
    st.lists(
        st.tuples(st.sampled_from((1, 30, 90, 700, 5000)), st.lists(st.sampled_from("gbu"), min_size=3, max_size=3)),
        max_size=40,
    ),
    st.integers(1, 3),
    st.booleans(),
)
def test_no_history_exceeds_the_limit_or_leaves_a_cluster_twice(
    history: list[tuple[int, list[str]]], max_moves: int, is_single: bool
) -> None:
    story = Story(*(CLUSTERS[:1] if is_single else CLUSTERS), max_moves=max_moves)
    found = {"g": GOOD, "b": bad(), "u": UNKNOWN}
    for after_s, letters in history:
        seen = {name: found[letter] for name, letter in zip(CLUSTERS, letters, strict=True) if name in story.placed}
        outcome = story.see(after_s, **seen)
        assert outcome.after_s is None or outcome.after_s > 0
        if leaves := outcome.leaves:
            assert seen[leaves].health is Health.UNHEALTHY
            targets = [name for name in CLUSTERS if name not in story.record.evicted and name not in story.placed]
            del story.placed[leaves]
            story.placed |= dict.fromkeys(targets[:1])
    assert len(story.left) == len(set(story.left)) <= max_moves
