"""What one cluster adds to the numbers of the fleet."""

from typing import Any

import pytest

from federation.planning.clusters.clustershare import NO_SHARE, ClusterShare, share_of


def a_cluster(labels: dict[str, str] | None = None, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "east", "labels": labels or {}}, "status": status}


def test_a_cluster_that_has_not_reported_adds_nothing() -> None:
    assert share_of({"metadata": {"name": "new"}}) == NO_SHARE
    assert share_of(a_cluster(resources={"available": {"cpu": "1"}})) == NO_SHARE


def test_requests_are_what_is_not_free_and_cost_by_the_rates_of_the_cluster() -> None:
    resources = {"allocatable": {"cpu": "4", "memory": "8Gi"}, "available": {"cpu": "1500m", "memory": "6Gi"}}
    ready = [{"type": "Ready", "status": "True"}]
    labels = {"price.federation.kubeadmiral.io/cpu": "2", "price.federation.kubeadmiral.io/memory": "0.5"}
    gibi = 2**30
    assert share_of(a_cluster(labels, resources=resources, conditions=ready)) == ClusterShare(
        True, 4000, 2500, 8 * gibi, 2 * gibi, 6 * 10**9, True
    )


@pytest.mark.parametrize(("free", "requested"), [("2", 0), ("-800", 1000)], ids=["more than all", "waiting pods"])
def test_requests_are_part_of_what_is_there(free: str, requested: int) -> None:
    resources = {"allocatable": {"cpu": "1"}, "available": {"cpu": free}}
    assert share_of(a_cluster(resources=resources)).cpu_requested == requested
