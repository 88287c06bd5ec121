"""Differences of two explanations: each is reported once."""

from typing import Any

from federation.scheduling.decisiondiff import ClusterDifference, FieldDifference, compare


def an_explanation(**more: Any) -> dict[str, Any]:
    scores = {
        "clusters": ["east", "north"],
        "plugins": [{"plugin": "Affinity", "weight": 1, "raw": [10, 5], "normalised": [100, 50]}],
        "totals": [100, 50],
    }
    return {
        "outcome": "Scheduled",
        "reason": "2/3 clusters are available",
        "policy": {"namespace": "default", "name": "p"},
        "unit": {"mode": "Divide", "desiredReplicas": 4, "request": {"cpu": 100}},
        "clusters": ["east", "north", "west"],
        "previous": {},
        "placements": {"east": 3, "north": 1},
        "rejected": {"west": {"plugin": "TaintToleration", "reasons": ["tainted"]}},
        "scores": scores,
        "division": {"weights": {"by": "policy", "values": {"east": 3, "north": 1}}},
        "inputs": {"object": "1", "policy": "1", "clusters": "1"},
        **more,
    }


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {change.name: change.changes for change in compare(before, after).clusters}


def test_the_same_decision_differs_in_nothing() -> None:
    difference = compare(an_explanation(), an_explanation())
    assert (difference.facts, difference.clusters, difference.changed_inputs) == ((), (), ())
    assert difference.same_inputs == ("clusters", "object", "policy")
    assert difference.unchanged == 3


def test_changed_fields_and_inputs_are_named() -> None:
    unit = {"mode": "Divide", "desiredReplicas": 5, "request": {"cpu": 100}}
    difference = compare(an_explanation(), an_explanation(unit=unit, inputs={"object": "2", "policy": "1"}))
    assert difference.facts == (FieldDifference("replicas", "4", "5"),)
    assert difference.changed_inputs == ("clusters", "object")
    assert difference.same_inputs == ("policy",)


def test_inputs_are_not_compared_with_a_record_that_has_none() -> None:
    older = an_explanation()
    del older["inputs"]
    assert compare(older, an_explanation()).changed_inputs == ()


def test_the_difference_of_a_cluster_is_described() -> None:
    scores = {**an_explanation()["scores"], "plugins": [{"plugin": "Affinity", "raw": [1, 5], "normalised": [20, 50]}]}
    after = an_explanation(
        clusters=["east", "north", "south", "west"],
        placements={"east": 1, "south": 2},
        rejected={"north": {"plugin": "Ready", "reasons": ["unready"]}},
        scores=scores,
        division={"weights": {"by": "policy", "values": {"east": 1, "north": 1}}},
    )
    assert changes(an_explanation(), after) == {
        "east": ("fewer replicas", "Affinity 100 → 20", "weight 3 → 1"),
        "north": ("rejected by Ready: unready", "not selected any more"),
        "south": ("joined", "selected"),
        "west": ("not rejected (was by TaintToleration: tainted)",),
    }
    assert changes(after, an_explanation())["south"] == ("left", "not selected any more")


def test_an_unsuccessful_decision_is_compared_by_its_fields() -> None:
    stuck = {"outcome": "PolicyNotFound", "reason": "p does not exist", "placements": {"east": 3}}
    difference = compare(stuck, an_explanation())
    assert FieldDifference("outcome", "PolicyNotFound", "Scheduled") in difference.facts
    assert (difference.clusters, difference.unchanged) == ((), 0)


def test_a_decision_without_a_cluster_keeps_the_placement() -> None:
    rejected = {name: {"plugin": "Ready", "reasons": ["unready"]} for name in ("east", "north", "west")}
    failed = an_explanation(
        placements={}, previous={"east": 3, "north": 1}, rejected=rejected, outcome="None", scores={}
    )
    assert changes(an_explanation(), failed)["east"] == ("rejected by Ready: unready",)
    (east, *_) = (change for change in compare(an_explanation(), failed).clusters if change.name == "east")
    assert east.after is not None
    assert (east.after.is_selected, east.after.replicas) == (True, 3)


def test_a_comparison_is_json() -> None:
    after = an_explanation(placements={"east": 4})
    value = compare(an_explanation(), after).to_json()
    assert [change["name"] for change in value["clusters"]] == ["east", "north"]
    assert ClusterDifference(**value["clusters"][0]).changes == ("more replicas",)
