"""A fault in the first of 50 clusters is rolled back in time, and no clean rollout is, whatever the noise."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.features.waves.test_waveplan import NOW

from federation.features.waves.rules.objectivegate import Judged, ObjectivesDue
from federation.features.waves.rules.objectives import Counts, Judgement, Measured, Verdict, judge_all
from federation.features.waves.rules.report import to_status
from federation.features.waves.rules.waveplan import Plan, objectives_due, plan_waves
from federation.planning.waves.rolloutstatus import record_of
from federation.planning.waves.waverecord import Observed, Phase, Record
from federation.planning.waves.waverules import Gate, Objective, Rules, Wave
from federation.planning.waves.wishes import Wishes

CLUSTERS = [f"c{index:02}" for index in range(50)]
ERRORS = Objective("errors", "main", "http_requests_total", bad={"code": "5.."})
SCRAPE_S, SOAK_S, TIMEOUT_S = 30, 300, 600
CANARY = Wave("canary", frozenset({"c00"}), gate=Gate(soak_s=SOAK_S, objectives=(ERRORS,)), timeout_s=TIMEOUT_S)
RULES = Rules("PropagationPolicy default/web", (CANARY, Wave("remaining")), rolls_back=True)
Measure = Callable[[ObjectivesDue, float], Judgement]


class Rollout:
    """One rollout of v2 over 50 clusters whose members change at once, on a clock that moves by ten seconds."""

    def __init__(self, measure: Measure, rules: Rules = RULES) -> None:
        self.measure, self.rules = measure, rules
        self.now, self.wishes = NOW, Wishes()
        self.live = dict.fromkeys(CLUSTERS, "v1")
        self.touched: set[str] = set()
        self.record = Record()
        self.step("v1")

    def step(self, wanted: str = "v2") -> Plan:
        observed = {name: Observed(wanted, live) for name, live in self.live.items()}
        due, judged = objectives_due(self.record, self.rules, observed), None
        if due is not None:
            seconds = (self.now - due.held_since).total_seconds()
            judged = Judged(due.wave, due.held_since, self.measure(due, seconds))
        plan = plan_waves(self.record, self.rules, observed, self.wishes, self.now, judged=judged)
        status = to_status(plan, None, observed, {}, {}, policy="", generation=1, now=self.now)
        self.record = record_of(status)
        for name, revision in plan.approved.items():
            self.live[name] = revision
        self.touched |= {name for name, live in self.live.items() if live == "v2"}
        self.now += timedelta(seconds=10)
        return plan

    def run(self, seconds: float) -> float:
        """Step until the phase is no longer Progressing, at most so long; return when the canary's gate held first."""
        began, held = self.now, None
        while (self.now - began).total_seconds() <= seconds:
            self.step()
            if held is None and any(wave.held_since for wave in self.record.waves):
                held = self.now
            if self.record.phase is not Phase.PROGRESSING:
                break
        return (self.now - (held or began)).total_seconds()


class Traffic:
    """100 requests a second in each cluster; its share of bad ones has noise of cluster, time and number."""

    def __init__(self, seed: int, share: float, new_share: float) -> None:
        self.random = random.Random(seed)
        self.share, self.new_share = share, new_share
        self.levels = {name: self.random.lognormvariate(0, 0.2) for name in CLUSTERS}
        self.before = {name: self._count(name, share, 60) for name in CLUSTERS}
        self.since: dict[str, Counts] = dict.fromkeys(CLUSTERS, Counts())

    def _count(self, name: str, share: float, steps: int) -> Counts:
        total = bad = 0.0
        for _ in range(steps):
            requests = self.random.gauss(1000, 1000**0.5)
            expected = requests * min(share * self.levels[name] * self.random.lognormvariate(0, 0.3), 1)
            total, bad = total + requests, bad + max(self.random.gauss(expected, expected**0.5), 0)
        return Counts(bad, total)

    def measure(self, due: ObjectivesDue, seconds: float) -> Judgement:
        for name in CLUSTERS:
            seen = self._count(name, self.new_share if name in due.clusters else self.share, 1)
            self.since[name] = Counts(self.since[name].bad + seen.bad, self.since[name].total + seen.total)
        if seconds < 2 * SCRAPE_S:
            return judge_all(due.objectives, {"errors": Measured({}, {}, {}, "measured after two scrapes")})
        new = {name: self.since[name] for name in due.clusters}
        before = {name: self.before[name] for name in due.clusters}
        waiting = {name: self.since[name] for name in due.waiting}
        return judge_all(due.objectives, {"errors": Measured(new, before, waiting)})


def is_rolled_back_in_time(seed: int) -> bool:
    traffic = Traffic(seed, 0.01, 0.03)
    rollout = Rollout(traffic.measure)
    took_s = rollout.run(7200)
    is_back = rollout.record.phase is Phase.ROLLING_BACK
    rollout.step()
    is_back = is_back and set(rollout.live.values()) == {"v1"}
    return is_back and took_s <= SOAK_S + 2 * SCRAPE_S + 10 and rollout.touched == {"c00"}


def is_complete(seed: int) -> bool:
    rollout = Rollout(Traffic(seed, 0.01, 0.01).measure)
    rollout.run(7200)
    return rollout.record.phase is Phase.COMPLETE and set(rollout.live.values()) == {"v2"}


@pytest.mark.parametrize("seed", range(5))
def test_a_fault_in_the_first_of_50_clusters_is_rolled_back_in_time(seed: int) -> None:
    assert is_rolled_back_in_time(seed)


@pytest.mark.parametrize("seed", range(5))
def test_a_clean_rollout_with_noise_completes(seed: int) -> None:
    assert is_complete(seed)


@pytest.mark.nightly
def test_100_faults_are_rolled_back_and_100_clean_rollouts_complete() -> None:
    assert [seed for seed in range(100) if not is_rolled_back_in_time(seed)] == []
    assert [seed for seed in range(100) if not is_complete(seed)] == []


def always(verdict: Verdict) -> Measure:
    return lambda _due, _seconds: Judgement(verdict, "as measured")


def test_no_data_holds_without_a_limit_of_time() -> None:
    rollout = Rollout(always(Verdict.NO_DATA))
    rollout.run(30 * TIMEOUT_S)
    plan = rollout.step()
    assert (rollout.record.phase, rollout.touched) == (Phase.PROGRESSING, {"c00"})
    assert plan.waits == "wave canary waits for its objectives: as measured"
    assert plan.requeue_after_s == 10
    rollout.measure = always(Verdict.HOLDS)
    rollout.run(60)
    assert rollout.record.phase is Phase.COMPLETE


def test_a_share_above_its_limit_that_may_be_chance_fails_in_time() -> None:
    rollout = Rollout(always(Verdict.UNSURE))
    took_s = rollout.run(10 * TIMEOUT_S)
    assert rollout.record.phase is Phase.ROLLING_BACK
    assert SOAK_S + TIMEOUT_S <= took_s <= SOAK_S + TIMEOUT_S + 20
    assert rollout.record.reason == "the objectives of wave canary were not met 600 s after its soak: as measured"


def test_a_certain_failure_waits_for_no_soak_but_for_the_end_of_a_pause() -> None:
    rollout = Rollout(always(Verdict.HOLDS))
    rollout.step()
    rollout.step()
    rollout.wishes, rollout.measure = Wishes(is_paused=True), always(Verdict.FAILS)
    rollout.run(60)
    assert rollout.record.phase is Phase.PROGRESSING
    rollout.wishes = Wishes()
    rollout.step()
    assert rollout.record.phase is Phase.ROLLING_BACK
    assert rollout.record.reason == "the objectives of wave canary were not met: as measured"


def test_a_judgement_about_another_time_or_wave_counts_as_none() -> None:
    rollout = Rollout(always(Verdict.HOLDS))
    rollout.run(100)
    observed = {name: Observed("v2", live) for name, live in rollout.live.items()}
    (held,) = [wave.held_since for wave in rollout.record.waves if wave.held_since]
    later = held + timedelta(seconds=SOAK_S)
    failed = Judgement(Verdict.FAILS, "")
    for judged in (Judged("other", held, failed), Judged("canary", later, failed)):
        plan = plan_waves(rollout.record, RULES, observed, Wishes(), later, judged=judged)
        assert plan.record.phase is Phase.PROGRESSING
        assert plan.waits == "wave canary waits for its objectives: objectives are not measured yet"


def test_a_stopped_last_wave_with_objectives_does_not_complete_by_itself() -> None:
    everywhere = Rules("p", (replace(CANARY, clusters=None), Wave("remaining")))
    rollout = Rollout(always(Verdict.FAILS), everywhere)
    rollout.run(100)
    for _ in range(3):
        assert rollout.step().record.phase is Phase.STOPPED
