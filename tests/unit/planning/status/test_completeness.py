"""Whether a merged status is worth a write now."""

import pytest
from tests.support.manifests import a_deployment

from federation.planning.status.completeness import is_degraded, is_first_of_rollout, is_in_progress


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
    assert is_first_of_rollout({**source, "status": present}, status) is expected
