"""Pods without a subset are adopted by the best one for their node."""

from typing import Any

import pytest
from tests.support.spreads import a_pod, a_spread

from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.features.workloadspread.names import IGNORE_PATCH_EXISTING_PODS_METADATA, MATCHED_WORKLOAD_SPREAD
from federation.features.workloadspread.rules.adoption import NO_SUBSET, group_pods, match_score


def _in_zone(zone: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}


A_B = [{"name": "a", "maxReplicas": 1, "requiredNodeSelector": _in_zone("a")}, {"name": "b"}]
NODES = {
    "node-a": {"metadata": {"name": "node-a", "labels": {"zone": "a"}}},
    "node-b": {"metadata": {"name": "node-b", "labels": {"zone": "b"}}, "spec": {"taints": []}},
    "tainted": {"metadata": {"name": "tainted"}, "spec": {"taints": [{"key": "x", "effect": "PreferNoSchedule"}]}},
}


def _groups(*pods: dict[str, Any], subsets: Any = A_B) -> dict[str, list[str]]:
    grouping = group_pods(a_spread(subsets), pods, NODES, 9, patch_pod)
    (by_subset,) = grouping.groups.values()
    return {name: [pod["metadata"]["name"] for pod in found] for name, found in by_subset.items()}


def test_the_node_decides_and_room_breaks_ties() -> None:
    pods = [a_pod(f"pod-{number}", node=node) for number, node in enumerate(("node-a", "node-a", "node-b"))]
    assert _groups(*pods) == {"a": ["pod-0"], "b": ["pod-1", "pod-2"]}
    assert _groups(a_pod("full", "a"), pods[0]) == {"a": ["full"], "b": ["pod-0"]}


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("pod-0"),
        a_pod("pod-0", node="unknown"),
        a_pod("pod-0", node="tainted"),
        a_pod("pod-0", node="node-a", phase="Failed"),
        a_pod("pod-0", "removed", node="node-a"),
    ],
    ids=["no node", "unknown node", "taint", "ended", "removed subset"],
)
def test_other_pods_stay_outside(pod: dict[str, Any]) -> None:
    assert _groups(pod) == {NO_SUBSET: ["pod-0"]}


def test_tolerations_of_the_subset_count() -> None:
    tolerant = [{"name": "a", "tolerations": [{"key": "x", "operator": "Exists"}]}]
    assert _groups(a_pod("pod-0", node="tainted"), subsets=tolerant) == {"a": ["pod-0"]}


def test_a_pod_of_another_spread_is_adopted() -> None:
    pod = a_pod("pod-0", node="node-b")
    pod["metadata"]["annotations"] = {MATCHED_WORKLOAD_SPREAD: '{"name":"other","subset":"a"}'}
    assert _groups(pod) == {"b": ["pod-0"]}


def test_the_terms_of_the_pod_must_match_together_with_that_of_the_subset() -> None:
    pod = a_pod("pod-0", node="node-a")
    required = {"nodeSelectorTerms": [_in_zone("b")]}
    pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert _groups(pod) == {"b": ["pod-0"]}


@pytest.mark.parametrize("term", [{}, {"matchExpressions": [{"key": "zone", "operator": "Near"}]}])
def test_an_empty_or_malformed_term_matches_no_node(term: dict[str, Any]) -> None:
    assert _groups(a_pod("pod-0", node="node-a"), subsets=[{"name": "a", "requiredNodeSelector": term}]) == {
        NO_SUBSET: ["pod-0"]
    }


def test_a_pod_that_has_the_patch_already_is_preferred_and_a_malformed_patch_counts_as_absent() -> None:
    pod = a_pod("pod-0", node="node-b")
    pod["metadata"]["labels"] = {"tier": "b"}

    def score(patch: Any) -> int | None:
        return match_score({"name": "a", "patch": patch}, pod, NODES["node-b"], patch_pod, has_room=False)

    assert score({"metadata": {"labels": {"tier": "b"}, "annotations": {"x": "y"}}}) == 10
    assert score({"metadata": {"labels": {"tier": "a"}}}) == 0
    assert score({"$patch": "unknown"}) == 0
    assert score(None) == 10


@pytest.mark.parametrize(("ignores", "labels"), [(None, {"tier": "b"}), ("true", None), ("false", {"tier": "b"})])
def test_adoption_writes_metadata_only(ignores: str | None, labels: Any) -> None:
    patch = {"metadata": {"labels": {"tier": "b"}}, "spec": {"priorityClassName": "high"}}
    spread = a_spread([{"name": "b", "patch": patch}])
    if ignores is not None:
        spread["metadata"]["annotations"] = {IGNORE_PATCH_EXISTING_PODS_METADATA: ignores}
    (adoption,) = group_pods(spread, [a_pod("pod-0", node="node-b")], NODES, 9, patch_pod).adoptions
    assert adoption.subset == "b"
    metadata = adoption.patch.pop("metadata")
    assert adoption.patch == {}
    assert metadata.pop("annotations") == {MATCHED_WORKLOAD_SPREAD: '{"name":"ws","subset":"b"}'}
    assert metadata.get("labels") == labels


LIMITED = [{"name": "a", "maxReplicas": 1, "requiredNodeSelector": _in_zone("a")}]


def _created(pod: dict[str, Any], time: str) -> dict[str, Any]:
    pod["metadata"]["creationTimestamp"] = time
    return pod


def test_only_a_pod_that_is_older_than_the_spread_is_adopted_into_a_full_subset() -> None:
    spread = a_spread(LIMITED)
    spread["metadata"]["creationTimestamp"] = "2026-01-01T12:00:00Z"
    pods = [
        a_pod("full", "a", node="node-a"),
        _created(a_pod("older", node="node-a"), "2026-01-01T11:59:59Z"),
        _created(a_pod("later", node="node-a"), "2026-01-01T12:00:00Z"),
    ]
    (by_subset,) = group_pods(spread, pods, NODES, 9, patch_pod).groups.values()
    assert {name: [pod["metadata"]["name"] for pod in found] for name, found in by_subset.items()} == {
        "a": ["full", "older"],
        NO_SUBSET: ["later"],
    }


@pytest.mark.parametrize(
    ("node", "adopted", "released"),
    [
        ("node-a", ["pod-0"], set()),
        ("node-b", [], {"pod-0"}),
        ("unknown", [], set()),
        ("", [], {"pod-0"}),
    ],
    ids=["an adoption goes on", "on another node", "on a node that is not known yet", "without a node"],
)
def test_a_seen_pod_without_its_recorded_subset_ends_the_record(
    node: str, adopted: list[str], released: set[str]
) -> None:
    entry = [{"name": "a", "replicas": 0, "maxReplicas": 1, "creatingPods": {"pod-0": "2026-01-01T00:00:00Z"}}]
    spread = a_spread(LIMITED) | {"status": {"versionedSubsetStatuses": {"versionIgnored": entry}}}
    grouping = group_pods(spread, [a_pod("pod-0", node=node)], NODES, 9, patch_pod)
    assert [each.pod["metadata"]["name"] for each in grouping.adoptions] == adopted
    assert grouping.released == released


def test_a_place_that_is_recorded_for_another_pod_is_not_free_for_an_adoption() -> None:
    entry = [{"name": "a", "replicas": 0, "maxReplicas": 1, "creatingPods": {"coming": "2026-01-01T00:00:00Z"}}]
    spread = a_spread(LIMITED) | {"status": {"versionedSubsetStatuses": {"versionIgnored": entry}}}
    spread["metadata"]["creationTimestamp"] = "2026-01-01T12:00:00Z"
    later = _created(a_pod("later", node="node-a"), "2026-01-01T12:00:01Z")
    assert group_pods(spread, [later], NODES, 9, patch_pod).adoptions == ()


def test_a_pod_in_another_subset_than_its_record_ends_the_record() -> None:
    entry = [{"name": "a", "creatingPods": {"pod-0": "2026-01-01T00:00:00Z"}}, {"name": "b"}]
    spread = a_spread(A_B) | {"status": {"versionedSubsetStatuses": {"versionIgnored": entry}}}
    assert group_pods(spread, [a_pod("pod-0", "b")], NODES, 9, patch_pod).released == {"pod-0"}
