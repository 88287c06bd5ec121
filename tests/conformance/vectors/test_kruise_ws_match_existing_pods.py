"""Pods that exist already are adopted by the subsets of the vectors."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.support.spreads import a_pod, a_spread
from tests.support.vectors import each_case, filled, load

from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.planning.workloadspread.adoption import group_pods, match_score
from federation.planning.workloadspread.deletioncosts import changed_costs
from federation.planning.workloadspread.hub import subset_to_hub


@each_case(load("kruise-ws-match-existing-pods"))
def test_pods_are_matched_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = filled(
        case["input"], subset={}, node={}, pod={}, missingReplicas=0, subsets=[], nodes=[], pods=[], workload={}
    )
    expected = filled(case["expected"])
    if given["function"] == "matchSubset":
        has_room = given["missingReplicas"] != 0
        score = match_score(subset_to_hub(given["subset"]), given["pod"], given["node"], patch_pod, has_room=has_room)
        assert (score is not None) == expected.get("match", False)
        assert (-1 if score is None else score) == expected.get("score", score)
    else:
        _check_adoption(given, expected)


def _check_adoption(given: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    spread = a_spread(given["subsets"], given["workload"].get("kind") or "CloneSet")
    nodes = {node["name"]: _node(node) for node in given["nodes"] if node.get("name")}
    pods = [
        a_pod(f"pod-{number}", _annotated(pod.get("annotation")), node=pod.get("node") or "", phase="Running")
        for number, pod in enumerate(given["pods"])
    ]
    total = given["workload"].get("replicas") or 0
    groups = group_pods(spread, pods, nodes, total, patch_pod).groups
    found = Counter({name: len(pods) for by_subset in groups.values() for name, pods in by_subset.items()})
    for name, count in (expected.get("subsetReplicas") or {}).items():
        assert found[name] == count
    costs = list(map(int, changed_costs(spread, groups, "versionIgnored", total).values()))
    lowest = -100 * (len(given["subsets"]) + 1)
    assert costs.count(lowest) == expected.get("podsWithMinimumCost", costs.count(lowest))
    positive = sum(cost > 0 for cost in costs)
    assert positive == expected.get("positiveCost", positive)
    negative = sum(lowest < cost < 0 for cost in costs)
    assert negative == expected.get("negativeCostWithinSubsets", negative)


def _annotated(annotation: Any) -> str | None:
    """Return the subset in an annotation, which is an object or the name of the subset."""
    return annotation.get("subset") if isinstance(annotation, Mapping) else annotation or None


def _node(given: Mapping[str, Any]) -> dict[str, Any]:
    taints = []
    for text in given.get("taints") or ():
        pair, _, effect = text.rpartition(":")
        key, _, value = pair.partition("=")
        taints.append({"key": key, "value": value, "effect": effect})
    return {"metadata": {"name": given["name"], "labels": given.get("labels") or {}}, "spec": {"taints": taints}}
