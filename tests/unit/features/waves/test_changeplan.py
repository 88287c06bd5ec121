"""The waves of a policy's change: who is in them, when they start and end, and what a failure leaves."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Object
from federation.features.waves.rules.changeplan import UNHEALTHY_MAX, ChangePlan, Subject, members_of, plan_change
from federation.features.waves.rules.objectives import Judgement, Verdict
from federation.planning.waves.changerules import find_change_rules, waiting_wave
from federation.planning.waves.policychanges import (
    FIELD,
    ChangeRecord,
    describe_version,
    record_of,
    to_status,
    versions_of,
)
from federation.planning.waves.waverecord import Phase

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BEFORE, AFTER = to_rfc3339(NOW - timedelta(hours=1)), to_rfc3339(NOW + timedelta(seconds=30))
WAVES = [{"name": "few", "objects": 5}, {"name": "more", "objects": 50}, {"name": "many", "objects": 500}]
FLEET = [Subject(f"shop/web-{number}", {"tier": "canary" if number < 3 else "prod"}, BEFORE) for number in range(600)]


class Fleet:
    """The objects: some have a problem, others not their version yet."""

    def __init__(
        self,
        problems: set[str] | None = None,
        unreached: set[str] | None = None,
        silent: set[str] | None = None,
        edited: Mapping[str, datetime] | None = None,
    ) -> None:
        self.edited = edited or {}
        self.silent = silent or set()
        self.problems = (problems or set()) | self.silent
        self.unreached = unreached or set()

    def problem(self, identity: str) -> str:
        return "0 of 1 replicas are ready" if identity in self.problems else ""

    def is_silent(self, identity: str) -> bool:
        return identity in self.silent

    def is_of_users(self, identity: str, since: datetime) -> bool:
        return identity in self.edited and self.edited[identity] >= since

    def obstacle(self, identity: str) -> str:
        return "it is not decided with this version yet" if identity in self.unreached else ""


def policy(weight: int = 1, *waves: Any, **rules: Any) -> Object:
    spec = {"placement": [{"cluster": "east", "preferences": {"weight": weight}}]}
    spec[FIELD] = {"waves": list(waves) or WAVES, **rules}  # type: ignore[assignment]  # JSON
    return {"kind": "PropagationPolicy", "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}


class Change:
    """A policy with the record of its change, which each step goes through the policy's status."""

    def __init__(self, present: Object, subjects: list[Subject] | None = None) -> None:
        self.present, self.subjects, self.now = present, FLEET if subjects is None else subjects, NOW
        self.record: ChangeRecord | None = None
        self.step()

    def step(
        self,
        fleet: Fleet | None = None,
        after_s: float = 0.0,
        judgement: Judgement | None = None,
        *,
        was_away: bool = False,
    ) -> ChangePlan:
        self.now += timedelta(seconds=after_s)
        rules = find_change_rules(self.present)
        assert rules is not None
        plan = plan_change(
            self.present, self.record, rules, self.subjects, fleet or Fleet(), self.now, judgement, was_away=was_away
        )
        self.record = plan.record
        self.present = {**self.present, "status": {FIELD: to_status(plan.record)}}
        assert record_of(self.present) == replace(plan.record, message=plan.record.message)
        return plan

    def write(self, present: Object) -> None:
        self.present = {**present, "status": self.present["status"]}

    def wish(self, **wishes: Any) -> None:
        spec = self.present["spec"]
        self.present = {**self.present, "spec": {**spec, FIELD: {**spec[FIELD], **wishes}}}

    def members(self) -> dict[str, str]:
        assert self.record is not None
        return members_of(self.present, self.record, self.subjects)

    def members_wave(self) -> str:
        """Return the name of the newest wave that has started."""
        assert self.record is not None
        return [wave.name for wave in self.record.waves if wave.bound][-1]

    def sees_new(self, subject: Subject) -> bool:
        found = versions_of(self.present)
        return found.reach is None or found.reach.includes(subject.identity, subject.labels, subject.created)


def begun(*waves: Any, **rules: Any) -> Change:
    change = Change(policy(1, *waves, **rules))
    change.write(policy(2, *waves, **rules))
    return change


def test_a_change_reaches_5_then_50_then_500_objects_and_then_the_rest() -> None:
    change = begun()
    assert not any(map(change.sees_new, FLEET)), "nothing changes before the record is written"
    for count in (5, 55, 555, 600):
        change.step()
        assert len(change.members()) == count
        assert sum(map(change.sees_new, FLEET)) == count
        assert change.step(Fleet(unreached=set(change.members()))).record.message.count("not decided") == 5
        newest = [name for name, wave in change.members().items() if wave == change.members_wave()]
        change.step(Fleet(unreached=set(newest[:1])))
        assert len(change.members()) == count
    assert change.step().record.phase is Phase.COMPLETE
    assert change.record is not None
    assert change.record.earlier["spec"]["placement"][0]["preferences"]["weight"] == 2


def test_members_of_a_wave_stay_and_the_order_differs_from_change_to_change() -> None:
    first = begun()
    first.step()
    few = set(first.members())
    first.step()
    assert few < set(first.members())
    first.write(policy(3))
    first.step()
    assert few != set(first.members())


@pytest.mark.parametrize(("on_failure", "phase"), [("RollBack", Phase.ROLLED_BACK), ("Pause", Phase.STOPPED)])
def test_a_gate_that_does_not_hold_ends_the_change(on_failure: str, phase: Phase) -> None:
    change = begun(onFailure=on_failure)
    change.step()
    broken = Fleet(problems=set(list(change.members())[:1]))
    assert change.step(broken, 599).record.phase is Phase.PROGRESSING
    change.step(broken, 1)
    change.step(broken)
    assert change.record is not None
    assert change.record.phase is phase
    assert "did not hold for 600 s" in change.record.reason
    assert sum(map(change.sees_new, FLEET)) == (5 if phase is Phase.STOPPED else 0)


def test_an_object_that_was_not_healthy_before_its_wave_does_not_hold_it() -> None:
    """A tenant with a broken object cannot hold the change of a policy that is about all tenants."""
    change = begun()
    every = Fleet(problems={subject.identity for subject in FLEET[::7]})
    change.step(every)
    for _ in range(4):
        change.step(every)
    assert change.record is not None
    assert change.record.phase is Phase.COMPLETE


def test_objects_that_appear_meanwhile_get_the_version_of_the_last_wave_that_succeeded() -> None:
    change, late = begun({"name": "few", "objects": 5, "gate": {"soakSeconds": 60}}, {"name": "rest"}), []
    change.step()
    late = [Subject("shop/late", {}, AFTER), Subject("shop/draft", {}, "")]
    assert not any(map(change.sees_new, late))
    change.step()
    assert "soaks until" in change.step(after_s=30).record.message
    change.step(after_s=30)
    assert all(map(change.sees_new, late))


def test_a_pause_before_a_wave_and_one_after_it_wait_for_approval_of_this_change() -> None:
    change = begun({"name": "few", "objects": 5, "pause": True, "pauseAfter": True}, {"name": "rest", "objects": 9})
    assert change.step().record.message == "wave few waits for approval"
    change.wish(approvedWave={"revision": 9, "wave": "remaining"})
    assert not change.step(after_s=9999).record.waves[0].bound, "another revision approves nothing"
    change = begun({"name": "few", "objects": 5, "pauseAfter": True})
    change.step()
    rules = find_change_rules(change.present)
    assert rules is not None
    assert change.step(after_s=9999).record.message == "wave remaining waits for approval"
    assert change.record is not None
    assert waiting_wave(change.record, rules) == "remaining"
    change.wish(approvedWave={"revision": 1, "wave": "remaining"})
    change.step()
    assert len(change.members()) == 600


def test_time_in_which_the_gate_holds_does_not_count_against_the_timeout() -> None:
    change = begun({"name": "few", "objects": 5, "gate": {"soakSeconds": 3600}})
    change.step()
    one = Fleet(problems=set(list(change.members())[:1]))
    change.step(one, 100)
    change.step()
    change.step(after_s=3000)
    assert change.step(one).record.phase is Phase.PROGRESSING, "a blip at the end of a long soak"
    assert change.step(one, 499).record.phase is Phase.PROGRESSING
    assert change.step(one, 1).record.phase is Phase.ROLLING_BACK, "600 s without the gate in all"


def test_time_in_which_clusters_cannot_report_for_a_reason_of_ours_does_not_count() -> None:
    change = begun()
    change.step()
    members = list(change.members())
    silent = Fleet(silent=set(members[:1]))
    change.step(silent, 10)
    plan = change.step(silent, 5000)
    assert (plan.record.phase, plan.requeue_after_s) == (Phase.PROGRESSING, None)
    both = Fleet(problems={members[1]}, silent={members[0]})
    change.step(both)
    assert change.step(both, 589).record.phase is Phase.PROGRESSING
    assert change.step(both, 1).record.phase is Phase.ROLLING_BACK


def test_time_in_which_no_process_looked_counts_for_half_of_the_timeout_at_most() -> None:
    change = begun()
    change.step()
    broken = Fleet(problems=set(change.members()))
    change.step(broken)
    assert change.step(broken, 5000, was_away=True).record.phase is Phase.PROGRESSING
    assert change.step(broken, 299).record.phase is Phase.PROGRESSING
    assert change.step(broken, 1).record.phase is Phase.ROLLING_BACK


def test_a_pause_stops_and_does_not_count_against_the_timeout() -> None:
    change = begun()
    change.step()
    slow = Fleet(unreached=set(change.members()))
    change.wish(paused=True)
    change.step(slow, 10)
    assert change.step(slow, 9999).record.phase is Phase.PROGRESSING
    change.wish(paused=False)
    assert change.step(slow).record.phase is Phase.PROGRESSING
    assert change.step(slow, 589).record.phase is Phase.PROGRESSING
    assert change.step(slow, 1).record.phase is Phase.ROLLING_BACK


def test_an_abort_rolls_back_and_an_approval_goes_on_after_a_failure() -> None:
    change = begun()
    change.step()
    change.wish(abort=1)
    change.step()
    assert change.step().record.phase is Phase.ROLLED_BACK
    change = begun(onFailure="Pause")
    change.step()
    broken = Fleet(problems=set(change.members()))
    change.step(broken, 600)
    change.wish(approvedWave={"revision": 1, "wave": "more"})
    change.step(broken)
    assert len(change.members()) == 55


def test_a_user_rolls_back_a_change_that_has_stopped_or_is_under_way() -> None:
    for is_stopped in (True, False):
        change = begun(onFailure="Pause")
        change.step()
        if is_stopped:
            change.wish(abort=1)
            assert change.step().record.phase is Phase.STOPPED
        change.wish(rollBack=1)
        change.step()
        assert change.step().record.phase is Phase.ROLLED_BACK
        assert not any(map(change.sees_new, FLEET))


def test_a_change_that_is_taken_back_is_complete_at_once_and_one_during_another_begins_from_the_last_good_version() -> (
    None
):
    change = begun()
    change.step()
    change.write(policy(3))
    assert not any(map(change.sees_new, FLEET))
    change.step()
    assert change.record is not None
    assert change.record.earlier["spec"]["placement"][0]["preferences"]["weight"] == 1
    change.write(policy(1))
    assert change.step().record.phase is Phase.COMPLETE


def test_rules_alone_are_no_change_and_without_them_every_object_has_the_policy_as_it_is() -> None:
    change = Change(policy(1))
    change.write(policy(1, {"name": "other", "objects": 1}))
    assert change.step().record.revision == 0
    change.write(policy(2))
    change.present["spec"].pop(FIELD)
    assert all(map(change.sees_new, FLEET))


def test_objectives_fail_hold_and_let_pass() -> None:
    objective = {"name": "e", "source": "main", "errors": {"metric": "m", "bad": {"code": "5.."}}}
    wave = {"name": "few", "objects": 5, "gate": {"objectives": [objective]}}
    change = begun(wave)
    change.step()
    assert "not measured yet" in change.step().record.message
    assert "3 samples" in change.step(after_s=9999, judgement=Judgement(Verdict.NO_DATA, "3 samples")).record.message
    held = replace(change.record) if change.record is not None else None
    assert change.step(judgement=Judgement(Verdict.FAILS, "9 % are bad")).record.phase is Phase.ROLLING_BACK
    assert change.step().record.phase is Phase.ROLLED_BACK
    change.record = held
    change.step(judgement=Judgement(Verdict.HOLDS, ""))
    assert len(change.members()) == 600


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(["good", "slow", "broken", "late", "restart"]), max_size=20),
    st.integers(1, 40),
    st.integers(1, 40),
)
def test_no_more_objects_than_the_waves_allow_have_the_new_version(steps: list[str], few: int, more: int) -> None:
    subjects = FLEET[:60]
    change = Change(policy(1, {"name": "few", "objects": few}, {"name": "more", "objects": more}), list(subjects))
    change.write(policy(2, {"name": "few", "objects": few}, {"name": "more", "objects": more}))
    for number, step in enumerate(steps):
        members = set(change.members())
        if step == "late":
            change.subjects.append(Subject(f"shop/late-{number}", {}, to_rfc3339(change.now + timedelta(seconds=1))))
        fleet = Fleet(problems=members if step == "broken" else set(), unreached=members if step == "slow" else set())
        change.step(fleet, 100)
        assert change.record is not None
        allowed = {"": 0, "few": few, "more": few + more, "remaining": 60}
        started = [wave.name for wave in change.record.waves if wave.bound]
        seen = sum(map(change.sees_new, subjects))
        match change.record.phase:
            case Phase.PROGRESSING:
                assert seen <= allowed[started[-1] if started else ""]
            case Phase.COMPLETE:
                assert seen == 60
            case _:
                assert seen == 0


def test_an_object_is_told_which_change_has_not_reached_it() -> None:
    federated = {"metadata": {"namespace": "shop", "name": "web-1", "creationTimestamp": BEFORE}}
    change = Change(policy(1, {"name": "few", "objects": 5, "pause": True}), FLEET[:1])
    assert describe_version(change.present, federated) == ""
    change.write(policy(2, {"name": "few", "objects": 5, "pause": True}))
    assert (
        describe_version(change.present, federated) == "change 1 of PropagationPolicy web has not reached it: it begins"
    )
    change.step()
    assert describe_version(change.present, federated).endswith("has not reached it: wave few waits for approval")
    change.wish(abort=1)
    change.step()
    assert describe_version(change.present, federated).endswith("was taken back: aborted by a user")


def test_objects_that_their_users_change_during_a_wave_prove_nothing() -> None:
    change = begun({"name": "few", "objects": 5, "timeoutSeconds": 60})
    change.step()
    mine, other = sorted(change.members())[:2]
    edited = {mine: NOW + timedelta(seconds=1), other: NOW - timedelta(seconds=1)}
    change.step(Fleet(problems={mine, other}, edited=edited), 1)
    assert change.record is not None
    assert mine in change.record.unhealthy
    assert "0 of 1 replicas" in change.record.message
    assert mine not in change.record.message
    change.step(Fleet(problems={mine}), 1)
    assert change.record.waves[0].is_done, "it is remembered, also by a process that has not seen the edit"
    assert change.record.waves[0].taken_at == NOW


def test_an_obstacle_that_an_objects_users_make_holds_neither_a_wave_nor_a_roll_back() -> None:
    change = begun({"name": "few", "objects": 5, "timeoutSeconds": 60})
    change.step()
    mine, other = sorted(change.members())[:2]
    edited = {mine: NOW + timedelta(seconds=1)}
    fleet = Fleet(problems={other}, unreached={mine}, edited=edited)
    change.step(fleet, 1)
    change.step(fleet, 60)
    assert change.record is not None
    assert change.record.reason.endswith(f"{other}: 0 of 1 replicas are ready")
    change.step(fleet)
    assert change.record.phase is Phase.ROLLED_BACK


def test_an_object_that_is_created_during_a_change_proves_nothing() -> None:
    change = begun({"name": "few", "objects": 5})
    change.subjects = [*FLEET, Subject("shop/late", {}, AFTER)]
    for _ in range(3):
        change.step(Fleet(problems={"shop/late"}, unreached={"shop/late"}), 60)
    assert change.record is not None
    assert change.record.phase is Phase.COMPLETE


def test_a_tenant_with_many_broken_objects_holds_no_wave() -> None:
    change = Change(policy(1), subjects=[])
    broken = [f"mine/broken-{number}" for number in range(UNHEALTHY_MAX)]
    alone = ["other/broken", "third/broken"]
    change.subjects = [*FLEET[:10], *(Subject(name, {}, BEFORE) for name in [*broken, *alone])]
    change.write(policy(2, {"name": "all"}))
    fleet = Fleet(problems={*broken, *alone})
    change.step(fleet)
    assert change.record is not None
    assert change.record.unhealthy == {"mine/*", *alone}
    change.step(fleet, 1)
    change.step(fleet, 1)
    assert change.record.phase is Phase.COMPLETE
