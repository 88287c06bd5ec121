"""What a pod requests as a whole, beside its containers."""

from typing import Any

import pytest

from federation.apimachinery.quantity import parse
from federation.planning.clusters.clusterresources import whole_pod_requests


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ({"cpu": "1", "memory": "1Gi"}, {"cpu", "memory"}),
        ({"hugepages-2Mi": "4Mi", "nvidia.com/gpu": "1"}, {"hugepages-2Mi"}),
        ({"ephemeral-storage": "1Gi"}, set()),
        ({"cpu": "much"}, set()),
        (None, set()),
    ],
)
def test_cpu_memory_and_huge_pages_can_be_requested_for_the_whole_pod(
    requests: dict[str, str] | None, expected: set[str]
) -> None:
    found: dict[str, Any] = whole_pod_requests({"resources": {"requests": requests}})
    assert found == {name: parse((requests or {})[name]) for name in expected}
    assert whole_pod_requests({}) == {}
