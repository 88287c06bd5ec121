"""What the division of replicas started from, in words: only what the explanation has."""

from typing import Any

import pytest

from federation.scheduling.decisiontext import division_facts


@pytest.mark.parametrize(
    ("division", "facts"),
    [
        ({}, []),
        ({"weights": {"values": {"east": 2, "west": 1}, "by": "policy"}}, [("weights", "east 2, west 1  (policy)")]),
        (
            {"room": {"replicas": {"east": 3}}},
            [("room", "east 3  (additional replicas that fit on the clusters' nodes)")],
        ),
        (
            {"room": {"replicas": {"east": 3}, "promised": {"east": 1}}},
            [
                ("room", "east 3  (additional replicas that fit on the clusters' nodes)"),
                ("assumed", "east 1  (of it used by decisions of the last seconds)"),
            ],
        ),
        ({"floor": {"onDemand": 2, "wanted": 3}}, [("on demand", "2 of at least 3 wanted")]),
        (
            {"estimated": {"east": 4}},
            [("can run", "east 4  (scheduled by the member, or fitting on its nodes)")],
        ),
        ({"waiting": {"west": 1}}, [("waiting", "west 1  (fit on no node now)")]),
    ],
)
def test_a_division_says_what_it_started_from(division: dict[str, Any], facts: list[tuple[str, str]]) -> None:
    assert list(division_facts(division)) == facts
