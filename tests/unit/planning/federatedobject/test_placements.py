"""Placements, overrides and departed clusters as merge patches."""

import json
from typing import Any

import pytest

from federation.api import names
from federation.planning.federatedobject import placements

ME, OTHER = "me", "other"


def a_fed_object(departed: Any = None, **mine: list[str]) -> dict[str, Any]:
    annotations = {} if departed is None else {names.DEPARTED_CLUSTERS: departed}
    entries = [{"controller": c, "placement": [{"cluster": n} for n in clusters]} for c, clusters in mine.items()]
    return {"metadata": {"resourceVersion": "7", "annotations": annotations}, "spec": {"placements": entries}}


def test_a_first_placement_is_sorted_and_leaves_others_alone() -> None:
    part = placements.with_placement(a_fed_object(other=["x"]), ME, ["b", "a"])
    assert part == {
        "spec": {
            "placements": [
                {"controller": OTHER, "placement": [{"cluster": "x"}]},
                {"controller": ME, "placement": [{"cluster": "a"}, {"cluster": "b"}]},
            ]
        }
    }


def test_an_unchanged_placement_is_not_written() -> None:
    assert placements.with_placement(a_fed_object(me=["a", "b"]), ME, ["b", "a", "b"]) == {}
    assert placements.with_placement({"spec": {}}, ME, []) == {}


def test_departed_clusters_are_recorded_until_they_return() -> None:
    part = placements.with_placement(a_fed_object('["old"]', me=["a", "b"], other=["b"]), ME, ["c"])
    assert json.loads(part["metadata"]["annotations"][names.DEPARTED_CLUSTERS]) == ["a", "old"]
    back = placements.with_placement(a_fed_object('["a"]', me=["c"]), ME, ["a", "c"])
    assert back["metadata"]["annotations"] == {names.DEPARTED_CLUSTERS: None}


def test_an_empty_placement_removes_the_entry() -> None:
    part = placements.with_placement(a_fed_object(me=["a"], other=["b"]), ME, [])
    assert part["spec"]["placements"] == [{"controller": OTHER, "placement": [{"cluster": "b"}]}]


def test_the_effective_placement_is_the_union() -> None:
    assert placements.effective_placement(a_fed_object(me=["a"], other=["b", "a"])) == {"a", "b"}
    assert placements.effective_placement({}) == frozenset()


def test_a_malformed_record_counts_as_empty() -> None:
    for text in ("{nonsense", '{"a": 1}', "[1]"):
        assert placements.departed_clusters(a_fed_object(text)) == frozenset()


def test_overrides_replace_the_own_entry_in_place() -> None:
    patch = {"op": "replace", "path": "/spec/replicas", "value": 1}
    fed_object: dict[str, Any] = {
        "spec": {
            "overrides": [
                {"controller": ME, "clusters": [{"cluster": "a", "patches": [patch]}]},
                {"controller": OTHER, "clusters": []},
            ]
        }
    }
    assert placements.overrides_of(fed_object, ME) == {"a": [patch]}
    assert placements.overrides_of({}, ME) == {}
    assert placements.with_overrides(fed_object, ME, {"a": [patch], "b": []}) == {}
    changed = placements.with_overrides(fed_object, ME, {"b": [patch]})
    assert [entry["controller"] for entry in changed["spec"]["overrides"]] == [ME, OTHER]
    assert changed["spec"]["overrides"][0]["clusters"] == [{"cluster": "b", "patches": [patch]}]
    assert placements.with_overrides(fed_object, ME, {}) == {
        "spec": {"overrides": [{"controller": OTHER, "clusters": []}]}
    }


def test_unchanged_annotations_are_not_written() -> None:
    fed_object = {"metadata": {"annotations": {"a": "1", "b": "2"}}}
    assert placements.with_annotations(fed_object, {"a": "1", "missing": None}) == {}
    assert placements.with_annotations(fed_object, {"a": "2", "b": None}) == {
        "metadata": {"annotations": {"a": "2", "b": None}}
    }


def test_parts_become_one_patch_of_one_version() -> None:
    fed_object = a_fed_object(me=["a"])
    part = placements.with_placement(fed_object, ME, [])
    patch = placements.to_merge_patch(fed_object, part, {"metadata": {"annotations": {"x": "y"}}}, {})
    assert patch is not None
    assert patch["metadata"]["resourceVersion"] == "7"
    assert set(patch["metadata"]["annotations"]) == {names.DEPARTED_CLUSTERS, "x"}
    assert patch["spec"] == {"placements": []}
    assert placements.to_merge_patch(fed_object, {}, {}) is None


@pytest.mark.parametrize(
    ("before", "departed", "known", "after", "expected"),
    [
        pytest.param([], None, None, ["a"], set(), id="first"),
        pytest.param(["a"], None, None, ["a", "b"], set(), id="grows"),
        pytest.param(["a", "b"], None, None, ["a"], set(), id="shrinks"),
        pytest.param(["a"], None, None, ["b"], {"b"}, id="moves"),
        pytest.param(["b"], '["a"]', '["b"]', ["c"], {"c"}, id="moves on"),
        pytest.param(["b"], '["a"]', '["b"]', ["a"], {"a"}, id="is taken back"),
        pytest.param(["b"], '["a"]', '["b"]', ["b", "c"], {"b", "c"}, id="grows meanwhile"),
        pytest.param(["b"], '["a"]', '["b"]', ["b"], {"b"}, id="stays meanwhile"),
        pytest.param(["b"], None, '["b"]', ["b"], set(), id="has moved"),
        pytest.param(["b"], '["a"]', '["b"]', [], set(), id="leaves all"),
    ],
)
def test_clusters_that_come_when_others_leave_are_arriving(
    before: list[str], departed: str | None, known: str | None, after: list[str], expected: set[str]
) -> None:
    obj = a_fed_object(departed)
    obj["spec"] = {
        "placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": name} for name in before]}]
    }
    if known is not None:
        obj["metadata"].setdefault("annotations", {})[names.ARRIVING_CLUSTERS] = known
    assert placements.arriving_after(obj, after) == expected
