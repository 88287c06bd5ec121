"""Invariants of whole decisions: caches never change a result, and equal inputs give equal decisions."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.api.selectors import compile_cluster_terms
from federation.planning.placement.topologydomains import SpreadConstraint
from federation.scheduling.engine import Engine
from federation.scheduling.explain import to_json
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.profile import DEFAULT_PROFILE, with_strategy
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_unit
from federation.scheduling.framework.types import (
    Cluster,
    PreferredTerm,
    ReplicasStrategy,
    SchedulingMode,
    SchedulingUnit,
    Toleration,
)
from federation.scheduling.snapshot import ClusterCache, Snapshot

REGISTRY = load_plugins()
NAMES = ("c1", "c2", "c3", "c4", "c5")
WARM = Engine(REGISTRY)
"""One engine for all examples, so that its caches hold results of earlier examples."""
PROFILES = {
    strategy: with_strategy(DEFAULT_PROFILE, is_binpack=strategy is ReplicasStrategy.BINPACK)
    for strategy in ReplicasStrategy
}
IN_A = compile_cluster_terms([{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}])
SOFT = SpreadConstraint("zone", 2, is_hard=False)


@st.composite
def clusters(draw: st.DrawFn, name: str) -> Cluster:
    built = a_cluster(name).labelled(zone=draw(st.sampled_from("ab"))).offering(cpu="10", memory="10Gi", pods="100")
    built = built.free(cpu=str(draw(st.integers(0, 10))))
    if draw(st.booleans()):
        built = built.with_nodes(draw(st.integers(1, 4)), cpu=str(draw(st.integers(0, 4))))
    if draw(st.booleans()):
        built = built.tainted("dedicated", "x", draw(st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute"))))
    return (built.unready() if draw(st.integers(0, 5)) == 0 else built).built()


def successor(old: Cluster, new: Cluster, *, is_report: bool) -> Cluster:
    """Return the next version of a cluster; after a report only resources differ."""
    if not is_report:
        return new
    known: Any = {name: getattr(new, name) for name in ("allocatable", "available", "node_classes")}
    return replace(old, **known, memo={})


@st.composite
def units(draw: st.DrawFn) -> SchedulingUnit:
    few = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9), max_size=3)
    fields: dict[str, Any] = {
        "mode": draw(st.sampled_from(SchedulingMode)),
        "desired_replicas": draw(st.integers(0, 30)),
        "request": {"cpu": draw(st.sampled_from((0, 100, 2000)))},
        "current": draw(few),
        "cluster_selector": draw(st.sampled_from(((), (("zone", "a"),)))),
        "tolerations": draw(st.sampled_from(((), (Toleration(operator="Exists"),)))),
        "max_clusters": draw(st.none() | st.integers(0, 3)),
        "strategy": draw(st.sampled_from(ReplicasStrategy)),
        "avoid_disruption": draw(st.booleans()),
        "weights": draw(st.just({}) | few),
        "priorities": draw(st.just({}) | few),
        "max_replicas": draw(st.just({}) | few),
        "preferred": draw(st.sampled_from(((), (PreferredTerm(5, IN_A),)))),
        "topology_spread": draw(st.sampled_from(((), (SpreadConstraint("zone"),), (SOFT,)))),
        "assumed": {name: {(("cpu", 100),): count} for name, count in draw(few).items()},
    }
    return a_unit(name=draw(st.sampled_from(("web", "api"))), **fields)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Snapshot, SchedulingUnit]]:
    """Draw decisions with changed, added and removed clusters in between."""
    members = {name: draw(clusters(name)) for name in NAMES}
    steps: list[tuple[Snapshot, SchedulingUnit]] = []
    lasting: dict[str, Any] = {}
    before = None
    for generation in range(draw(st.integers(1, 6))):
        for name in draw(st.lists(st.sampled_from(NAMES), max_size=3)):
            is_report = draw(st.booleans())
            members[name] = successor(members[name], draw(clusters(name)), is_report=is_report)
            lasting = lasting if is_report else {}
        absent = draw(st.sampled_from((None, None, *NAMES)))
        lasting, before = lasting if absent == before else {}, absent
        present = tuple(members[name] for name in NAMES if name != absent)
        steps.append((Snapshot(generation, present, lasting), draw(units())))
    return steps


@pytest.mark.slow("generated histories")
@given(histories())
@examples(150)
def test_an_engine_that_remembers_decides_and_explains_like_a_new_one(steps: list[Any]) -> None:
    for snapshot, unit in steps:
        again = WARM.decide(unit, snapshot, PROFILES[unit.strategy], now=NOW)
        # New objects with the same content, because results are also cached with the cluster.
        new = Snapshot(
            snapshot.generation, tuple(replace(cluster, memo={}, lasting={}) for cluster in snapshot.clusters)
        )
        fresh = Engine(REGISTRY).decide(unit, new, PROFILES[unit.strategy], now=NOW)
        assert to_json(again) == to_json(fresh)


@st.composite
def reports(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a member as it reports itself; some amounts are absurd, as texts of others may be."""
    amount = st.sampled_from(("0", "500m", "2", "4", "-1", "much", 3, None))
    groups = draw(st.lists(st.tuples(st.integers(0, 3), amount, amount), max_size=3))
    free = [{"nodes": nodes, "resources": {"cpu": cpu, "pods": pods}} for nodes, cpu, pods in groups]
    if free and draw(st.booleans()):
        del free[0]["resources"]["cpu"]
    labels = {"kubernetes.io/os": "linux"}
    return {
        "metadata": {"name": draw(st.sampled_from(NAMES)), "labels": {"zone": draw(st.sampled_from("ab"))}},
        "spec": {"taints": draw(st.sampled_from(([], [{"key": "a", "effect": "NoSchedule"}])))},
        "status": {
            "conditions": [{"type": each, "status": "True"} for each in ("Joined", "Ready")],
            "apiResourceTypes": [{"group": "apps", "version": "v1", "kind": "Deployment"}] * draw(st.integers(0, 2)),
            "resources": {
                "allocatable": {"cpu": "10", "pods": "20"},
                "available": {"cpu": draw(amount), "pods": "20"},
                "nodeClasses": [{"nodes": 3, "labels": labels, "largest": {"cpu": "4", "pods": "20"}, "free": free}],
            },
        },
    }


@pytest.mark.slow("generated histories")
@given(st.lists(st.tuples(st.lists(reports(), max_size=3), units()), max_size=5))
@examples(100)
def test_clusters_that_follow_reports_lead_to_the_decisions_of_clusters_that_are_read_anew(steps: list[Any]) -> None:
    followed, engine, newest = ClusterCache(), Engine(REGISTRY), {}
    for reported, unit in steps:
        for source in reported:
            followed.update(source)
            newest[source["metadata"]["name"]] = source
        reread = ClusterCache()
        for source in newest.values():
            reread.update(source)
        again = engine.decide(unit, followed.snapshot(), PROFILES[unit.strategy], now=NOW)
        fresh = Engine(REGISTRY).decide(unit, reread.snapshot(), PROFILES[unit.strategy], now=NOW)
        assert to_json(again) == to_json(fresh)
        assert followed.snapshot().content_hash == reread.snapshot().content_hash


@given(
    st.lists(st.sampled_from(NAMES).flatmap(clusters), max_size=6, unique_by=lambda cluster: cluster.name),
    units(),
    st.booleans(),
)
def test_results_for_all_clusters_at_once_are_those_for_each(
    members: list[Cluster], unit: SchedulingUnit, has_gpu: bool
) -> None:
    if has_gpu:
        unit = replace(unit, request={**unit.request, "memory": 2**30, "nvidia.com/gpu": 1})
    unit, state, found = replace(unit, current={}), CycleState(NOW), set()
    for point, refs in (("filter", DEFAULT_PROFILE.filter), ("score", DEFAULT_PROFILE.score)):
        for plugin in [REGISTRY.make(ref.name, {}) for ref in refs]:
            each = getattr(plugin, f"{point}_each", None)
            if each is not None:
                one = getattr(plugin, point)
                assert list(each(unit, members, state)) == [one(unit, cluster, state) for cluster in members]
                found.add(plugin.NAME)
    assert found == {"ClusterNodesFit", "ClusterResourcesBalancedAllocation", "ClusterResourcesLeastAllocated"}
