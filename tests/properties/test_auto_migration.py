"""Beliefs and division together: with constant capacity they come to rest, and nothing that runs is given up too early.

A model of members closes the loop: what is placed runs as far as a member's true capacity goes, the rest cannot be
scheduled, and the room that its nodes seem to have may be more or less than the truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from federation.planning.automigration.belief import Belief, Sight, Terms, find_openings, revise
from federation.planning.automigration.info import Info, from_text, to_text
from federation.planning.placement.failback import Offers, plan_with_trials
from federation.planning.placement.replicas import Demand, Preference, plan_replicas
from federation.planning.placement.room import Planner, Rooms, plan_by_room, plan_within

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
    by: str = "weights"
    """What the planner divides by: weights, weights within the room on nodes, or that room alone."""
    now_s: float = 0.0
    placed: dict[str, int] = field(default_factory=dict)
    beliefs: dict[str, Belief] = field(default_factory=dict)
    decided: str = ""
    openings: frozenset[str] = frozenset()
    were_running: dict[str, int] = field(default_factory=dict)
    """What ran at the last look: only that is ready now."""

    def plan(self) -> None:
        """Divide as the scheduler does, with what is believed now."""
        self.decided = self.text
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
        free = {c: max(0, self.capacity[c] - self.running.get(c, 0)) for c in self.weights}
        sizes = {c: max(1, n) for c, n in self.capacity.items()}
        planner: Planner = plan_replicas
        if self.by == "weights within room":
            planner = partial(plan_within, Rooms(free, free, sizes), plan_replicas)
        elif self.by == "room":
            planner = partial(plan_by_room, Rooms(free, free, sizes))
        totals = plan_with_trials(planner, demand, offers).totals()
        self.placed = {cluster: count for cluster, count in totals.items() if count}

    @property
    def text(self) -> str:
        """What is written for the scheduler."""
        return to_text(Info(self.beliefs, openings=self.openings))

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
        is_answered = self.decided == self.text
        terms = Terms(STEP_S if is_short else STABLE_S, 600.0, self.batch, is_answered)
        sights = {cluster: self.sight(cluster) for cluster in self.weights}
        self.were_running = self.running
        self.beliefs = revise(self.beliefs, sights, self.now_s, terms)
        self.openings = find_openings(self.beliefs, sights)
        if self.text != self.decided:
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
            before = self.placed, self.text
            self.step()
            assert (self.placed, self.text) == before, "it never comes to rest"
        return seen


PLANNERS = ("weights", "weights within room", "room")
CLUSTERS = ("a", "b", "c", "d")


@st.composite
def loops(draw: st.DrawFn, *, bias: st.SearchStrategy[int], planners: Sequence[str] = PLANNERS) -> Loop:
    clusters = CLUSTERS[: draw(st.integers(2, 4))]
    each = st.integers(0, 9)
    by = draw(st.sampled_from(planners))
    return Loop(
        draw(st.integers(1, 12)),
        {cluster: draw(st.integers(1, 3)) for cluster in clusters},
        {cluster: draw(each) for cluster in clusters},
        # A planner that looks at room sees what we see.
        {cluster: draw(bias) if by == "weights" else 0 for cluster in clusters},
        batch=draw(st.integers(1, 4)),
        keep=draw(st.booleans()),
        # A planner that looks at room and may disrupt moves what runs to where there is room: that is its purpose.
        avoid_disruption=by != "weights" or draw(st.booleans()),
        by=by,
    )


@settings(max_examples=100, deadline=None)
@given(loops(bias=st.integers(-3, 5)))
def test_with_constant_capacity_decisions_come_to_rest_whatever_the_nodes_seem_to_have(loop: Loop) -> None:
    loop.plan()
    loop.come_to_rest()
    assert sum(loop.running.values()) == min(loop.total, sum(loop.capacity.values()))


@settings(max_examples=100, deadline=None)
@given(loops(bias=st.integers(0, 5), planners=PLANNERS[:2]), st.data())
def test_after_any_history_decisions_come_to_rest_again(loop: Loop, data: st.DataObject) -> None:
    loop.plan()
    for _ in range(data.draw(st.integers(1, 4))):
        for _ in range(data.draw(st.integers(1, 12))):
            loop.step()
        loop.capacity = {cluster: data.draw(st.integers(0, 9)) for cluster in loop.weights}
    loop.come_to_rest()
    assert sum(loop.running.values()) == min(loop.total, sum(loop.capacity.values()))


@settings(max_examples=100, deadline=None)
@given(loops(bias=st.just(0), planners=("weights",)))
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
