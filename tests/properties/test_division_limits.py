"""Built-in Replicas plugins respect the limits of every division, for arbitrary policies, clusters and histories."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.api import names
from federation.planning.placement.failback import Offers
from federation.planning.placement.topologydomains import SpreadConstraint
from federation.scheduling.engine import Engine, Outcome
from federation.scheduling.framework.migrations import AutoMigration, CustomMigration
from federation.scheduling.framework.profile import DEFAULT_PROFILE, Profile, refs, with_strategy
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_unit
from federation.scheduling.framework.types import Cluster, SchedulingMode, SchedulingUnit
from federation.scheduling.snapshot import Snapshot

ENGINE = Engine(load_plugins())
NAMES = tuple("abcdefg")
VALUES = st.sampled_from(("1", "2", "3", ""))


def a_profile(*, is_binpack: bool, capacity: str) -> Profile:
    profile = with_strategy(DEFAULT_PROFILE, is_binpack=is_binpack)
    return replace(profile, arguments={profile.replicas[0].name: {"capacity": capacity}})


PROFILES = [
    a_profile(is_binpack=packed, capacity=capacity) for packed in (False, True) for capacity in ("Nodes", "Sums")
]
FLOOR = {"ClusterCost": {"onDemandFloor": "50%", "minSavingPercent": 10}}
PROFILES.append(replace(DEFAULT_PROFILE, replicas=refs("ClusterCost"), arguments=FLOOR))


@st.composite
def clusters(draw: st.DrawFn, name: str) -> Cluster:
    labels = {key: value for key in ("region", "zone") if (value := draw(VALUES))}
    if price := draw(VALUES):
        labels |= {names.PRICE_PREFIX + "cpu": price}
    if draw(st.booleans()):
        labels |= {names.CAPACITY_TYPE: names.SPOT}
    built = a_cluster(name).labelled(**labels)
    size = draw(st.integers(0, 8))
    built = built.with_nodes(size, cpu="1") if draw(st.booleans()) else built.offering(cpu=str(size))
    if draw(st.integers(0, 7)) == 0:
        built = built.tainted("x", "y", draw(st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute"))))
    return (built.unready() if draw(st.integers(0, 9)) == 0 else built).built()


def counts(most: int = 9) -> st.SearchStrategy[Mapping[str, int]]:
    return st.dictionaries(st.sampled_from(NAMES), st.integers(0, most))


def constraints() -> st.SearchStrategy[tuple[SpreadConstraint, ...]]:
    def of(key: str) -> st.SearchStrategy[SpreadConstraint]:
        return st.builds(SpreadConstraint, st.just(key), st.integers(1, 3), st.integers(1, 3), st.booleans())

    return st.just(()) | st.tuples(of("region")) | st.tuples(of("region"), of("zone"))


def migrations() -> st.SearchStrategy[AutoMigration]:
    offers = st.builds(Offers, counts(4), st.integers(0, 4))
    return st.builds(AutoMigration, st.booleans(), counts(), counts(), offers)


@st.composite
def units(draw: st.DrawFn) -> SchedulingUnit:
    minimums = draw(st.just({}) | counts(4))
    maximums = {name: max(most, minimums.get(name, 0)) for name, most in draw(st.just({}) | counts()).items()}
    fields: dict[str, Any] = {
        "desired_replicas": draw(st.integers(1, 30)),
        "request": {"cpu": draw(st.sampled_from((0, 500, 1000)))},
        "current": draw(counts()),
        "avoid_disruption": draw(st.booleans()),
        "min_replicas": minimums,
        "max_replicas": maximums,
        "weights": draw(st.just({}) | counts(3)),
        "priorities": draw(st.just({}) | counts(3)),
        "topology_spread": draw(constraints()),
        "max_clusters": draw(st.none() | st.integers(1, 5)),
        "auto_migration": draw(st.none() | migrations()),
        "custom_migration": draw(st.none() | st.builds(CustomMigration, counts())),
        "assumed": {name: {(("cpu", 500),): count} for name, count in draw(counts(3)).items()},
    }
    return a_unit(mode=SchedulingMode.DIVIDE, **fields)


@pytest.mark.slow("generated clusters and workloads")
@given(st.data())
@examples(150)
def test_the_built_in_plugins_keep_to_the_limits(data: st.DataObject) -> None:
    unit, profile = data.draw(units()), data.draw(st.sampled_from(PROFILES))
    chosen = data.draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    members = tuple(data.draw(clusters(name)) for name in sorted(chosen))
    decision = ENGINE.decide(unit, Snapshot(1, members), profile, now=NOW)
    assert decision.outcome is not Outcome.PLUGIN_FAILED, decision.reason
