"""Warnings of lists that lack objects of some clusters."""

from federation.apimachinery.errors import ClusterUnreachable, Forbidden
from federation.memberproxy.readproblems import to_warnings


def test_clusters_with_the_same_problem_share_a_warning() -> None:
    problems = {
        "west": TimeoutError(),
        "east": TimeoutError(),
        "north": ClusterUnreachable("cluster north does not answer; it is left alone for a while"),
        "south": Forbidden('pods is forbidden: User "alice" cannot list resource "pods"'),
    }
    assert to_warnings("pods", problems, 2.0) == [
        "pods of clusters east, west are missing: no answer in 2 s",
        "pods of cluster north are missing: it does not answer; it is left alone for a while",
        'pods of cluster south are missing: pods is forbidden: User "alice" cannot list resource "pods"',
    ]


def test_a_lost_region_is_one_line() -> None:
    [text] = to_warnings("pods", {f"c{number:02}": TimeoutError() for number in range(40)}, 2.0)
    assert text.startswith("pods of clusters c00, c01, c02,")
    assert text.endswith("c09 and 30 more are missing: no answer in 2 s")
