"""Properties of rollouts in waves over random histories: changes, failures, pauses, approvals, aborts, lost clusters."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.features.waves.rules.report import to_status
from federation.features.waves.rules.waveplan import Plan, plan_waves
from federation.planning.waves.rolloutstatus import record_of, waiting_wave
from federation.planning.waves.waverecord import Observed, Phase, Record, clusters_of_wave
from federation.planning.waves.waverules import Gate, Rules, Wave
from federation.planning.waves.wishes import Wishes

NAMES = "abcd"
_waves = st.builds(
    lambda number, clusters, share, soak_s, is_paused: Wave(
        f"wave-{number}", frozenset(clusters) or None, (), share, Gate(soak_s=soak_s), is_paused, timeout_s=100
    ),
    st.integers(0, 99),
    st.sets(st.sampled_from(NAMES), max_size=3),
    st.sampled_from([1, 34, 50, 100]),
    st.sampled_from([0, 20]),
    st.booleans(),
)
_rules = st.builds(
    lambda found, rolls_back: Rules("p", (*found, Wave("remaining", timeout_s=100)), rolls_back),
    st.lists(_waves, max_size=4, unique_by=lambda wave: wave.name),
    st.booleans(),
)
_steps = st.one_of(
    st.tuples(st.just("change"), st.sampled_from(["v1", "v2", "v3"])),
    st.tuples(st.just("override"), st.sampled_from(NAMES)),
    st.tuples(st.just("break"), st.sampled_from(NAMES)),
    st.tuples(st.just("give up"), st.sampled_from(NAMES)),
    st.tuples(st.just("repair"), st.sampled_from(NAMES)),
    st.tuples(st.just("leave"), st.sampled_from(NAMES)),
    st.tuples(st.just("join"), st.sampled_from(NAMES)),
    st.tuples(st.just("delete"), st.sampled_from(NAMES)),
    st.tuples(st.just("pause"), st.just("")),
    st.tuples(st.just("resume"), st.just("")),
    st.tuples(st.just("approve"), st.just("")),
    st.tuples(st.just("abort"), st.just("")),
    st.tuples(st.just("roll back"), st.just("")),
    *[st.tuples(st.just("wait"), st.sampled_from([1, 19, 20, 99, 100]))] * 3,
    *[st.tuples(st.just("deliver"), st.sampled_from(["", "", *NAMES]))] * 4,
)


@dataclass
class World:
    rules: Rules
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    live: dict[str, str | None] = field(default_factory=lambda: dict.fromkeys(NAMES, "v1"))
    wanted: dict[str, str] = field(default_factory=lambda: dict.fromkeys(NAMES, "v1"))
    broken: dict[str, bool] = field(default_factory=dict)
    wishes: Wishes = field(default_factory=Wishes)
    record: Record = field(default_factory=Record)
    approved: dict[str, str] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    held_since: dict[tuple[int, str], datetime] = field(default_factory=dict)
    """Since when the gates of waves have held, by rollout and wave, as the test sees it."""
    complete: dict[str, str] = field(default_factory=lambda: dict.fromkeys(NAMES, "v1"))
    """The template that each cluster has, or would have, after the last complete rollout."""

    def observed(self) -> dict[str, Observed]:
        return {
            name: Observed(
                self.wanted[name],
                revision,
                problem="broken" if name in self.broken else "",
                has_failed=self.broken.get(name, False),
                settled="" if name in self.record.clusters else self.complete[name],
            )
            for name, revision in self.live.items()
        }

    def apply(self, step: str, value: str | int) -> None:
        match step, value:
            case "change", str(revision):
                self.wanted = dict.fromkeys(NAMES, revision)
            case "override", str(name):
                self.wanted[name] += "'"
            case "break" | "give up", str(name):
                self.broken[name] = step == "give up"
            case "repair", str(name):
                self.broken.pop(name, None)
            case "leave", str(name):
                self.live.pop(name, None)
            case "join", str(name):
                self.live.setdefault(name, None)
            case "delete", str(name) if name in self.live:
                self.live[name] = None
            case "pause" | "resume", _:
                self.wishes = replace(self.wishes, is_paused=step == "pause")
            case "approve", _:
                if (wave := waiting_wave(self.status)) is not None:
                    self.wishes = replace(self.wishes, approved_revision=self.record.revision, approved_wave=wave)
            case "abort", _:
                self.wishes = replace(self.wishes, abort=self.record.revision)
            case "roll back", _:
                self.wishes = replace(self.wishes, roll_back=self.record.revision)
            case "wait", int(after_s):
                self.now += timedelta(seconds=after_s)
            case "deliver", str(name):
                for each in name or NAMES:
                    if each in self.live and each in self.approved:
                        self.live[each] = self.approved[each]

    def plan(self) -> Plan:
        observed = self.observed()
        plan = plan_waves(self.record, self.rules, observed, self.wishes, self.now)
        status = to_status(plan, None, observed, {}, {}, policy="", generation=1, now=self.now)
        assert record_of(status) == plan.record, "the status is all that a restart needs"
        self.status = status
        self._watch_gates(plan.record)
        return plan

    def _watch_gates(self, record: Record) -> None:
        for wave in record.waves:
            members = [name for name, cluster in record.clusters.items() if cluster.wave == wave.name]
            holds = wave.started_at is not None and all(
                self.live[name] == record.clusters[name].target and name not in self.broken for name in members
            )
            if holds:
                self.held_since.setdefault((record.revision, wave.name), self.now)
            else:
                self.held_since.pop((record.revision, wave.name), None)

    def take(self, plan: Plan) -> None:
        """Go on from a plan."""
        self.record, self.approved = plan.record, dict(plan.approved)
        if plan.record.phase is Phase.COMPLETE:
            # If all clusters were new, they got what was complete before.
            self.complete = dict(self.wanted) if plan.is_settled else self.complete


def _check_order(world: World, plan: Plan) -> None:
    """A wave starts after the gate of the wave before has held for its soak time, or after an approval."""
    is_new = plan.record.revision != world.record.revision
    started_before = set() if is_new else {wave.name for wave in world.record.waves if wave.started_at is not None}
    soaks = {wave.name: wave.gate.soak_s for wave in world.rules.waves}
    for earlier, later in zip(plan.record.waves, plan.record.waves[1:], strict=False):
        if later.started_at is None or later.name in started_before:
            continue
        assert earlier.is_done
        if world.record.phase is Phase.STOPPED and not is_new:
            continue  # An approval after a failure needs no gate.
        if not clusters_of_wave(plan.record, earlier.name):
            order = [wave.name for wave in plan.record.waves]
            assert order.index(world.wishes.approved_wave) >= order.index(later.name), "an empty wave holds"
            continue
        since = world.held_since.get((plan.record.revision, earlier.name))
        assert since is not None
        assert (later.started_at - since).total_seconds() >= soaks[earlier.name]


def _check_allowed(world: World, plan: Plan) -> None:
    """Only clusters of started waves get a new template, and a stopped rollout changes no other cluster."""
    record = plan.record
    started = {wave.name for wave in record.waves if wave.started_at is not None}
    has_succeeded = any(wave.held_since is not None and wave.is_done for wave in record.waves)
    for name, revision in plan.approved.items():
        if (cluster := record.clusters.get(name)) is None:
            # What the cluster gets first is the template of the last wave that succeeded.
            is_newest = record.phase is Phase.PROGRESSING and has_succeeded
            is_newest = is_newest or plan.is_settled
            assert revision == (world.wanted[name] if is_newest else world.complete[name])
            continue
        assert revision in (cluster.good, cluster.target)
        assert cluster.wave in started or not cluster.wave or revision == cluster.good
    assert plan.approved.keys() >= {name for name, live in world.live.items() if live is None}
    if record.phase in (Phase.STOPPED, Phase.ROLLING_BACK, Phase.ROLLED_BACK):
        changed = {name for name, cluster in record.clusters.items() if cluster.is_changed}
        is_back = record.phase is not Phase.STOPPED
        returned = {name for name in changed if record.clusters[name].good != world.wanted[name]}
        assert {name for name in plan.restored if world.live[name] is not None} <= (returned if is_back else set())
        assert not is_back or returned <= plan.restored
        assert {name for name, live in world.live.items() if live not in (None, world.complete[name])} <= changed
        assert all(plan.approved[name] == world.complete[name] for name in plan.restored)
    if world.wishes.is_paused:
        is_same = record.revision == world.record.revision
        assert started <= {wave.name for wave in world.record.waves if is_same and wave.started_at is not None}
    aborted = world.wishes.abort == record.revision > 0
    if aborted and record.revision == world.record.revision and record.phase is not Phase.COMPLETE:
        assert started <= {wave.name for wave in world.record.waves if wave.started_at is not None}
        assert record.phase is not Phase.PROGRESSING


def _check_share(world: World, record: Record) -> None:
    """A wave has no more clusters than its share of those that it matched."""
    for wave in world.rules.waves:
        taken = [name for name, cluster in record.clusters.items() if cluster.wave == wave.name]
        assert wave.clusters is None or wave.clusters >= set(taken)
        assert len(taken) <= -(-len(NAMES) * wave.share // 100)


@examples(250)
@given(rules=_rules, steps=st.lists(_steps, min_size=10, max_size=30))
def test_waves_keep_their_order_and_their_limits_through_any_history(
    rules: Rules, steps: list[tuple[str, str | int]]
) -> None:
    world = World(rules)
    for step, value in (("wait", 1), ("change", "v2"), *steps):
        world.apply(step, value)
        plan = world.plan()
        _check_order(world, plan)
        _check_allowed(world, plan)
        _check_share(world, plan.record)
        world.take(plan)


@examples(80)
@given(rules=_rules, steps=st.lists(_steps, min_size=5, max_size=20))
def test_every_history_ends_when_members_make_progress(rules: Rules, steps: list[tuple[str, str | int]]) -> None:
    """Once nothing is broken, paused or aborted and waves are approved, a rollout completes or has rolled back."""
    world = World(rules)
    for step, value in (("wait", 1), ("change", "v2"), *steps):
        world.apply(step, value)
        world.take(world.plan())
    world.broken.clear()
    world.wishes = Wishes()
    for _ in range(40):
        for step, value in (("approve", ""), ("wait", 20), *(("deliver", name) for name in NAMES)):
            world.apply(step, value)
        world.take(world.plan())
    assert world.record.phase in (Phase.COMPLETE, Phase.ROLLED_BACK)
    expected = {
        name: cluster.target if world.record.phase is Phase.COMPLETE else cluster.good
        for name, cluster in world.record.clusters.items()
        if cluster.is_changed or world.record.phase is Phase.COMPLETE
    }
    assert None not in world.live.values(), "no new cluster waits for ever"
    assert {name: world.live[name] for name in expected} == expected
