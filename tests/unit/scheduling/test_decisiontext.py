"""The division of replicas in words: what it started from, and the steps that placed replicas."""

from typing import Any

import pytest

from federation.scheduling.decisiontext import amounts_text, division_facts, division_steps, input_facts


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


def test_steps_without_replicas_and_repeated_quotas_are_no_steps() -> None:
    steps = [
        {"step": "subsets", "quotas": {"a": {"east": 1}}, "replicas": {"east": 1}},
        {"step": "minimums", "total": 3, "replicas": {}, "remaining": 3},
        {"step": "minimums", "total": 3, "replicas": {"east": 1}, "remaining": 2},
    ]
    assert [label for label, _ in division_steps({"steps": steps})] == ["minimums"]
    assert list(division_steps({})) == []


def test_the_amounts_after_the_fiftieth_are_counted() -> None:
    amounts = {f"c{number}": number for number in range(52)}
    assert amounts_text(amounts).endswith("c49 49, and 2 more")
    assert amounts_text(dict(list(amounts.items())[:50])).endswith(", c49 49")
    assert amounts_text({}) == "none"


def test_the_pods_of_an_object_are_told_by_component() -> None:
    pods = [{"name": "head", "count": 1, "request": {"cpu": 4000}}, {"name": "workers", "count": 10, "request": {}}]
    assert input_facts({"pods": pods}) == [("pods", "head 1, workers 10")]
    together = "head 1, workers 10; they start together in one cluster or not at all"
    assert input_facts({"pods": pods, "isGang": True}) == [("pods", together)]
