"""Beliefs and division together: with constant capacity they come to rest, and nothing that runs is given up too early.

A model of members closes the loop: what is placed runs as far as a member's true capacity goes, the rest cannot be
scheduled, and the room that its nodes seem to have may be more or less than the truth.
"""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from federation.planning.automigration.belief import Belief, Sight, Terms, revise
from federation.planning.automigration.info import Info, from_text, to_text
from federation.planning.placement.failback import Offers, plan_with_trials
from federation.planning.placement.replicas import Demand, Preference, plan_replicas

STEP_S = 10.0
STABLE_S = 30.0
STEPS = 150
"""Enough for every replica of the largest workload to fail back alone and every trial to fail."""


@dataclass
class Loop:
    """One workload over members with true capacities; `bias` is what the nodes seem to have beyond the truth."""

    total: int
    weights: dict[str, int]
    capacity: dict[str, int]
    bias: dict[str, int]
    batch: int = 1
    keep: bool = False
    avoid_disruption: bool = True
    now_s: float = 0.0
    placed: dict[str, int] = field(default_factory=dict)
    beliefs: dict[str, Belief] = field(default_factory=dict)
    decided: str = ""
    were_running: dict[str, int] = field(default_factory=dict)
    """What ran at the last look: only that is ready now."""

    def plan(self) -> None:
        """Divide as the scheduler does, with what is believed now."""
        self.decided = to_text(Info(self.beliefs))
        demand = Demand(
            self.total,
            tuple(self.weights),
            {cluster: Preference(weight) for cluster, weight in self.weights.items()},
            key="default/web",
            current=self.placed,
            estimated={cluster: belief.capacity for cluster, belief in self.beliefs.items()},
            avoid_disruption=self.avoid_disruption,
            keep_unschedulable=self.keep,
        )
        offers = Offers({c: b.offered for c, b in self.beliefs.items() if b.offered}, self.batch)
        totals = plan_with_trials(plan_replicas, demand, offers).totals()
        self.placed = {cluster: count for cluster, count in totals.items() if count}

    @property
    def running(self) -> dict[str, int]:
        """What runs in each member."""
        return {cluster: min(count, self.capacity[cluster]) for cluster, count in self.placed.items()}

    @property
    def ready(self) -> int:
        """How many replicas have run for a while."""
        return sum(min(count, self.were_running.get(cluster, 0)) for cluster, count in self.running.items())

    def sight(self, cluster: str) -> Sight:
        """Look at one member."""
        placed, running = self.placed.get(cluster, 0), self.running.get(cluster, 0)
        room = max(0, self.capacity[cluster] - running + self.bias[cluster])
        ready = min(running, self.were_running.get(cluster, 0))
        return Sight(placed, placed, ready, placed, placed - running, room)

    def step(self) -> None:
        """Let some time pass, look at the members, and decide again when something is believed anew."""
        self.now_s += STEP_S
        is_short = any(self.sight(cluster).unschedulable for cluster in self.weights)
        is_answered = self.decided == to_text(Info(self.beliefs))
        terms = Terms(STEP_S if is_short else STABLE_S, 600.0, self.batch, is_answered)
        sights = {cluster: self.sight(cluster) for cluster in self.weights}
        self.were_running = self.running
        self.beliefs = revise(self.beliefs, sights, self.now_s, terms)
        if to_text(Info(self.beliefs)) != self.decided:
            self.plan()

    def come_to_rest(self) -> list[dict[str, int]]:
        """Run for long and return the divisions, the last one first, without repetitions."""
        seen = [self.placed]
        for _ in range(STEPS):
            ready = self.ready
            self.step()
            assert self.ready >= min(ready, self.total), "something that ran was given up too early"
            if self.placed != seen[0]:
                seen.insert(0, self.placed)
        for _ in range(20):
            before = self.placed, to_text(Info(self.beliefs))
            self.step()
            assert (self.placed, to_text(Info(self.beliefs))) == before, "it never comes to rest"
        return seen


CLUSTERS = ("a", "b", "c", "d")


@st.composite
def loops(draw: st.DrawFn, *, bias: st.SearchStrategy[int]) -> Loop:
    clusters = CLUSTERS[: draw(st.integers(2, 4))]
    each = st.integers(0, 9)
    return Loop(
        draw(st.integers(1, 12)),
        {cluster: draw(st.integers(1, 3)) for cluster in clusters},
        {cluster: draw(each) for cluster in clusters},
        {cluster: draw(bias) for cluster in clusters},
        batch=draw(st.integers(1, 4)),
        keep=draw(st.booleans()),
        avoid_disruption=draw(st.booleans()),
    )


@settings(max_examples=100, deadline=None)
@given(loops(bias=st.integers(-3, 5)))
def test_with_constant_capacity_decisions_come_to_rest_whatever_the_nodes_seem_to_have(loop: Loop) -> None:
    loop.plan()
    loop.come_to_rest()
    assert sum(loop.running.values()) == min(loop.total, sum(loop.capacity.values()))


@settings(max_examples=100, deadline=None)
@given(loops(bias=st.integers(0, 5)), st.data())
def test_after_any_history_decisions_come_to_rest_again(loop: Loop, data: st.DataObject) -> None:
    loop.plan()
    for _ in range(data.draw(st.integers(1, 4))):
        for _ in range(data.draw(st.integers(1, 12))):
            loop.step()
        loop.capacity = {cluster: data.draw(st.integers(0, 9)) for cluster in loop.weights}
    loop.come_to_rest()
    assert sum(loop.running.values()) == min(loop.total, sum(loop.capacity.values()))


@settings(max_examples=100, deadline=None)
@given(loops(bias=st.just(0)))
def test_replicas_come_back_to_where_weights_want_them_when_there_is_room(loop: Loop) -> None:
    loop.plan()
    loop.come_to_rest()
    loop.capacity = dict.fromkeys(loop.weights, 50)
    before = sum(loop.placed.values())
    seen = loop.come_to_rest()
    ideal = Loop(loop.total, loop.weights, loop.capacity, loop.bias)
    ideal.plan()
    assert loop.placed == ideal.placed
    assert loop.beliefs == {}
    assert max(map(sum, (division.values() for division in seen))) <= max(before, loop.total) + loop.batch


@given(loops(bias=st.integers(-3, 5)))
def test_what_is_believed_survives_a_restart(loop: Loop) -> None:
    loop.plan()
    for _ in range(8):
        loop.step()
        text = to_text(Info(loop.beliefs))
        assert to_text(from_text(text)) == text
