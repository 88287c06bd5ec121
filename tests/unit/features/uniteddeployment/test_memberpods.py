"""Which changes of a cluster concern the pods of subsets."""

from typing import Any

import pytest

from federation.features.uniteddeployment.memberpods import _facts


def a_cluster(ready: str | None = "True", **metadata: Any) -> dict[str, Any]:
    status = {} if ready is None else {"status": {"conditions": [{"type": "Ready", "status": ready}]}}
    return {"metadata": {"name": "m1", "labels": {"region": "eu"}, **metadata}, **status}


@pytest.mark.parametrize(
    ("old", "new", "concerns"),
    [
        (None, a_cluster(None), True),
        (a_cluster(), None, True),
        (a_cluster(None), a_cluster("False"), False),
        (a_cluster("False"), a_cluster(), True),
        (a_cluster(), a_cluster("Unknown"), True),
        (a_cluster(), a_cluster(labels={"region": "us"}), True),
        (a_cluster(), a_cluster(resourceVersion="2", annotations={"a": "b"}), False),
    ],
)
def test_readiness_and_labels_of_a_cluster_count(old: Any, new: Any, concerns: bool) -> None:
    assert (_facts(old) != _facts(new)) is concerns
