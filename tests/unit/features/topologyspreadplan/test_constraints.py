"""The zones that a pod template is pinned to."""

from typing import Any

import pytest

from federation.features.topologyspreadplan.rules.constraints import pinned_zones

ZONE = "topology.kubernetes.io/zone"


def a_pod(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def is_in(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({}, ()),
        (a_pod(), ()),
        (a_pod([]), ()),
        (a_pod([is_in(ZONE, "a", "b")]), ("a", "b")),
        (a_pod([is_in("other", "x"), is_in(ZONE, "a")]), ("a",)),
        (a_pod([is_in(ZONE, "a", operator="NotIn")]), ()),
        (a_pod([is_in("other", "x")], [is_in(ZONE, "a")]), ("a",)),
    ],
)
def test_a_required_affinity_names_the_zones(pod: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert pinned_zones(pod, ZONE) == expected
