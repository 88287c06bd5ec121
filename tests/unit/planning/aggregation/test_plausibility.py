"""Which parts of a member's status count: one wrong value costs that value, not the status of all clusters."""

from typing import Any

import pytest

from federation.planning.aggregation.plausibility import plausible
from federation.planning.aggregation.refusal import without_refused

READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("status", "kept", "wrong"),
    [
        pytest.param({"replicas": 3, "readyReplicas": 2}, {"replicas": 3, "readyReplicas": 2}, (), id="nothing"),
        pytest.param({"replicas": 3, "readyReplicas": -1}, {"replicas": 3}, ("readyReplicas",), id="negative"),
        pytest.param({"replicas": 3, "readyReplicas": "2"}, {"replicas": 3}, ("readyReplicas",), id="text"),
        pytest.param({"replicas": 2**40}, {}, ("replicas",), id="too large for Kubernetes"),
        pytest.param(
            {"replicas": 3, "readyReplicas": 9, "availableReplicas": 8},
            {"replicas": 3, "readyReplicas": 3, "availableReplicas": 3},
            ("readyReplicas", "availableReplicas"),
            id="more ready than there are",
        ),
        pytest.param({"readyReplicas": 9}, {"readyReplicas": 9}, (), id="without a whole"),
        pytest.param(
            {"replicas": 1, "conditions": [READY, {"type": "Failed", "status": "Perhaps"}]},
            {"replicas": 1, "conditions": [READY]},
            ("conditions.status",),
            id="status of a condition",
        ),
        pytest.param(
            {"conditions": [{**READY, "lastTransitionTime": "yesterday"}, READY]},
            {"conditions": [READY]},
            ("conditions.lastTransitionTime",),
            id="time of a condition",
        ),
        pytest.param(
            {"conditions": ["x", {"type": 5}]}, {"conditions": []}, ("conditions.*", "conditions.type"), id="no"
        ),
        pytest.param({"conditions": "all well"}, {}, ("conditions",), id="conditions that are no list"),
        pytest.param({"startTime": "soon", "replicas": 1}, {"replicas": 1}, ("startTime",), id="time"),
        pytest.param("text", {}, ("status",), id="no status"),
        pytest.param({"note": "x" * 200_000}, {}, ("status",), id="a status that is too large"),
    ],
)
def test_what_cannot_be_is_left_out_and_named(status: Any, kept: Any, wrong: tuple[str, ...]) -> None:
    member, found = plausible({"status": status}, "apps", "Deployment")
    assert (member["status"], found) == (kept, wrong)


def test_a_plausible_status_is_not_copied() -> None:
    member = {"status": {"replicas": 3, "conditions": [READY]}}
    assert plausible(member, "apps", "Deployment")[0] is member


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (["status.replicas"], {"replicas": 1, "list": ["a", "b"], "deep": {"points": [1, 2, 3]}}),
        (["status.list[0]"], {"replicas": 5, "list": ["b"], "deep": {"points": [1, 2, 3]}}),
        (["status.list[7].name"], {"replicas": 5, "deep": {"points": [1, 2, 3]}}),
        (
            ["status.deep.points[1].ip", "status.deep.points[2]"],
            {"replicas": 5, "list": ["a", "b"], "deep": {"points": [1]}},
        ),
        (["status.deep.points[1]", "status.deep"], {"replicas": 5, "list": ["a", "b"]}),
        (["status.deep.other"], {"replicas": 5, "list": ["a", "b"]}),
        (["status.new"], None),
        (["spec.replicas", "status", ""], None),
        ([], None),
    ],
)
def test_only_what_the_host_refuses_keeps_its_present_value(fields: list[str], expected: Any) -> None:
    status = {"replicas": 5, "list": ["a", "b"], "deep": {"points": [1, 2, 3]}}
    assert without_refused(status, {"replicas": 1}, [{"field": field} for field in fields]) == expected
    assert status == {"replicas": 5, "list": ["a", "b"], "deep": {"points": [1, 2, 3]}}
