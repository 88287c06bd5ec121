"""Whether a merged status is worth a write now."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment

from federation.planning.status.completeness import (
    begins_rollout,
    is_complete,
    is_degraded,
    is_dispatched,
    is_in_progress,
    is_replacing_pods,
    is_rolling_out,
    is_worth_waiting,
    replaces_pods_by_itself,
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"readyReplicas": 3}, {"readyReplicas": 2}, True),
        ({"readyReplicas": 1}, {}, True),  # Kubernetes leaves out zeros
        ({"availableReplicas": 3, "readyReplicas": 3}, {"availableReplicas": 2, "readyReplicas": 3}, True),
        ({"numberReady": 2}, {"numberReady": 1}, True),
        ({"readyReplicas": 2}, {"readyReplicas": 3}, False),
        ({}, {"readyReplicas": 0}, False),
        ({"replicas": 3, "readyReplicas": 1}, {"replicas": 2, "readyReplicas": 1}, False),
    ],
)
def test_fewer_ready_or_available_replicas_are_a_degradation(
    old: dict[str, int], new: dict[str, int], expected: bool
) -> None:
    assert is_degraded(old, new) is expected


_DELIVERED = {
    "metadata": {"generation": 4},
    "status": {"syncedGeneration": 4, "conditions": [{"type": "Propagated", "status": "True"}]},
}


def test_a_rollout_without_all_replicas_is_in_progress() -> None:
    source = a_deployment("web", replicas=3)
    assert is_in_progress(source, {"readyReplicas": 2})
    assert not is_in_progress(source, {"readyReplicas": 3})


@pytest.mark.parametrize(
    ("present", "status", "expected"),
    [
        ({}, {"readyReplicas": 2}, True),
        ({"observedGeneration": 1, "readyReplicas": 2}, {"observedGeneration": 2}, True),
        ({"observedGeneration": 1, "readyReplicas": 3}, {"readyReplicas": 2}, False),
        ({"observedGeneration": 1, "readyReplicas": 3}, {"readyReplicas": None}, False),
        ({"observedGeneration": 2, "readyReplicas": 1}, {"readyReplicas": 2}, False),
        ({}, {"readyReplicas": 3}, False),
    ],
    ids=["first", "next rollout", "lost a replica", "lost all", "recovers", "complete"],
)
def test_only_the_first_status_of_a_rollout_may_wait(
    present: dict[str, int], status: dict[str, int | None], expected: bool
) -> None:
    source = a_deployment("web", replicas=3)
    source["metadata"]["generation"] = 2
    assert is_worth_waiting({**source, "status": present}, _DELIVERED, status) is expected


def test_a_complete_status_waits_until_sync_has_reported_the_delivery() -> None:
    source, undelivered = a_deployment("web", replicas=3), {**_DELIVERED, "status": {"syncedGeneration": 3}}
    source["metadata"]["generation"] = 2
    assert is_worth_waiting(source, undelivered, {"readyReplicas": 3})
    assert not is_worth_waiting({**source, "status": {"observedGeneration": 2}}, undelivered, {"readyReplicas": 3})


def test_an_object_that_no_policy_selects_says_so_at_once() -> None:
    source, undelivered = a_deployment("web", replicas=3), {**_DELIVERED, "status": {"syncedGeneration": 4}}
    status = {"conditions": [{"type": "Scheduled", "status": "False", "reason": "NoPolicy"}]}
    assert not is_worth_waiting(source, undelivered, status)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3}, True),
        ({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 1, "readyReplicas": 3}, True),
        ({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 1}, False),
        ({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3}, False),
        ({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2}, False),
        ({"observedGeneration": 2}, False),
    ],
    ids=["not observed", "old pods", "starting", "complete", "scaled up", "no pods"],
)
def test_a_member_replaces_pods_while_it_has_old_ones_or_has_not_seen_the_newest_generation(
    status: dict[str, int], expected: bool
) -> None:
    workload = {**a_deployment("web", replicas=3), "status": status}
    workload["metadata"]["generation"] = 2
    assert is_replacing_pods(workload) is expected
    assert is_complete(workload) is (not expected and status.get("readyReplicas") == 3)


def test_a_member_with_all_replicas_of_its_newest_generation_is_complete() -> None:
    def member(ready: int, observed: int) -> dict[str, Any]:
        status = {"readyReplicas": ready, "observedGeneration": observed}
        return {"metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": status}

    assert is_complete(member(3, 2))
    assert not is_complete(member(2, 2))
    assert not is_complete(member(3, 1))
    assert not is_complete({})


def _federated(generation: int, synced: int, *, replicas: int | None = 3, cluster: str = "OK") -> dict[str, Any]:
    condition = {"type": "Propagated", "status": "True" if cluster == "OK" else "False", "reason": "CheckClusters"}
    return {
        "metadata": {"generation": generation},
        "spec": {"template": {"spec": {} if replicas is None else {"replicas": replicas}}},
        "status": {
            "syncedGeneration": synced,
            "conditions": [condition],
            "clusters": [{"cluster": "east", "status": cluster}],
        },
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, _federated(1, 0), True),
        (None, _federated(1, 1), False),
        (_federated(1, 1), _federated(2, 1), True),
        (_federated(2, 1), _federated(2, 2), False),
        (_federated(1, 1, replicas=None), _federated(2, 1, replicas=None), False),
    ],
    ids=["created", "there at a start", "changed", "delivered", "without replicas"],
)
def test_a_rollout_begins_with_a_generation_that_clusters_do_not_have(
    old: dict[str, Any] | None, new: dict[str, Any], expected: bool
) -> None:
    assert begins_rollout(old, new) is expected


@pytest.mark.parametrize(
    ("federated", "expected"),
    [
        (_federated(2, 2), True),
        (_federated(2, 2, cluster="ClusterNotReady"), True),
        (_federated(2, 2, cluster="UpdateFailed"), True),
        (_federated(2, 2, cluster="WaitingForUpdate"), False),
        (_federated(2, 2, cluster="WaitingForReplicas"), False),
        (_federated(2, 1), False),
        (_federated(2, 1, cluster="ClusterNotReady"), False),
    ],
)
def test_a_rollout_ends_when_sync_has_nothing_left_to_do(federated: dict[str, Any], expected: bool) -> None:
    source = a_deployment("web", replicas=3)
    assert is_dispatched(federated) is expected
    assert is_rolling_out(source, federated, {"readyReplicas": 3}) is not expected
    assert is_rolling_out(source, federated, {})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"strategy": {"type": "RollingUpdate"}}, True),
        ({"strategy": {}, "paused": True}, False),
        ({"updateStrategy": {"type": "OnDelete"}}, False),
    ],
    ids=["Deployment", "paused", "pods are replaced when somebody deletes them"],
)
def test_only_a_deployment_that_is_not_paused_replaces_its_pods_by_itself(spec: dict[str, Any], expected: bool) -> None:
    assert replaces_pods_by_itself({"spec": spec}) is expected
