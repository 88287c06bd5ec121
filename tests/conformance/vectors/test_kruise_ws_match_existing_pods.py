"""Pods that exist already are adopted by the subsets of the vectors."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.spreads import a_spread, vector_pod
from tests.support.vectors import each_case, facts, filled, load

from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.features.workloadspread.rules.adoption import group_pods, match_score
from federation.features.workloadspread.rules.deletioncosts import changed_costs
from federation.features.workloadspread.rules.hub import subset_to_hub


@each_case(load("kruise-ws-match-existing-pods"))
def test_pods_are_matched_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = facts(
        case["input"],
        function="",
        subset={},
        node={},
        pod={},
        missingReplicas=0,
        subsets=[],
        nodes=[],
        pods=[],
        workload={},
        annotations={},
        latestVersion="versionIgnored",
    )
    match given["function"]:
        case "matchSubset":
            _check_score(given, filled(case["expected"], match=False))
        case "adopt":
            _check_adoption(given, filled(case["expected"]))
        case other:
            pytest.fail(f"the format has a function without an adapter: {other}")


def _check_score(given: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    has_room = given["missingReplicas"] != 0
    score = match_score(subset_to_hub(given["subset"]), given["pod"], given["node"], patch_pod, has_room=has_room)
    assert (score is not None) == expected["match"]
    assert (-1 if score is None else score) == expected.get("score", score)


def _check_adoption(given: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    workload = facts(given["workload"], kind="CloneSet", replicas=0, name="", apiVersion="")
    spread = a_spread(given["subsets"], workload["kind"])
    spread["metadata"]["annotations"] = given["annotations"]
    nodes = {node["name"]: _node(node) for node in given["nodes"] if node.get("name")}
    pods = [vector_pod({"phase": "Running", **pod}, f"pod-{number}") for number, pod in enumerate(given["pods"])]
    grouping = group_pods(spread, pods, nodes, workload["replicas"], patch_pod)
    found: Counter[str] = Counter()
    for by_subset in grouping.groups.values():
        found.update({name: len(grouped) for name, grouped in by_subset.items()})
    for name, count in (expected.get("subsetReplicas") or {}).items():
        assert found[name] == count
    subset_of = {
        pod["metadata"]["name"]: name
        for group in grouping.groups.values()
        for name, each in group.items()
        for pod in each
    }
    if (wanted := expected.get("podSubsets")) is not None:
        by_pod = (
            wanted if isinstance(wanted, Mapping) else {f"pod-{number}": name for number, name in enumerate(wanted)}
        )
        assert subset_of == {pod: name or "" for pod, name in by_pod.items()}
    costs = list(
        map(int, changed_costs(spread, grouping.groups, given["latestVersion"], workload["replicas"]).values())
    )
    lowest = -100 * (len(given["subsets"]) + 1)
    counts = {
        "podsWithMinimumCost": costs.count(lowest),
        "positiveCost": sum(cost > 0 for cost in costs),
        "negativeCostWithinSubsets": sum(lowest < cost < 0 for cost in costs),
    }
    for key, count in counts.items():
        assert expected.get(key) in (None, count), f"{key}: {count}"


def _node(given: Mapping[str, Any]) -> dict[str, Any]:
    given = facts(given, name="", labels={}, taints=[])
    taints = []
    for taint in given["taints"]:
        if isinstance(taint, Mapping):
            taints.append(dict(taint))
            continue
        pair, _, effect = taint.rpartition(":")
        key, _, value = pair.partition("=")
        taints.append({"key": key, "value": value, "effect": effect})
    return {"metadata": {"name": given["name"], "labels": given["labels"]}, "spec": {"taints": taints}}
