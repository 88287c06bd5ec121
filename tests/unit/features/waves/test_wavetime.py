"""Which time of a wave counts against its timeouts."""

from dataclasses import replace

import pytest
from tests.unit.features.waves.test_waveplan import CANARY, Simulation

from federation.planning.waves.waverecord import Phase
from federation.planning.waves.waverules import Gate, HTTPCheck, Rules, Wave
from federation.planning.waves.wishes import Wishes


@pytest.mark.parametrize(("broken_s", "timeout_s", "expected_s"), [(180, 600, 180), (180, 60, 60), (600, 600, 600)])
def test_a_wave_whose_pods_crash_fails_earlier(broken_s: float, timeout_s: float, expected_s: float) -> None:
    canary = replace(CANARY, broken_s=broken_s, timeout_s=timeout_s)
    world = Simulation(Rules("p", (canary, Wave("remaining"))))
    world.change("v2")
    world.problems["a"], world.broken = (
        "0 of 2 replicas are ready: pod a-1: container web is in CrashLoopBackOff",
        {"a"},
    )
    world.step()
    world.step(expected_s - 1)
    assert world.record.phase is Phase.PROGRESSING
    world.step(1)
    assert world.record.phase is Phase.STOPPED
    assert f"did not hold for {expected_s:g} s: a: 0 of 2 replicas are ready: pod a-1" in world.record.reason


def test_the_time_of_pods_that_crash_counts_from_their_first_crash() -> None:
    world = Simulation()
    world.change("v2")
    world.problems["a"] = "0 of 2 replicas are ready"
    world.step(300)
    world.broken = {"a"}
    world.step()
    world.broken = set()
    world.step(179)
    world.broken = {"a"}
    world.step()
    assert world.record.phase is Phase.PROGRESSING
    world.step(1)
    assert world.record.phase is Phase.STOPPED
    assert "did not hold for 180 s" in world.record.reason


def test_time_in_which_the_gate_holds_does_not_count_against_the_timeout() -> None:
    world = Simulation(Rules("p", (replace(CANARY, gate=Gate(soak_s=3600)), Wave("remaining"))))
    world.change("v2")
    world.problems["a"] = "0 of 2 replicas are ready"
    world.step(100)
    world.problems.clear()
    world.step()
    world.step(3000)
    world.problems["a"] = "1 of 2 replicas are ready"
    world.step()
    assert world.record.phase is Phase.PROGRESSING, "a blip at the end of a long soak"
    world.step(499)
    assert world.record.phase is Phase.PROGRESSING
    world.step(1)
    assert world.record.phase is Phase.STOPPED, "600 s without the gate in all"


def test_the_time_of_a_cluster_does_not_count_while_its_own_gate_holds() -> None:
    world = Simulation(Rules("p", (Wave("all", frozenset("ab")), Wave("remaining"))))
    world.change("v2")
    world.problems["b"] = "0 of 2 replicas are ready"
    world.step()
    world.step(590)
    world.problems = {"a": "1 of 2 replicas are ready"}
    world.step()
    world.step(20)
    assert world.record.phase is Phase.PROGRESSING, "a held for 590 s while b began"


def test_the_time_of_a_request_counts_from_the_moment_in_which_all_else_holds() -> None:
    check = HTTPCheck("https://slo.example/")
    world = Simulation(Rules("p", (replace(CANARY, gate=Gate(http=check)), Wave("remaining"))))
    world.http = "it answers 500"
    world.change("v2")
    world.step()
    world.step(599)
    assert world.record.phase is Phase.PROGRESSING
    world.step(1)
    assert world.record.phase is Phase.STOPPED
    assert "https://slo.example/: it answers 500" in world.record.reason


@pytest.mark.parametrize("broken", [set(), {"a"}], ids=["slow", "broken"])
def test_time_in_which_no_process_looked_counts_for_half_of_a_limit_at_most(broken: set[str]) -> None:
    world = Simulation()
    world.change("v2")
    world.problems["a"], world.broken = "0 of 2 replicas are ready", broken
    world.step()
    world.was_away = True
    world.step(5000)
    assert world.record.phase is Phase.PROGRESSING
    world.was_away = False
    limit_s = 180 if broken else 600
    world.step(limit_s / 2 - 1)
    assert world.record.phase is Phase.PROGRESSING
    world.step(1)
    assert world.record.phase is Phase.STOPPED


def test_a_pause_starts_no_wave_and_does_not_count_against_the_timeout() -> None:
    world = Simulation()
    world.change("v2")
    world.wishes = Wishes(is_paused=True)
    world.problems["a"] = "not ready"
    world.step(10)
    world.step(5000)
    assert world.record.phase is Phase.PROGRESSING
    world.wishes = Wishes()
    world.step()
    assert world.record.phase is Phase.PROGRESSING
    world.step(590)
    assert world.record.phase is Phase.STOPPED


def test_a_wave_does_not_fail_while_our_credentials_in_its_cluster_are_at_fault() -> None:
    world = Simulation()
    world.wanted = dict.fromkeys("abc", "v2")
    world.step()
    assert world.live["a"] == "v2"
    world.problems, world.out_of_reach = {"a": "the cluster is not ready"}, {"a"}
    starts = set()
    for _ in range(400):
        world.step(10)
        assert world.record.phase is Phase.PROGRESSING
        starts.add(world.record.clusters["a"].started_at)
    assert len(starts) == 1, "no writes"
    world.out_of_reach = set()
    world.step()
    world.step(589)
    assert world.record.phase is Phase.PROGRESSING, "it waited for 10 s before"
    world.step(11)
    assert world.record.phase is not Phase.PROGRESSING
    assert "did not hold for 600 s" in world.record.reason
