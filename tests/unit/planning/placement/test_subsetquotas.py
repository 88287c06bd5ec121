"""The division over subsets and clusters: the examples of the documents, and subsets whose nodes are full."""

from collections.abc import Mapping

import pytest

from federation.planning.placement.nearest import plan_nearest
from federation.planning.placement.replicas import Demand, Preference, Steps
from federation.planning.placement.subsetquotas import SubsetClusters, SubsetSpread, plan_quotas, planned_quotas

TWO = ("east", "north")
EVERY = frozenset(TWO)


def plan(
    spread: SubsetSpread,
    total: int,
    current: Mapping[str, int] | None = None,
    free: Mapping[str, int] | None = None,
    *,
    avoid_disruption: bool = True,
) -> dict[str, dict[str, int]]:
    """Return the quotas by subset and cluster of two clusters with equal weights."""
    steps: Steps = []
    preferences = {name: Preference(1) for name in TWO}
    demand = Demand(total, TWO, preferences, "default/web", current or {}, avoid_disruption=avoid_disruption)
    plan_quotas(spread, free or {}, plan_nearest, demand, steps)
    return {name: dict(own) for name, own in planned_quotas(steps).items() if own}


@pytest.mark.parametrize(("total", "others"), [(3000, 0), (3100, 100), (2750, 0)])
def test_ten_packages_of_300_are_filled_in_order_over_two_clusters(total: int, others: int) -> None:
    subsets = [SubsetClusters(f"package-{n}", 300, frozenset({TWO[n % 2]})) for n in range(10)]
    quotas = plan(SubsetSpread("web", (*subsets, SubsetClusters("others", None, EVERY))), total)
    sizes = [sum(quotas.get(f"package-{n}", {}).values()) for n in range(10)]
    assert sizes == ([300] * 10 if total >= 3000 else [300] * 9 + [50])
    assert sum(quotas.get("others", {}).values()) == others


OWN = SubsetClusters("own", 5, frozenset({"east"}))
MORE = SubsetClusters("more", None, frozenset({"north"}))
BOTH = SubsetClusters("both", None, EVERY)


@pytest.mark.parametrize(
    ("subsets", "running", "expected"),
    [
        ((OWN, MORE), {}, {"own": {"east": 5}}),
        ((OWN, MORE), {"east": {"own": 2}}, {"own": {"east": 2}, "more": {"north": 3}}),
        # The other subset of the cluster is not marked.
        ((OWN, BOTH), {"east": {"own": 2}}, {"own": {"east": 2}, "both": {"east": 1, "north": 2}}),
        ((OWN, BOTH), {"east": {"own": 2, "both": 0}}, {"own": {"east": 2}, "both": {"north": 3}}),
        # Another cluster of the same subset comes first.
        ((BOTH,), {"east": {"both": 2}}, {"both": {"east": 2, "north": 3}}),
        # What fits nowhere stays.
        ((OWN, MORE), {"east": {"own": 2}, "north": {"more": 0}}, {"own": {"east": 5}}),
        # The rest does not go to a cluster that has no nodes for a subset.
        ((OWN,), {"east": {"own": 2}}, {"own": {"east": 2}, "": {"north": 3}}),
    ],
    ids=["none", "next subset", "next subset there", "both marked", "other cluster", "nowhere", "rest"],
)
def test_replicas_without_nodes_go_on(
    subsets: tuple[SubsetClusters, ...],
    running: Mapping[str, Mapping[str, int]],
    expected: Mapping[str, Mapping[str, int]],
) -> None:
    held = {subsets[0].name: {"east": 5}}
    assert plan(SubsetSpread("web", subsets, held, running=running), 5, {"east": 5}) == expected


@pytest.mark.parametrize(
    ("total", "free", "expected"),
    [
        (1, {"east": 0, "north": 5}, {"more": {"north": 1}}),
        (1, {"east": 1, "north": 0}, {"own": {"east": 1}}),
        (1, {"east": 0, "north": 0}, {"own": {"east": 1}}),
        (3, {"east": 2, "north": 5}, {"own": {"east": 2}, "more": {"north": 1}}),
    ],
)
def test_a_replica_without_room_in_the_first_subset_goes_to_the_next(
    total: int, free: Mapping[str, int], expected: Mapping[str, Mapping[str, int]]
) -> None:
    assert plan(SubsetSpread("web", (OWN, MORE)), total, free=free) == expected


def test_a_cluster_that_does_not_answer_keeps_replicas_that_wait_there() -> None:
    spread = SubsetSpread("web", (OWN, MORE), {"own": {"east": 5}}, frozenset({"east"}), {"east": {"own": 2}})
    assert plan(spread, 5, {"east": 5}) == {"own": {"east": 5}}
    assert plan(spread, 7, {"east": 5}) == {"own": {"east": 5}, "more": {"north": 2}}


@pytest.mark.parametrize(
    ("frozen", "avoid_disruption", "expected"),
    [
        ((), False, {"east": 2, "north": 2}),
        ((), True, {"east": 4}),
        (("east",), False, {"east": 4}),
        (("north",), False, {"east": 4}),
    ],
)
def test_a_new_division_moves_no_replicas_from_or_to_a_cluster_that_does_not_answer(
    frozen: tuple[str, ...], avoid_disruption: bool, expected: Mapping[str, int]
) -> None:
    spread = SubsetSpread("web", (BOTH,), {"both": {"east": 4}}, frozenset(frozen))
    assert plan(spread, 4, {"east": 4}, avoid_disruption=avoid_disruption) == {"both": expected}


@pytest.mark.parametrize(
    ("avoid_disruption", "expected"),
    [(True, {"own": {"east": 3}, "more": {"north": 2}}), (False, {"own": {"east": 5}})],
)
def test_only_a_new_division_fills_the_first_subset_from_the_others(
    avoid_disruption: bool, expected: Mapping[str, Mapping[str, int]]
) -> None:
    current = {"east": 3, "north": 2}
    spread = SubsetSpread("web", (OWN, MORE), {"own": {"east": 3}, "more": {"north": 2}})
    assert plan(spread, 5, current, avoid_disruption=avoid_disruption) == expected


@pytest.mark.parametrize(
    ("held", "total", "expected"),
    [
        ({"east": 4, "north": 4}, 4, {"east": 2, "north": 2}),
        ({"east": 6, "north": 2}, 4, {"east": 2, "north": 2}),
        ({"east": 6, "north": 2}, 7, {"east": 5, "north": 2}),
        ({"east": 1, "north": 3}, 0, {}),
    ],
)
def test_a_scale_down_removes_where_the_planner_does(
    held: Mapping[str, int], total: int, expected: Mapping[str, int]
) -> None:
    wanted = {"both": expected} if expected else {}
    assert plan(SubsetSpread("web", (BOTH,), {"both": held}), total, held) == wanted
