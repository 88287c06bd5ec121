"""When a placement that lacks clusters for reasons of health is completed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.planning.failover.completion import Completion, missing_clusters, plan_completion, to_annotation

NOW = datetime(2026, 1, 1, tzinfo=UTC)


KIND = ("example.com/v1", "Widget")


def a_cluster(
    ready_for_s: float, *, ready: str = "True", taint: str = "", served: tuple[str, ...] = ("v1",)
) -> dict[str, Any]:
    since = to_rfc3339(NOW - timedelta(seconds=ready_for_s))
    return {
        "metadata": {"name": "x"},
        "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}] if taint else []},
        "status": {
            "apiResourceTypes": [{"group": "example.com", "version": each, "kind": "Widget"} for each in served],
            "conditions": [
                {"type": "Joined", "status": "True"},
                {"type": "Ready", "status": ready, "lastTransitionTime": since},
            ],
        },
    }


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        ({}, Completion()),
        ({"a": a_cluster(300)}, Completion(is_due=True)),
        ({"a": a_cluster(299)}, Completion(wait_s=1)),
        ({"a": a_cluster(300), "b": a_cluster(100), "c": a_cluster(250)}, Completion(wait_s=200)),
        ({"a": a_cluster(300), "b": a_cluster(900, ready="Unknown")}, Completion(is_due=True)),
        ({"a": a_cluster(900, ready="Unknown")}, Completion()),
        ({"a": a_cluster(900, taint=names.TAINT_UNREACHABLE)}, Completion()),
        ({"a": a_cluster(900, taint=names.TAINT_DRAIN)}, Completion()),
        ({"a": a_cluster(900, served=())}, Completion()),
        ({"a": a_cluster(900, served=("v2",))}, Completion()),
        ({"a": a_cluster(300), "b": a_cluster(100, served=())}, Completion(is_due=True)),
        ({"a": None}, Completion(is_due=True)),
        ({"a": None, "b": a_cluster(100)}, Completion(wait_s=200)),
        ({"a": a_cluster(-31_536_000)}, Completion(wait_s=300)),
    ],
    ids=[
        "no marks",
        "stable",
        "not stable yet",
        "those that return together",
        "one stays away",
        "all stay away",
        "tainted",
        "drained",
        "does not serve the kind",
        "serves another version",
        "one does not serve the kind",
        "gone",
        "one is gone",
        "since a time of a clock that was ahead",
    ],
)
def test_completion(clusters: dict[str, Any], expected: Completion) -> None:
    assert plan_completion(clusters, clusters.get, KIND, NOW, stable_s=300) == expected


def test_marks_travel_in_an_annotation() -> None:
    text = to_annotation(frozenset({"b", "a"}))
    assert missing_clusters({"metadata": {"annotations": {names.PLACED_WITHOUT: text}}}) == {"a", "b"}
    assert to_annotation(()) is None
    assert missing_clusters({}) == frozenset()
