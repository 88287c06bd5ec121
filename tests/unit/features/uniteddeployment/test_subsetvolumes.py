"""Which replicas of a StatefulSet's subset have data."""

from federation.apimachinery.resources import Object
from federation.features.uniteddeployment.rules.subsetvolumes import find_data, replicas_kept, without_data

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def a_claim(ordinal: int, created: str = OLD, volume: str = "pv") -> Object:
    return {"metadata": {"name": f"data-db-{ordinal}", "creationTimestamp": created}, "spec": {"volumeName": volume}}


def a_pod(ordinal: int, created: str, *, waits: bool = True) -> Object:
    condition = {"type": "PodScheduled", "status": "False" if waits else "True", "reason": "Unschedulable"}
    status = {"phase": "Pending" if waits else "Running", "conditions": [condition]}
    return {"metadata": {"name": f"db-{ordinal}", "creationTimestamp": created}, "spec": {}, "status": status}


def test_a_claim_that_is_older_than_its_waiting_pod_has_data() -> None:
    assert find_data([a_claim(0)], [a_pod(0, NEW)]) == {0}


def test_the_first_pod_of_a_claim_has_no_data_while_it_waits_for_a_node() -> None:
    claims = [a_claim(0), a_claim(1)]
    assert find_data(claims, [a_pod(0, OLD, waits=False), a_pod(1, "2026-01-01T00:00:02Z")]) == {0}


def test_a_claim_without_a_volume_has_no_data_and_one_without_a_pod_has() -> None:
    assert find_data([a_claim(0, volume=""), a_claim(7)], []) == {7}


def test_pods_with_data_are_not_counted_as_waiting() -> None:
    pods = [a_pod(0, NEW), a_pod(1, NEW)]
    assert without_data(pods, {0}) == pods[1:]
    assert without_data(pods, None) == [], "any of them may have data"


def test_replicas_with_data_stay_also_those_that_are_not_ready() -> None:
    assert replicas_kept(4, 1, frozenset()) == 1
    assert replicas_kept(4, 1, {0, 1, 2}) == 3
    assert replicas_kept(2, 0, {0, 1, 2}) == 2, "volumes of earlier replicas do not count"
    assert replicas_kept(4, 5, {0}) == 5
    assert replicas_kept(4, 1, None) == 4
