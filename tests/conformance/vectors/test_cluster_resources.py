"""Behaviour vectors: sums over a member's nodes and pods."""

from typing import Any

import pytest
from tests.support.vectors import each_case, filled, load

from federation.apimachinery.quantity import parse
from federation.apimachinery.selectors import parse_label_selector
from federation.planning.clusters import clusterresources
from federation.runtime.transforms import slim_node, slim_pod


def _numbers(amounts: Any) -> Any:
    return None if amounts is None else {name: parse(amount).nanos for name, amount in amounts.items()}


def _aggregate(given: dict[str, Any], expected: dict[str, Any], *, slim: bool) -> None:
    selectors = [parse_label_selector(text) for text in given["nodeFilterSelectors"]]
    nodes = [{"metadata": {}, **node} for node in given["nodes"]]
    pods = [{"metadata": {}, **pod} for pod in given["pods"]]
    if slim:
        nodes, pods = list(map(slim_node, nodes)), list(map(slim_pod, pods))
    sums = clusterresources.aggregate(
        nodes, pods, is_left_out=lambda labels: any(selector.matches(labels) for selector in selectors)
    )
    status = sums.to_status()
    assert _numbers(status["allocatable"]) == _numbers(expected["allocatable"])
    assert _numbers(status["available"]) == _numbers(expected["available"])


def _katalyst(given: dict[str, Any], expected: dict[str, Any]) -> None:
    if not given["listerExists"] or given["listerError"]:
        pytest.skip("whether the CustomNodeResources can be listed is the caller's question")
    allocatable, available = clusterresources.aggregate_katalyst(
        given["nodes"], given["pods"], given["customNodeResources"]
    )
    assert _numbers(allocatable) == _numbers(expected["allocatable"])
    assert _numbers(available) == _numbers(expected["available"])


def _resolve(given: dict[str, Any], expected: dict[str, Any]) -> None:
    if expected["error"]:
        with pytest.raises(ValueError):
            clusterresources.resolve_plugins(given["annotations"], given["knownPlugins"])
    else:
        found = clusterresources.resolve_plugins(given["annotations"], given["knownPlugins"])
        assert sorted(found) == sorted(expected["plugins"])


@each_case(load("cluster_resources"))
def test_cluster_resources(case: dict[str, Any]) -> None:
    given = filled(
        case["input"],
        annotations={},
        customNodeResources=[],
        knownPlugins=[],
        listerError=False,
        listerExists=False,
        nodeFilterSelectors=[],
        nodes=[],
        pods=[],
    )
    expected = {"allocatable": None, "available": None, **filled(case["expected"], error=False, plugins=[])}
    match given["op"]:
        case "aggregate":
            _aggregate(given, expected, slim=False)
            _aggregate(given, expected, slim=True)
        case "katalyst":
            _katalyst(given, expected)
        case "resolvePlugins":
            _resolve(given, expected)
        case other:
            pytest.fail(f"unknown operation {other}")
