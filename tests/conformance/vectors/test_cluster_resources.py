"""Behaviour vectors: sums over a member's nodes and pods."""

from typing import Any

import pytest
from tests.support.clustersums import aggregate
from tests.support.vectors import each_case, filled, load

from federation.apimachinery.quantity import parse
from federation.apimachinery.selectors import parse_label_selector
from federation.runtime.transforms import slim_node, slim_pod


def _numbers(amounts: Any) -> Any:
    return None if amounts is None else {name: parse(amount).nanos for name, amount in amounts.items()}


def _aggregate(given: dict[str, Any], expected: dict[str, Any], *, slim: bool) -> None:
    selectors = [parse_label_selector(text) for text in given["nodeFilterSelectors"]]
    nodes = [{"metadata": {}, **node} for node in given["nodes"]]
    pods = [{"metadata": {}, **pod} for pod in given["pods"]]
    if slim:
        nodes, pods = list(map(slim_node, nodes)), list(map(slim_pod, pods))
    sums = aggregate(nodes, pods, is_left_out=lambda labels: any(selector.matches(labels) for selector in selectors))
    status = sums.to_status()
    assert _numbers(status["allocatable"]) == _numbers(expected["allocatable"])
    assert _numbers(status["available"]) == _numbers(expected["available"])


@each_case(load("cluster_resources"))
def test_cluster_resources(case: dict[str, Any]) -> None:
    given = filled(case["input"], nodeFilterSelectors=[], nodes=[], pods=[])
    expected = {"allocatable": None, "available": None, **filled(case["expected"])}
    match given["op"]:
        case "aggregate":
            _aggregate(given, expected, slim=False)
            _aggregate(given, expected, slim=True)
        case "katalyst" | "resolvePlugins":
            pytest.skip("there are no collectors of other resources (docs/migration-kubeadmiral.md)")
        case other:
            pytest.fail(f"unknown operation {other}")
