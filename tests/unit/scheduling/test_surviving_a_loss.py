"""No cluster of equal weight is without a replica while another has two, on every path of a division."""

from typing import Any

import pytest

from federation.planning.placement.subsetquotas import SubsetClusters, SubsetSpread
from federation.planning.placement.topologydomains import SpreadConstraint
from federation.scheduling.engine import Engine
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit
from federation.scheduling.snapshot import Snapshot

NAMES = ("east", "north", "west")
EQUAL: dict[str, int] = dict.fromkeys(NAMES, 10)
LOST = a_cluster("lost").offering(cpu="64", memory="64Gi").tainted("gone", effect="NoExecute").built()


def counts(total: int, *, has_nodes: bool = True, **fields: Any) -> list[int]:
    """Return the replicas of three equal clusters; a fourth one is lost."""
    builders = [a_cluster(name).labelled(zone=name) for name in NAMES]
    clusters = [
        (each.with_nodes(8, cpu="8", memory="8Gi") if has_nodes else each.offering(cpu="64", memory="64Gi")).built()
        for each in builders
    ]
    unit = a_divided_unit(total, request={"cpu": 500, "memory": 1 << 20}, **fields)
    decision = Engine(load_plugins()).decide(unit, Snapshot(1, (*clusters, LOST)), DEFAULT_PROFILE, now=NOW)
    assert set(decision.placements) <= {*NAMES}
    return [decision.placements.get(name, 0) or 0 for name in NAMES]


PATHS: dict[str, dict[str, Any]] = {
    "weights of the policy": {"weights": EQUAL},
    "weights without nodes": {"weights": EQUAL, "has_nodes": False},
    "free capacity": {},
    "free sums": {"has_nodes": False},
    "topology": {"topology_spread": (SpreadConstraint("zone", 1, is_hard=False),)},
    "topology with weights": {"weights": EQUAL, "topology_spread": (SpreadConstraint("zone", 1, is_hard=False),)},
    "a WorkloadSpread": {
        "weights": EQUAL,
        "workload_spread": SubsetSpread("s", (SubsetClusters("all", None, frozenset(NAMES)),)),
    },
    "three clusters at most": {"weights": EQUAL, "max_clusters": 3},
}


@pytest.mark.parametrize("total", [3, 4, 5, 7, 11, 20])
@pytest.mark.parametrize("path", PATHS)
def test_every_cluster_has_its_part(path: str, total: int) -> None:
    found = counts(total, **PATHS[path])
    assert sum(found) == total
    assert max(found) - min(found) <= 1


@pytest.mark.parametrize("path", PATHS)
def test_every_cluster_has_its_part_after_a_failover(path: str) -> None:
    found = counts(8, current={"lost": 2, "east": 2, "north": 2, "west": 2}, **PATHS[path])
    assert sorted(found) == [2, 3, 3]
