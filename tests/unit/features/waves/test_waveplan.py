"""Which clusters of a rollout change when: waves, gates, pauses, failures, and the way back."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.apimachinery import conditions
from federation.apimachinery.errors import Bug
from federation.features.waves.rules import waveplan
from federation.features.waves.rules.report import to_status
from federation.features.waves.rules.waveplan import Plan, plan_waves
from federation.planning.changehold import Hold
from federation.planning.failover.clusterbudgets import BudgetedCluster, DisruptionBudgets
from federation.planning.waves import waverecord
from federation.planning.waves.rolloutstatus import record_of, waiting_wave
from federation.planning.waves.waverecord import Observed, Phase, Record
from federation.planning.waves.waverules import (
    REMAINING,
    Gate,
    HTTPCheck,
    OrderedLabel,
    Rules,
    Wave,
    compile_rules,
    find_rules,
    to_annotation,
)
from federation.planning.waves.wishes import Wishes

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CANARY = Wave("canary", clusters=frozenset({"a"}), gate=Gate(soak_s=60))
RULES = Rules("PropagationPolicy default/web", (CANARY, Wave("remaining")))


class Simulation:
    """Members that get what a plan approves, on a clock that moves by hand."""

    def __init__(self, rules: Rules = RULES, clusters: str = "abc", revision: str = "v1") -> None:
        self.rules, self.now, self.wishes = rules, NOW, Wishes()
        self.live: dict[str, str | None] = dict.fromkeys(clusters, revision)
        self.wanted: dict[str, str] = dict.fromkeys(clusters, revision)
        self.problems: dict[str, str] = {}
        self.failed: set[str] = set()
        self.broken: set[str] = set()
        self.out_of_reach: set[str] = set()
        self.labels: Mapping[str, Mapping[str, str]] = {}
        self.http, self.was_away = "", False
        self.budgets: list[Mapping[str, Any]] = []
        self.frozen: dict[str, Hold] = {}
        self.elsewhere: Mapping[str, datetime] = {}
        self.record = Record()
        self.plan: Plan = self.step()

    def observed(self) -> dict[str, Observed]:
        return {
            name: Observed(
                self.wanted[name],
                live,
                self.labels.get(name, {}),
                self.problems.get(name, ""),
                has_failed=name in self.failed,
                is_broken=name in self.broken,
                is_out_of_reach=name in self.out_of_reach,
            )
            for name, live in self.live.items()
        }

    def step(self, after_s: float = 0) -> Plan:
        """Plan, deliver what is approved, and survive a restart through the status."""
        self.now += timedelta(seconds=after_s)
        observed = self.observed()
        clusters = [BudgetedCluster(name, {}, True, None, self.elsewhere.get(name)) for name in self.live]
        budgets = DisruptionBudgets(clusters, self.budgets, self.now, self.frozen)
        self.plan = plan_waves(
            self.record, self.rules, observed, self.wishes, self.now, self.http, budgets, was_away=self.was_away
        )
        status = to_status(self.plan, None, observed, {}, {}, policy="", generation=1, now=self.now)
        self.record = record_of(status)
        assert self.record == self.plan.record
        for name, revision in self.plan.approved.items():
            if name in self.live and name not in self.frozen:
                self.live[name] = revision
        return self.plan

    def change(self, revision: str) -> Plan:
        self.wanted = dict.fromkeys(self.live, revision)
        return self.step()


def test_the_first_wave_changes_first_and_the_next_after_its_gate_has_held_for_the_soak_time() -> None:
    world = Simulation()
    world.change("v2")
    assert world.live == {"a": "v2", "b": "v1", "c": "v1"}
    world.step()
    assert world.plan.requeue_after_s == 60
    assert "soaks until 2026-01-01T00:01:00Z" in world.plan.waits
    world.step(59)
    assert world.live["b"] == "v1"
    world.step(1)
    assert world.live == {"a": "v2", "b": "v2", "c": "v2"}
    assert world.record.phase is Phase.PROGRESSING
    world.step()
    assert world.record.phase is Phase.COMPLETE
    assert {cluster.good for cluster in world.record.clusters.values()} == {"v2"}


def test_a_gate_that_is_interrupted_soaks_again() -> None:
    world = Simulation()
    world.change("v2")
    world.step()
    world.problems["a"] = "1 of 2 replicas are ready"
    world.step(50)
    assert world.plan.waits == "wave canary: a: 1 of 2 replicas are ready"
    world.problems.clear()
    world.step(5)
    world.step(59)
    assert world.live["b"] == "v1"
    world.step(1)
    assert world.live["b"] == "v2"


def test_a_wave_that_does_not_pass_in_time_stops_the_rollout_until_the_next_wave_is_approved() -> None:
    world = Simulation()
    world.change("v2")
    world.problems["a"] = "0 of 2 replicas are ready"
    world.step(599)
    assert world.record.phase is Phase.PROGRESSING
    world.step(1)
    assert world.record.phase is Phase.STOPPED
    assert world.record.reason == "the gate of wave canary did not hold for 600 s: a: 0 of 2 replicas are ready"
    assert world.plan.is_approval_needed
    world.step(10_000)
    assert world.live == {"a": "v2", "b": "v1", "c": "v1"}
    world.wishes = Wishes(approved_revision=1, approved_wave="remaining")
    world.step()
    assert world.live["b"] == "v2"


def test_a_member_that_has_given_up_fails_its_wave_at_once_and_only_changed_clusters_return() -> None:
    world = Simulation(replace(RULES, rolls_back=True))
    world.change("v2")
    world.problems["a"], world.failed = "its progress deadline is exceeded", {"a"}
    world.step(1)
    assert world.record.phase is Phase.ROLLING_BACK
    assert world.plan.restored == {"a"}
    assert world.plan.approved == {"a": "v1"}
    world.step()
    assert world.record.phase is Phase.ROLLED_BACK
    assert world.live == dict.fromkeys("abc", "v1")
    # It stays so until the template changes again.
    world.step(10_000)
    assert world.plan.approved == {"a": "v1"}
    world.problems.clear()
    world.failed.clear()
    assert world.change("v3").approved == {"a": "v3"}


def test_a_change_back_after_a_rollback_completes_at_once() -> None:
    world = Simulation(replace(RULES, rolls_back=True))
    world.change("v2")
    world.failed, world.problems = {"a"}, {"a": "failed"}
    world.step(1)
    world.step()
    world.failed, world.problems = set(), {}
    world.change("v1")
    assert world.record.phase is Phase.COMPLETE
    assert world.plan.approved == dict.fromkeys("abc", "v1")


def test_a_new_template_in_the_middle_starts_over_and_returns_to_the_last_complete_one() -> None:
    world = Simulation(replace(RULES, rolls_back=True))
    world.change("v2")
    world.change("v3")
    assert (world.record.revision, world.live) == (2, {"a": "v3", "b": "v1", "c": "v1"})
    world.failed, world.problems = {"a"}, {"a": "failed"}
    world.step(1)
    world.step()
    assert world.live == dict.fromkeys("abc", "v1")


def test_a_cluster_that_an_incomplete_rollout_changed_returns_although_its_wave_has_not_started() -> None:
    rules = Rules("p", (Wave("one", clusters=frozenset("b")), Wave("remaining")), rolls_back=True)
    world = Simulation(RULES)
    world.change("v2")  # a has v2
    world.rules = rules
    world.change("v3")  # b comes first now
    assert world.live == {"a": "v2", "b": "v3", "c": "v1"}
    world.failed, world.problems = {"b"}, {"b": "failed"}
    world.step(1)
    world.step()
    assert world.live == dict.fromkeys("abc", "v1")


def test_a_wave_with_pause_waits_for_the_approval_of_this_rollout() -> None:
    rules = Rules("p", (Wave("one", clusters=frozenset("a")), Wave("two", is_paused=True), Wave("remaining")))
    world = Simulation(rules)
    world.wishes = Wishes(approved_revision=1, approved_wave="two")
    world.change("v2")
    world.step()
    assert world.live == dict.fromkeys("abc", "v2")
    world.step()
    world.change("v3")
    world.step()
    assert world.plan.waits == "wave two waits for approval"
    assert world.live == {"a": "v3", "b": "v2", "c": "v2"}


def test_an_abort_changes_no_other_cluster_and_no_approval_overrides_it() -> None:
    world = Simulation()
    world.change("v2")
    world.wishes = Wishes(abort=1, approved_revision=1, approved_wave="remaining")
    world.step(1000)
    world.step(1000)
    assert (world.record.phase, world.record.reason) == (Phase.STOPPED, "aborted by a user")
    assert world.live == {"a": "v2", "b": "v1", "c": "v1"}
    # It concerns this rollout only.
    world.change("v3")
    assert world.live["a"] == "v3"


def test_a_user_rolls_back_a_rollout_that_has_stopped_or_is_under_way() -> None:
    for reason in ("aborted by a user", "rolled back by a user"):
        world = Simulation()
        world.change("v2")
        world.step()
        if reason.startswith("aborted"):
            world.wishes = Wishes(abort=1)
            world.step()
            assert (world.record.phase, world.live["a"]) == (Phase.STOPPED, "v2")
        world.wishes = replace(world.wishes, roll_back=1)
        world.step()
        world.step()
        assert (world.record.phase, world.record.reason) == (Phase.ROLLED_BACK, reason)
        assert world.live == dict.fromkeys("abc", "v1")
        world.change("v3")
        assert world.live["a"] == "v3", "it concerns that rollout only"


def test_an_aborted_rollout_that_has_not_begun_can_be_resumed_at_its_first_wave() -> None:
    rules = Rules("p", (Wave("one", clusters=frozenset("a"), is_paused=True), Wave("remaining")))
    world = Simulation(rules)
    world.change("v2")
    world.wishes = Wishes(abort=1)
    world.step()
    world.wishes = Wishes(approved_revision=1, approved_wave="one")
    world.step()
    world.step()
    assert world.live == {"a": "v2", "b": "v2", "c": "v2"}


def test_a_paused_rollout_does_not_start() -> None:
    world = Simulation()
    world.wishes = Wishes(is_paused=True)
    world.change("v2")
    world.step(100)
    assert world.live == dict.fromkeys("abc", "v1")
    assert world.plan.waits == "paused by a user"
    world.wishes = Wishes()
    assert world.step().approved == {"a": "v2"}


def test_a_gate_with_a_request_needs_its_success() -> None:
    wave = Wave("canary", clusters=frozenset("a"), gate=Gate(http=HTTPCheck("http://slo.example/ok")))
    world = Simulation(Rules("p", (wave, Wave("remaining"))))
    world.change("v2")
    assert waveplan.http_check_due(world.record, world.rules, world.observed()) == wave.gate.http
    world.http = "HTTP status 503"
    world.step(5)
    assert world.plan.waits == "wave canary: http://slo.example/ok: HTTP status 503"
    assert world.plan.requeue_after_s == waveplan.HTTP_INTERVAL_S
    world.http = ""
    world.step()
    assert world.live["b"] == "v2"


def test_the_share_of_a_wave_is_rounded_up_and_leaves_the_others_to_later_waves() -> None:
    tiers = (Wave("ten", share=10), Wave("half", labels=(("tier", "prod"),), share=50), Wave("remaining"))
    world = Simulation(Rules("p", tiers), "abcdefgh")
    world.labels = {name: {"tier": "prod"} for name in "cdefgh"}
    world.change("v2")
    members = {wave.name: waveplan.clusters_of_wave(world.record, wave.name) for wave in world.record.waves}
    assert members == {"ten": ["a"], "half": ["c", "d", "e"], "remaining": ["b", "f", "g", "h"]}


def test_clusters_that_the_change_does_not_reach_are_in_no_wave() -> None:
    world = Simulation()
    world.wanted["b"] = "v2"
    world.step()
    assert [wave.name for wave in world.record.waves] == ["remaining"]
    assert world.live == {"a": "v1", "b": "v2", "c": "v1"}


def test_clusters_that_join_and_leave_do_not_disturb_a_rollout() -> None:
    world = Simulation()
    world.change("v2")
    world.live["d"] = world.wanted["d"] = "v2"  # created with the new template
    del world.live["b"]
    world.step()
    assert (world.record.revision, world.record.clusters["d"].wave) == (1, "")
    world.step(60)
    world.step()
    assert (world.record.phase, world.live) == (Phase.COMPLETE, dict.fromkeys("acd", "v2"))


def test_a_last_wave_that_recovers_after_a_failure_is_complete() -> None:
    world = Simulation(Rules("p", (Wave("remaining"),)))
    world.change("v2")
    world.problems["c"] = "not ready"
    world.step(600)
    world.step(60)
    assert world.record.phase is Phase.STOPPED
    world.problems.clear()
    world.step()
    assert world.record.phase is Phase.COMPLETE


@pytest.mark.parametrize("phase", list(waverecord.Phase))
@pytest.mark.parametrize("event", list(waverecord.Event))
def test_every_pair_of_phase_and_event_is_present_or_an_error(phase: Phase, event: waverecord.Event) -> None:
    record = Record(phase=phase)
    if (phase, event) in waverecord.PHASES:
        assert waveplan._move(record, event).phase is waverecord.PHASES[phase, event]
    else:
        with pytest.raises(Bug):
            waveplan._move(record, event)


ONE_AT_A_TIME = {"metadata": {"name": "eu"}, "spec": {"maxUnavailable": 1}}


def test_a_wave_changes_as_many_clusters_at_a_time_as_a_budget_allows() -> None:
    world = Simulation(Rules("p", (Wave("remaining"),)))
    world.budgets = [ONE_AT_A_TIME]
    world.problems = dict.fromkeys("abc", "0 of 2 replicas are ready")
    world.change("v2")
    assert world.live == {"a": "v2", "b": "v1", "c": "v1"}
    assert world.plan.disrupted == {"a": NOW}
    world.step(60)
    assert "b: ClusterDisruptionBudget eu allows 1 unavailable clusters" in world.plan.waits
    assert (world.plan.held.keys(), world.live["b"]) == ({"b", "c"}, "v1")
    del world.problems["a"]
    world.step()
    assert world.live == {"a": "v2", "b": "v2", "c": "v1"}
    world.problems.clear()
    world.step()
    world.step()
    assert world.record.phase is Phase.COMPLETE
    assert (world.plan.disrupted, world.plan.held) == ({}, {})


def test_a_wave_waits_for_disruptions_by_others_and_the_wait_does_not_count_against_its_timeout() -> None:
    world = Simulation()
    world.budgets, world.elsewhere = [ONE_AT_A_TIME], {"c": NOW}
    world.change("v2")
    world.step(10_000)
    assert (world.record.phase, world.live["a"]) == (Phase.PROGRESSING, "v1")
    # The cluster that is disrupted anyway may be changed: it counts once.
    world.elsewhere = {"a": NOW}
    world.problems["a"] = "broken"
    world.step()
    assert world.live["a"] == "v2"
    world.step(599)
    assert world.record.phase is Phase.PROGRESSING
    world.step(1)
    assert world.record.phase is Phase.STOPPED
    assert world.plan.disrupted == {}


def test_a_wave_starts_when_the_window_of_a_budget_opens() -> None:
    world = Simulation()
    window = {"start": "2026-01-01T00:01:00Z", "end": "2026-01-01T01:00:00Z"}
    world.budgets = [{"metadata": {"name": "eu"}, "spec": {"maxUnavailable": 1, "windows": [window]}}]
    world.change("v2")
    assert world.plan.requeue_after_s == 60
    assert "a: ClusterDisruptionBudget eu allows no disruption now" in world.plan.waits
    world.step(60)
    assert world.live["a"] == "v2"


def test_a_template_that_repairs_a_cluster_is_not_held_by_a_drain_that_waits_for_the_cluster() -> None:
    world = Simulation()
    world.budgets = [ONE_AT_A_TIME]
    world.change("broken")
    world.problems["a"] = "0 of 2 replicas are ready"
    world.step(5)
    world.elsewhere = {"b": world.now}  # a drain, which waits because it began later
    world.step(5)
    assert world.change("v2").disrupted == {"a": NOW}
    assert world.live["a"] == "v2"
    world.problems.clear()
    world.step()
    assert world.plan.disrupted == {}


def test_a_rollback_asks_no_budget_and_counts_as_a_disruption() -> None:
    world = Simulation(Rules("p", (Wave("remaining"),), rolls_back=True))
    world.change("v2")
    world.budgets = [{"metadata": {"name": "eu"}, "spec": {"maxUnavailable": 0}}]
    world.failed, world.problems = {"b"}, {"b": "failed"}
    world.step()
    assert world.plan.restored == {"a", "b", "c"}
    assert world.plan.disrupted.keys() == {"a", "b", "c"}
    world.problems.clear()
    world.step()
    assert (world.record.phase, world.plan.disrupted) == (Phase.ROLLED_BACK, {})


ABSENT = Wave("canary", clusters=frozenset("x"), gate=Gate(soak_s=60))


@pytest.mark.parametrize(
    "wave",
    [
        ABSENT,
        Wave("eu", labels=(("region", "eu"),)),
        Wave("approved", frozenset("x"), gate=Gate(False), is_paused=True),
    ],
    ids=["a canary", "labels that no cluster has", "an approval without a gate"],
)
def test_a_wave_without_clusters_holds_the_others_until_it_is_passed_by_an_approval(wave: Wave) -> None:
    world = Simulation(Rules("p", (wave, Wave("remaining"))))
    world.change("v2")
    world.step(10_000)
    assert world.live == dict.fromkeys("abc", "v1")
    assert world.plan.waits.startswith(f"wave {wave.name} has no cluster: none ")
    assert "a, b, c; approve wave remaining to go on without it, or write whenEmpty: TakeFirst" in world.plan.waits
    status = to_status(world.plan, None, world.observed(), {}, {}, policy="", generation=1, now=world.now)
    assert waiting_wave(status) == "remaining"
    paused = conditions.find(status["conditions"], "Paused") or {}
    assert (paused["status"], paused["reason"]) == ("True", "WaveIsEmpty")
    world.wishes = Wishes(approved_revision=1, approved_wave="remaining")
    world.step()
    assert world.live == dict.fromkeys("abc", "v2")


@pytest.mark.parametrize(
    ("wave", "expected"),
    [
        (replace(ABSENT, takes_first=True), "a"),
        (replace(ABSENT, takes_first=True, clusters=frozenset("xy")), "ab"),
        (replace(ABSENT, takes_first=True, share=50), "ab"),
        (Wave("eu", labels=(("region", "eu"),), takes_first=True), "a"),
    ],
    ids=["as many as it names", "two names", "its share of all", "one for labels"],
)
def test_a_wave_without_clusters_takes_the_first_ones_if_the_policy_says_so(wave: Wave, expected: str) -> None:
    world = Simulation(Rules("p", (wave, Wave("remaining"))))
    world.change("v2")
    assert {name for name, revision in world.live.items() if revision == "v2"} == set(expected)


def test_a_canary_that_leaves_before_its_gate_has_held_holds_the_others() -> None:
    world = Simulation()
    world.change("v2")
    world.problems["a"] = "0 of 2 replicas are ready"
    world.step(10)
    del world.live["a"]
    world.step(10_000)
    assert world.live == {"b": "v1", "c": "v1"}
    assert world.plan.waits.startswith("wave canary has no cluster: none that it matches is among")
    world.rules = replace(RULES, waves=(replace(CANARY, takes_first=True), Wave("remaining")))
    world.problems.clear()
    world.step()
    assert world.live == {"b": "v2", "c": "v1"}


def test_a_policy_that_has_lost_its_empty_wave_holds_nothing() -> None:
    world = Simulation(Rules("p", (ABSENT, Wave("remaining"))))
    world.change("v2")
    world.rules = Rules("p", (Wave("remaining"),))
    world.step()
    assert world.live == dict.fromkeys("abc", "v2")


def test_a_wave_whose_clusters_all_earlier_waves_took_holds_nobody_if_none_is_left() -> None:
    world = Simulation(Rules("p", (Wave("all"), Wave("half", share=50, is_paused=True), Wave("remaining"))))
    world.change("v2")
    assert [wave.name for wave in world.record.waves] == ["all"]


def test_a_cluster_without_an_object_gets_the_template_of_the_last_wave_that_succeeded() -> None:
    world = Simulation(replace(RULES, rolls_back=True))
    world.change("v2")
    world.live["d"], world.wanted["d"] = None, "v2"  # no object yet
    assert (world.step().approved["d"], world.plan.restored) == ("v1", {"d"})
    assert (world.step().restored, world.record.clusters["d"].wave) == (frozenset(), "remaining")
    world.live["e"], world.wanted["e"] = None, "v2"
    world.step(60)
    world.wishes = Wishes(abort=1)  # in the last wave
    assert world.step().approved["e"] == "v1"
    world.step()
    assert world.live == dict.fromkeys("abcde", "v1")
    assert world.record.replaced == {"v2": "v1"}
    # What was replaced is known when all clusters of the rollout have left.
    world.live = {"f": None}
    world.wanted = {"f": "v2"}
    assert world.step().approved == {"f": "v1"}


def test_a_cluster_without_an_object_gets_what_is_wanted_when_nothing_rolls_out() -> None:
    world = Simulation()
    world.live["d"], world.wanted["d"] = None, "other"  # an override of its own
    assert world.step().approved["d"] == "other"
    assert world.plan.restored == frozenset()
    assert world.record.phase is Phase.COMPLETE


def test_rules_travel_in_an_annotation_and_malformed_ones_are_none() -> None:
    spec = {
        "onFailure": "RollBack",
        "waves": [
            {
                "name": "canary",
                "clusters": ["a"],
                "clusterSelector": {"tier": "test"},
                "share": 30,
                "pause": True,
                "timeoutSeconds": 90,
                "brokenSeconds": 30,
                "whenEmpty": "TakeFirst",
                "gate": {
                    "ready": False,
                    "expression": "object.status.replicas > 0",
                    "soakSeconds": 5,
                    "http": {"url": "https://slo.example/", "expectStatus": 204, "timeoutSeconds": 3},
                },
            },
            {"name": "prod", "gate": None, "clusters": None, "clusterSelector": None},
        ],
    }
    annotation = to_annotation("PropagationPolicy default/web", spec)
    rules = find_rules({"metadata": {"annotations": {"federation.kubeadmiral.io/rollout": annotation}}})
    gate = Gate(False, "object.status.replicas > 0", HTTPCheck("https://slo.example/", 204, 3.0), 5.0)
    assert rules == Rules(
        "PropagationPolicy default/web",
        (
            Wave(
                "canary",
                frozenset({"a"}),
                (("tier", "test"),),
                30,
                gate,
                is_paused=True,
                timeout_s=90.0,
                takes_first=True,
                broken_s=30.0,
            ),
            Wave("prod"),
            Wave("remaining"),
        ),
        rolls_back=True,
    )
    assert to_annotation("p", None) is None
    assert to_annotation("p", {"waves": []}) is None
    for text in ("[]", "{", '{"rollout": {"waves": [{}]}}', "{}"):
        assert find_rules({"metadata": {"annotations": {"federation.kubeadmiral.io/rollout": text}}}) is None
    with pytest.raises(KeyError):
        compile_rules("p", {"waves": [{}]})


def test_a_cluster_that_joins_with_the_earlier_template_changes_in_an_empty_wave_or_among_the_last() -> None:
    rules = Rules("p", (CANARY, Wave("special", clusters=frozenset({"d"})), Wave("remaining")))
    world = Simulation(rules)
    world.change("v2")
    waves = [wave.name for wave in world.record.waves]
    for name in "de":
        world.live[name], world.wanted[name] = "v1", "v2"
    world.step()
    assert {name: world.record.clusters[name].wave for name in "de"} == {
        "d": "special" if "special" in waves else REMAINING,
        "e": REMAINING,
    }
    assert len({wave.name for wave in world.record.waves}) == len(world.record.waves), "no wave is there twice"
    assert {wave.name for wave in world.record.waves} >= {REMAINING}


def test_a_frozen_cluster_does_not_start_and_its_timeout_does_not_run() -> None:
    simulation = Simulation()
    simulation.frozen = {"a": Hold("sale", "ChangeFreeze sale holds", NOW + timedelta(days=2))}
    plan = simulation.change("v2")
    assert plan.waits == "wave canary: a: ChangeFreeze sale holds"
    assert plan.requeue_after_s == 2 * 86400
    plan = simulation.step(86400)
    assert (plan.record.phase, simulation.live) == (Phase.PROGRESSING, {"a": "v1", "b": "v1", "c": "v1"})
    simulation.frozen = {}
    assert simulation.step(86400).record.phase is Phase.PROGRESSING
    assert simulation.live["a"] == "v2"


def test_a_cluster_that_a_freeze_met_between_approval_and_delivery_starts_again_after_it() -> None:
    simulation = Simulation()
    simulation.frozen = {"a": Hold("sale", "ChangeFreeze sale holds")}
    simulation.wanted = dict.fromkeys(simulation.live, "v2")
    simulation.frozen, held = {}, simulation.frozen
    simulation.live = dict.fromkeys(simulation.live, "v1")
    simulation.step()
    simulation.live["a"], simulation.frozen = "v1", held
    assert simulation.step(7200).record.phase is Phase.PROGRESSING
    assert simulation.record.clusters["a"].started_at is None
    simulation.frozen = {}
    simulation.step()
    assert simulation.live["a"] == "v2"


def test_no_more_clusters_change_at_a_time_than_the_wave_allows_and_in_the_order_of_the_policy() -> None:
    order = (OrderedLabel("tier", ("canary", "prod")), OrderedLabel("price"))
    world = Simulation(Rules("p", (Wave("all", at_a_time=2), Wave("remaining")), order=order), "abcde")
    prices = {"a": "10", "b": "9.5", "c": "x", "d": "1"}
    world.labels = {name: {"tier": "prod", "price": price} for name, price in prices.items()} | {
        "e": {"tier": "canary"}
    }
    world.problems = dict.fromkeys("abcde", "0 of 1 replicas are ready")
    world.change("v2")
    assert {name for name, live in world.live.items() if live == "v2"} == {"e", "d"}
    world.step(599)
    assert "at most 2 clusters of wave all change at a time" in world.plan.waits
    del world.problems["e"]
    world.step()
    assert {name for name, live in world.live.items() if live == "v2"} == {"e", "d", "b"}
    world.problems.clear()
    for _ in range(3):
        world.step()
    assert world.record.phase is Phase.COMPLETE


def test_a_pause_after_the_last_wave_holds_the_remaining_clusters() -> None:
    rules = compile_rules("p", {"waves": [{"name": "canary", "clusters": ["a"], "pauseAfter": True}]})
    world = Simulation(rules)
    world.change("v2")
    world.step()
    assert world.plan.waits == "wave remaining waits for approval"
    world.wishes = Wishes(approved_revision=1, approved_wave="remaining")
    world.step()
    assert world.live == dict.fromkeys("abc", "v2")
