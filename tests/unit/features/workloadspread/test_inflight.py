"""Pods that have a subset and no node."""

from tests.support.spreads import a_pod, a_spread, seconds_ago

from federation.features.workloadspread.rules.inflight import count_waiting


def test_records_and_unassigned_pods_of_the_subset_count_once() -> None:
    records = {"pod-0": seconds_ago(1), "id-1": seconds_ago(1), "unseen": seconds_ago(1)}
    entries = {
        "v1": [{"name": "a", "creatingPods": records}, {"name": "b", "creatingPods": {"other": seconds_ago(1)}}],
        "v2": [{"name": "a", "creatingPods": {"unseen-2": seconds_ago(1)}}],
        "v3": None,
    }
    spread = a_spread([{"name": "a"}, {"name": "b"}]) | {"status": {"versionedSubsetStatuses": entries}}
    pods = [
        a_pod("pod-0", "a"),
        a_pod("web-x", "a", uid="id-1", node="node-1"),
        a_pod("pod-2", "a", phase="Failed"),
        a_pod("pod-3", "b"),
        a_pod("pod-4"),
    ]
    assert count_waiting(spread, "a", pods) == 3
    assert count_waiting(a_spread([]), "a", []) == 0
