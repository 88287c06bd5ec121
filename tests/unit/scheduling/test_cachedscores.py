"""Cached total scores of many clusters: after the report of one, an engine decides like one without caches.

With fewer than nine clusters every change counts as many, and all scores are computed again.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from federation.scheduling.engine import Engine
from federation.scheduling.explain import to_json
from federation.scheduling.framework.normalization import FEW
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, ClusterBuilder, a_cluster, a_divided_unit
from federation.scheduling.framework.types import Cluster
from federation.scheduling.snapshot import Snapshot

REGISTRY = load_plugins()
COUNT = 2 * FEW


def a_member(number: int, *, taints: int = 0, cpu: int = 4) -> ClusterBuilder:
    built = a_cluster(f"c{number:02}").offering(cpu="10", memory="10Gi", pods="100").free(cpu=str(cpu), memory="5Gi")
    for taint in range(taints):
        built = built.tainted(f"t{taint}", "x", "PreferNoSchedule")
    return built


def _same(engine: Engine, clusters: tuple[Cluster, ...], generation: int, lasting: dict[str, Any]) -> dict[str, int]:
    """Check that the engine decides like a new one; return the total scores."""
    unit = a_divided_unit(6, request={"cpu": 100})
    again = engine.decide(unit, Snapshot(generation, clusters, lasting), DEFAULT_PROFILE, now=NOW)
    alone = tuple(replace(cluster, memo={}, lasting={}) for cluster in clusters)
    new = Engine(REGISTRY).decide(unit, Snapshot(generation, alone), DEFAULT_PROFILE, now=NOW)
    assert to_json(again) == to_json(new)
    assert again.scored is not None
    return dict(zip(again.scored.totals.names, again.scored.totals.scores, strict=True))


@pytest.mark.parametrize(
    ("change", "is_relative"),
    [
        (lambda at: a_member(at, taints=4), True),
        (lambda at: a_member(at, taints=0), True),
        (lambda at: a_member(at, taints=2, cpu=9), False),
        (lambda at: a_member(at, taints=2).tainted("away", "", "NoSchedule"), True),
        (lambda at: a_member(at, taints=2), False),
    ],
    ids=["the most taints", "no taint", "more free cpu", "not feasible", "nothing"],
)
@pytest.mark.parametrize("at", [0, 7, COUNT - 1])
def test_a_report_changes_the_scores_of_others_exactly_where_they_are_relative_to_it(
    at: int, change: Callable[[int], ClusterBuilder], is_relative: bool
) -> None:
    engine = Engine(REGISTRY)
    before = tuple(a_member(number, taints=2 if number == at else number % 2).built() for number in range(COUNT))
    first = _same(engine, before, 0, {})
    after = (*before[:at], change(at).built(), *before[at + 1 :])
    second = _same(engine, after, 1, {})
    others = [cluster.name for number, cluster in enumerate(before) if number != at]
    assert any(first[name] != second[name] for name in others) is is_relative
    assert _same(engine, before, 2, {}) == first


def test_a_report_of_resources_alone_keeps_what_does_not_depend_on_them() -> None:
    engine, lasting = Engine(REGISTRY), dict[str, Any]()
    clusters = tuple(a_member(number, taints=number % 3).built() for number in range(COUNT))
    for generation, at in enumerate((3, 3, 0, COUNT - 1, 8)):
        _same(engine, clusters, generation, lasting)
        reported = a_member(at, cpu=generation + 1).built()
        new = replace(clusters[at], available=reported.available, memo={})
        clusters = (*clusters[:at], new, *clusters[at + 1 :])
    _same(engine, clusters, 9, lasting)


def test_reports_of_many_clusters_at_once_are_all_seen() -> None:
    engine = Engine(REGISTRY)
    clusters = tuple(a_member(number, taints=number % 3).built() for number in range(COUNT))
    _same(engine, clusters, 0, {})
    for generation, count in enumerate((1, 2, 3, COUNT), start=1):
        changed = tuple(a_member(number, taints=generation, cpu=generation).built() for number in range(count))
        clusters = (*changed, *clusters[count:])
        _same(engine, clusters, generation, {})


def test_more_sets_of_current_clusters_than_are_cached_give_the_same_decisions() -> None:
    """Where a cluster is closed to new units only, each set of current clusters among those has its own result."""
    engine, closed = Engine(REGISTRY), 7
    clusters = tuple(
        (a_member(number).tainted("full", "", "NoSchedule") if number < closed else a_member(number)).built()
        for number in range(COUNT)
    )
    sets = [tuple(name for name in range(closed) if mask >> name & 1) for mask in range(1 << closed)]
    for number, current in enumerate([*sets, *sets[:3]]):
        unit = replace(a_divided_unit(6, request={"cpu": 100}), current={f"c{at:02}": 1 for at in current})
        again = engine.decide(unit, Snapshot(0, clusters, {}), DEFAULT_PROFILE, now=NOW)
        assert [name for name in (f"c{at:02}" for at in range(closed)) if name not in again.filtered.rejected] == [
            f"c{at:02}" for at in current
        ]
        if number % 16 == 1:
            alone = tuple(replace(cluster, memo={}, lasting={}) for cluster in clusters)
            new = Engine(REGISTRY).decide(unit, Snapshot(0, alone), DEFAULT_PROFILE, now=NOW)
            assert to_json(again) == to_json(new)
