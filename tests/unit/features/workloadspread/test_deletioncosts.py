"""Deletion costs of a whole workload."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.spreads import a_pod, a_spread

from federation.api import names
from federation.features.workloadspread.rules.deletioncosts import changed_costs, initial_cost, subset_costs

SUBSETS = [{"name": "a", "maxReplicas": 1}, {"name": "b"}, {"name": "c"}]


def _pod(name: str, cost: str | None = None, **status: Any) -> dict[str, Any]:
    pod = a_pod(name, "a", phase="Running", **status)
    if cost is not None:
        pod["metadata"]["annotations"] |= {names.POD_DELETION_COST: cost}
    return pod


def test_older_versions_have_the_reverse_order() -> None:
    groups = {
        "new": {"a": [_pod("n-a")], "b": [_pod("n-b")], "": [_pod("n-x")]},
        "old": {"a": [_pod("o-a"), _pod("o-a2")], "b": [_pod("o-b")], "c": [_pod("o-c")]},
    }
    assert changed_costs(a_spread(SUBSETS), groups, "new", 9) == {
        "n-a": "300",
        "n-b": "200",
        "n-x": "-400",
        "o-a": "-300",
        "o-a2": "100",
        "o-b": "200",
        "o-c": "300",
    }


def test_only_changed_costs_are_written() -> None:
    groups = {"new": {"a": [_pod("p", "300"), _pod("q", "300")], "b": [_pod("r", "x")]}}
    assert changed_costs(a_spread(SUBSETS), groups, "new", 9) == {"p": "-100", "r": "200"}


@pytest.mark.parametrize("kind", ["Job", "StatefulSet", "GameServerSet"])
def test_other_kinds_have_no_costs(kind: str) -> None:
    assert changed_costs(a_spread(SUBSETS, kind), {"new": {"a": [_pod("p")]}}, "new", 9) == {}


@given(st.integers(1, 8), st.integers(0, 7))
def test_the_initial_cost_is_that_of_a_pod_of_the_latest_version(count: int, index: int) -> None:
    subsets = [{"name": f"s{number}"} for number in range(count)]
    subset = subsets[index % count]
    pod = _pod("p", initial_cost(a_spread(subsets), subset))
    assert changed_costs(a_spread(subsets), {"new": {subset["name"]: [pod]}}, "new", 9) == {}


@pytest.mark.parametrize("kind", ["Job", "StatefulSet", "GameServerSet"])
def test_new_pods_of_other_kinds_have_no_cost(kind: str) -> None:
    assert initial_cost(a_spread(SUBSETS, kind), SUBSETS[0]) is None


def _restarting(name: str, regular: int, sidecar: int, init: int = 0) -> dict[str, Any]:
    pod = _pod(name, containerStatuses=[{"name": "main", "restartCount": regular}])
    pod["spec"] = {
        "nodeName": "node-1",
        "initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "init"}],
    }
    pod["status"]["initContainerStatuses"] = [
        {"name": "proxy", "restartCount": sidecar},
        {"name": "init", "restartCount": init},
    ]
    return pod


def test_pods_that_restart_most_go_first() -> None:
    pods = [_restarting("calm", 1, 0, 9), _restarting("sidecar", 1, 2), _restarting("main", 2, 0)]
    kept = [
        {name for name, cost in subset_costs(pods, index=0, count=1, limit=limit).items() if cost > 0}
        for limit in (1, 2)
    ]
    assert kept == [{"calm"}, {"calm", "sidecar"}]


def test_unknown_pods_go_before_running_ones_and_unready_before_ready_ones() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    pods = [_pod("ready", **ready), _pod("running"), {**_pod("unknown"), "status": {"phase": "Unknown"}}]
    order = [
        {name for name, cost in subset_costs(pods, index=0, count=1, limit=limit).items() if cost > 0}
        for limit in (1, 2)
    ]
    assert order == [{"ready"}, {"ready", "running"}]


def test_a_pod_without_a_time_counts_as_newer() -> None:
    aged, ageless = _pod("aged"), _pod("ageless")
    aged["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    ageless["metadata"].pop("creationTimestamp", None)
    for pods in ([aged, ageless], [ageless, aged]):
        assert changed_costs(a_spread(SUBSETS), {"new": {"a": pods}}, "new", 9) == {"aged": "300", "ageless": "-100"}
