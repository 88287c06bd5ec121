"""Invariants of the planner and checker of sharded services, against a direct simulation of scheduling."""

from collections import Counter

from hypothesis import assume, given
from hypothesis import strategies as st

from federation.features.topologyspreadplan.rules.assignment import assign_zones, count_by_zone
from federation.features.topologyspreadplan.rules.check import Distribution, Node, Pod, changes, check
from federation.features.topologyspreadplan.rules.counting import cannot_deadlock, worst_case_bounds
from federation.features.topologyspreadplan.rules.feasibility import feasible_nodes
from federation.features.topologyspreadplan.rules.planner import (
    Avoidance,
    Outcome,
    Plan,
    plan_service,
    run,
    search_from,
    search_unpinned,
)
from federation.features.topologyspreadplan.rules.search import SearchOutcome, start_by_node, start_by_zone
from federation.features.topologyspreadplan.rules.shardedservice import Mode, Service, Skews, Zone, limits_of

STATES_MAX = 3_000


@st.composite
def services(draw: st.DrawFn, *, shards: int = 5, zones_max: int = 4) -> Service:
    """Draw services of small zones, which a search can exhaust."""
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=zones_max))
    zones = tuple(Zone(f"z{number}", count) for number, count in enumerate(counts))
    domains = len(counts) if len(counts) > 1 else counts[0]
    replicas = draw(st.integers(1, min(3, domains)))
    return Service(zones, draw(st.integers(1, shards)), replicas, draw(st.sampled_from([Mode.STANDARD, Mode.RELAXED])))


@st.composite
def skews_of(draw: st.DrawFn, service: Service) -> Skews:
    node = draw(st.integers(1, max(1, service.pods)))
    zone = draw(st.integers(1, max(1, service.pods)))
    return Skews(node, zone if len(service.zones) > 1 else None)


def nodes_of(service: Service) -> dict[str, str]:
    return {f"{zone.name}-{number}": zone.name for zone in service.zones for number in range(zone.nodes)}


def schedule(data: st.DataObject, plan: Plan, skews: Skews) -> tuple[dict[tuple[int, int], str], bool]:
    """Place pods in a drawn order; return the placement, and whether some pods had no feasible node."""
    service, nodes = plan.service, nodes_of(plan.service)
    placed: dict[tuple[int, int], str] = {}
    while len(placed) < service.pods:
        moves = []
        for shard in range(service.shards):
            ordinal = sum(key[0] == shard for key in placed)
            if ordinal == service.replicas:
                continue
            used = {node for key, node in placed.items() if key[0] == shard}
            allowed = plan.zones_of(shard)
            found = feasible_nodes(Counter(placed.values()), nodes, used, skews, allowed=allowed)
            moves += [((shard, ordinal), node) for node in found]
        if not moves:
            return placed, True
        pod, node = moves[data.draw(st.integers(0, len(moves) - 1))]
        placed[pod] = node
    return placed, False


@given(services(), st.data())
def test_no_order_of_scheduling_deadlocks_under_a_plan_that_excludes_it(service: Service, data: st.DataObject) -> None:
    plan = run(plan_service(service, states_max=STATES_MAX))
    assume(plan.outcome is Outcome.FREE)
    placed, is_stuck = schedule(data, plan, plan.skews)
    assert not is_stuck
    if plan.avoidance is Avoidance.PINNED:
        zones = nodes_of(service)
        counts = Counter(zones[node] for node in placed.values())
        assert counts == Counter(count_by_zone(plan.zones, [zone.name for zone in service.zones]))


@given(services(), st.data())
def test_a_search_covers_every_order_of_scheduling(service: Service, data: st.DataObject) -> None:
    skews = data.draw(skews_of(service))
    plan = run(plan_service(service, states_max=1))
    assume(plan.outcome is not Outcome.REFUSED)
    found = run(search_unpinned(service, skews, STATES_MAX))
    assume(found.verdict is not SearchOutcome.TOO_LARGE)
    every = Plan(service, plan.limits, skews, Outcome.FREE, Avoidance.NONE, ())
    placed, is_stuck = schedule(data, every, skews)
    assert not is_stuck or found.verdict is SearchOutcome.DEADLOCK
    assert max(Counter(placed.values()).values()) <= found.maxima.node
    if len(service.zones) > 1:
        zones = nodes_of(service)
        assert max(Counter(zones[node] for node in placed.values()).values()) <= found.maxima.domain


@given(services(), st.data())
def test_counting_agrees_with_the_exhaustive_search(service: Service, data: st.DataObject) -> None:
    skews = data.draw(skews_of(service))
    if len(service.zones) == 1:
        start = start_by_node(service.nodes, service.shards, service.replicas)
    else:
        names = [zone.name for zone in service.zones]
        start = start_by_zone(service.zones, [(service.replicas, names)] * service.shards)
    found = run(search_from(start, skews, STATES_MAX))
    bounds = worst_case_bounds(service, skews)
    assert found.maxima.node <= bounds.node
    assert found.maxima.domain <= bounds.domain
    if cannot_deadlock(service, skews):
        assert found.verdict is not SearchOutcome.DEADLOCK


@given(services(shards=12), st.lists(st.integers(1, 5), min_size=4, max_size=4))
def test_an_assignment_gives_each_shard_different_zones_and_keeps_the_limits(
    service: Service, weights: list[int]
) -> None:
    limits = limits_of(service)
    even = assign_zones(service, limits)
    assume(len(service.zones) >= service.replicas)
    if even is None:
        return
    assert [len(set(zones)) for zones in even] == [service.replicas] * service.shards
    counts = count_by_zone(even, [zone.name for zone in service.zones])
    if len(service.zones) > 2 and limits.zone and limits.zone * len(service.zones) >= service.pods:
        assert max(counts.values()) <= limits.zone
    if len({zone.nodes for zone in service.zones}) == 1:
        assert max(counts.values()) - min(counts.values()) <= 1
    weighted = Service(
        tuple(Zone(z.name, z.nodes, weight=w) for z, w in zip(service.zones, weights, strict=False)),
        service.shards,
        service.replicas,
    )
    assert (assign_zones(weighted, limits) is None) is (even is None)
    assert assign_zones(service, limits, dict(enumerate(even))) == even


@given(services(shards=6), st.data())
def test_a_violation_appears_once_and_clears_when_its_pods_leave(service: Service, data: st.DataObject) -> None:
    plan = run(plan_service(service, states_max=100))
    nodes = tuple(Node("", name, zone) for name, zone in nodes_of(service).items())
    place = st.sampled_from([node.name for node in nodes])
    pods = tuple(
        Pod("", f"redis-{shard}-{ordinal}", shard, data.draw(place))
        for shard in range(service.shards)
        for ordinal in range(service.replicas)
    )
    found = check(plan, Distribution(nodes, pods))
    assert len({violation.key for violation in found}) == len(found)
    assert changes([violation.key for violation in found], found) == ([], [])
    left = check(plan, Distribution(nodes, ()))
    appeared, cleared = changes([violation.key for violation in found], left)
    assert appeared == []
    assert {rule for rule, _ in cleared}.isdisjoint({"V9"})
    assert len(cleared) == len(found) - len(left)
    together = {violation.rule for violation in found} & {"V1"}
    domain = nodes_of(service) if len(service.zones) > 1 else {node.name: node.name for node in nodes}
    shared = Counter((pod.shard, domain[pod.node]) for pod in pods)
    assert bool(together) is any(count > 1 for count in shared.values())
