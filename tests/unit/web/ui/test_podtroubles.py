"""What keeps pods from running."""

from typing import Any

import pytest

from federation.web.ui.podtroubles import Trouble, tone_of, troubles_in, words_of


def a_pod(status: str, message: str = "", ready: int = 0) -> dict[str, Any]:
    return {"status": status, "message": message, "ready": ready, "containers": 1}


FULL = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No victims found."


@pytest.mark.parametrize(
    ("pod", "words", "tone"),
    [
        (a_pod("Running", ready=1), "", "good"),
        (a_pod("Running"), "", "busy"),
        (a_pod("Succeeded"), "", "good"),
        (a_pod("Pending"), "", "busy"),
        (a_pod("Unschedulable", FULL), "Insufficient cpu", "bad"),
        (
            a_pod("Unschedulable", "0/5 nodes are available: 2 Insufficient memory, 3 node(s) had taints."),
            "Insufficient memory, node(s) had taints",
            "bad",
        ),
        (a_pod("ImagePullBackOff"), "ImagePullBackOff", "bad"),
        (a_pod("Evicted", "the node was low on memory"), "Evicted: the node was low on memory", "bad"),
    ],
)
def test_a_pod_tells_its_trouble(pod: dict[str, Any], words: str, tone: str) -> None:
    assert (words_of(pod), tone_of(pod)) == (words, tone)


def test_troubles_are_counted_over_clusters_the_most_frequent_first() -> None:
    full, broken = a_pod("Unschedulable", FULL), a_pod("ImagePullBackOff")
    assert troubles_in({"a": [full, broken], "b": [full, a_pod("Running", ready=1)]}) == [
        Trouble("Insufficient cpu", 2, ("a", "b")),
        Trouble("ImagePullBackOff", 1, ("a",)),
    ]
