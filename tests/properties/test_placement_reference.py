"""The three planners against a slow, literal reading of the specification (docs/reference/replica-division.md), over arbitrary demands.

The behaviour vectors are a sample of the originals' answers; this is the rule behind them, without any of the short cuts
that the planners take. It says what should come out, and nothing about speed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples
from tests.support.kubefedplanner import plan_kubefed

from federation.apimachinery.hashing import fnv1_32
from federation.planning.placement.binpack import plan_binpack
from federation.planning.placement.replicas import Demand, Plan, Preference, plan_replicas

CLUSTERS = ("a", "b", "c", "member-1", "集群")
Counts = Mapping[str, int]
Order = list[tuple[str, Preference]]
Answer = tuple[dict[str, int], dict[str, int]]


@st.composite
def preferences(draw: st.DrawFn) -> Preference:
    weight = draw(st.integers(0, 6) | st.integers(0, 10**12))
    return Preference(weight, draw(st.just(0) | st.integers(0, 10)), draw(st.none() | st.integers(0, 30)))


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    clusters = tuple(draw(st.lists(st.sampled_from(CLUSTERS), unique=True)))
    counts, few = (st.dictionaries(st.sampled_from(CLUSTERS), st.integers(0, most)) for most in (40, 12))
    current, estimated = draw(counts), draw(few)
    given_out = {cluster: current.get(cluster, 0) for cluster in clusters}
    settled = given_out | {cluster: count for cluster, count in estimated.items() if cluster in clusters}
    return Demand(
        total=draw(st.integers(0, 60) | st.integers(0, 10**9)),
        clusters=clusters,
        preferences=draw(st.dictionaries(st.sampled_from((*CLUSTERS, "*")), preferences())),
        key=draw(st.sampled_from(("", "default/web"))),
        current=current,
        estimated=estimated,
        limited=draw(few),
        scheduled=draw(st.just({}) | st.just(settled) | st.just(given_out) | few),
        avoid_disruption=draw(st.booleans()),
        keep_unschedulable=draw(st.booleans()),
    )


def in_order(demand: Demand, own: Callable[[str], Preference | None]) -> Order:
    considered = [(cluster, preference) for cluster in demand.clusters if (preference := own(cluster)) is not None]
    return sorted(considered, key=lambda entry: (-entry[1].weight, fnv1_32(entry[0] + demand.key)))


def preference_of(demand: Demand) -> Callable[[str], Preference | None]:
    return lambda cluster: demand.preferences.get(cluster, demand.preferences.get("*"))


def clip(amount: int, *caps: int | None) -> int:
    return min([amount, *(cap for cap in caps if cap is not None)])


def minimums(
    order: Order, total: int, estimated: Counts, limited: Counts
) -> tuple[dict[str, int], dict[str, int], int]:
    plan: dict[str, int] = {}
    overflow: dict[str, int] = {}
    rest = total
    for cluster, own in order:
        wanted = clip(own.minimum, rest, limited.get(cluster))
        plan[cluster] = clip(wanted, estimated.get(cluster))
        if plan[cluster] < wanted:
            overflow[cluster] = wanted - plan[cluster]
        rest -= plan[cluster]
    return plan, overflow, rest


def spread(order: Order, total: int, estimated: Counts, limited: Counts, *, keep: bool) -> Answer:
    plan, overflow, rest = minimums(order, total, estimated, limited)
    is_changed = True
    while is_changed and rest > 0 and (weights := sum(own.weight for _, own in order)) > 0:
        is_changed, still, distribute = False, [], rest
        for cluster, own in order:
            start = plan[cluster]
            wanted = start + min(-(-distribute * own.weight // weights), rest)
            capped = clip(wanted, own.maximum, limited.get(cluster))
            plan[cluster] = clip(capped, estimated.get(cluster))
            if plan[cluster] < capped:
                overflow[cluster] = overflow.get(cluster, 0) + capped - plan[cluster]
            if plan[cluster] == wanted:
                still.append((cluster, own))
            is_changed = is_changed or plan[cluster] > start
            rest -= plan[cluster] - start
        order = still
    return plan, overflow if keep else trimmed(overflow, rest)


def trimmed(overflow: Counts, most: int) -> dict[str, int]:
    return {cluster: min(extra, most) for cluster, extra in overflow.items() if min(extra, most) > 0}


def spread_plan(demand: Demand) -> Answer:
    keep = demand.keep_unschedulable or not demand.avoid_disruption
    order = in_order(demand, preference_of(demand))
    desired, overflow = spread(order, demand.total, demand.estimated, demand.limited, keep=keep)
    if not demand.avoid_disruption:
        return desired, overflow
    current = {c: clip(demand.current.get(c, 0), demand.limited.get(c), demand.estimated.get(c)) for c, _ in order}
    missing = sum(desired.values()) - sum(current.values())
    if missing < 0:
        own = {c: Preference(held - desired[c], 0, held) for c, held in current.items() if desired[c] < held}
        taken, _ = spread(in_order(demand, own.get), -missing, {}, {}, keep=False)
        return {c: held - taken.get(c, 0) for c, held in current.items()}, overflow
    own = {}
    for cluster, held in current.items():
        if desired[cluster] > held:
            explicit = demand.preferences.get(cluster)
            room = None if explicit is None or explicit.maximum is None else explicit.maximum - held
            own[cluster] = Preference(desired[cluster] - held, 0, room)
    given_, _ = spread(in_order(demand, own.get), missing, {}, {}, keep=False)
    return {c: held + given_.get(c, 0) for c, held in current.items()}, overflow


def fill(order: Order, total: int, estimated: Counts, limited: Counts) -> Answer:
    plan, overflow, rest = minimums(order, total, estimated, limited)
    for cluster, own in order:
        start = plan[cluster]
        capped = clip(start + rest, own.maximum, limited.get(cluster))
        plan[cluster] = clip(capped, estimated.get(cluster))
        if plan[cluster] < capped:
            overflow[cluster] = max(overflow.get(cluster, 0), capped - plan[cluster])
        rest -= plan[cluster] - start
    return plan, overflow


def is_settled(demand: Demand) -> bool:
    return all(
        count == demand.estimated[cluster] if cluster in demand.estimated else count == demand.current.get(cluster, 0)
        for cluster, count in demand.scheduled.items()
    )


def binpack_plan(demand: Demand) -> Answer:
    has_left = any(cluster not in demand.clusters for cluster in demand.current)
    has_too_many = any(count > demand.limited.get(cluster, count) for cluster, count in demand.current.items())
    if not (has_left or has_too_many or is_settled(demand)):
        return dict(demand.current), {}
    order = [(c, demand.preferences.get(c, Preference())) for c in demand.clusters]
    desired, overflow = fill(order, demand.total, demand.estimated, demand.limited)
    keep = demand.keep_unschedulable or not demand.avoid_disruption
    known = {c: count for c, count in demand.scheduled.items() if c in demand.clusters}
    running = sum(clip(count, demand.limited.get(c)) for c, count in known.items())
    if not keep and running == demand.total:
        return dict(demand.scheduled), {}
    if not demand.avoid_disruption:
        return desired, overflow
    overflow = overflow if keep else trimmed(overflow, demand.total - running)
    current = {
        c: clip(demand.current.get(c, 0), demand.estimated.get(c), demand.limited.get(c)) for c in demand.clusters
    }
    held = sum(current.values())
    if held > sum(desired.values()):
        surplus = [(c, Preference(0, 0, current[c])) for c in reversed(demand.clusters) if desired[c] < current[c]]
        taken, _ = fill(surplus, held - demand.total, {}, {})
        return {c: count - taken.get(c, 0) for c, count in current.items()}, overflow
    lacking: Order = []
    if held < sum(desired.values()):
        for cluster, own in order:
            if desired[cluster] > current[cluster]:
                room = None if own.maximum is None else own.maximum - current[cluster]
                lacking.append((cluster, Preference(0, own.minimum, room)))
    given_, _ = fill(lacking, demand.total - held, {}, demand.limited)
    return {c: count + given_.get(c, 0) for c, count in current.items()}, overflow


def kubefed_plan(demand: Demand, *, rebalance: bool) -> Answer:
    order = in_order(demand, preference_of(demand))
    plan = dict.fromkeys(demand.clusters, 0)
    rest, kept, overflow = demand.total, dict.fromkeys(demand.clusters, 0), dict[str, int]()
    for cluster, own in order:
        plan[cluster] = clip(own.minimum, rest, demand.estimated.get(cluster))
        rest -= plan[cluster]
    for cluster, own in () if rebalance else order:
        held = clip(demand.current.get(cluster, 0), own.maximum, demand.estimated.get(cluster))
        if demand.current.get(cluster, 0) > plan[cluster]:
            kept[cluster] = max(0, min(held - plan[cluster], rest))
            plan[cluster] += kept[cluster]
            rest -= kept[cluster]
    is_changed = True
    while is_changed and rest > 0 and (weights := sum(own.weight for _, own in order)) > 0:
        is_changed, still, distribute = False, [], rest
        for cluster, own in order:
            start, share = plan[cluster], min(-(-distribute * own.weight // weights), rest)
            offset = min(share, kept[cluster])
            kept[cluster] -= offset
            wanted = start + share - offset
            capped = clip(wanted, own.maximum)
            plan[cluster] = clip(capped, demand.estimated.get(cluster))
            if plan[cluster] < capped:
                overflow[cluster] = capped - plan[cluster]
            if plan[cluster] == wanted:
                still.append((cluster, own))
            is_changed = is_changed or offset > 0 or plan[cluster] > start
            rest -= plan[cluster] - start
        order = still
    return plan, overflow if rebalance else trimmed(overflow, rest)


def answer_of(plan: Plan) -> Answer:
    return plan.replicas, plan.overflow


@examples(300)
@given(demands())
def test_spread_equals_the_specification(demand: Demand) -> None:
    assert answer_of(plan_replicas(demand)) == spread_plan(demand)


@examples(300)
@given(demands())
def test_binpack_equals_the_specification(demand: Demand) -> None:
    assert answer_of(plan_binpack(demand)) == binpack_plan(demand)


@given(demands(), st.booleans())
def test_kubefed_equals_the_specification(demand: Demand, rebalance: bool) -> None:
    assert answer_of(plan_kubefed(demand, rebalance=rebalance)) == kubefed_plan(demand, rebalance=rebalance)


@given(demands(), st.data())
def test_a_repeated_cluster_counts_once(demand: Demand, data: st.DataObject) -> None:
    if demand.clusters:
        twice = replace(demand, clusters=(*demand.clusters, data.draw(st.sampled_from(demand.clusters))))
        assert answer_of(plan_replicas(twice)) == answer_of(plan_replicas(demand))
