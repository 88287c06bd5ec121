"""What is written after a decision, and how a move reads."""

from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CONFIGMAPS
from federation.scheduling import persist
from federation.scheduling.policy import compile_policy

CONFIGMAP_TYPE = FederatedType("configmaps", CONFIGMAPS, ((names.GLOBAL_SCHEDULER,), ("later",)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1m", "1m0s"),
        ("90s", "1m30s"),
        ("45s", "45s"),
        ("1h", "1h0m0s"),
        ("1h1m1s", "1h1m1s"),
        ("soon", "soon"),
        ("5", "5"),
        ("²s", "²s"),
        ("", ""),
    ],
)
def test_durations_read_as_go_prints_them(text: str, expected: str) -> None:
    assert persist.to_go_duration(text) == expected


def test_a_move_names_what_comes_goes_and_changes() -> None:
    before = {"east": 2, "west": 1, "same": 1, "all": None}
    after = {"east": 5, "new": 3, "copy": None, "same": 1, "all": 4}
    assert persist.describe_move(before, after) == "all all → 4, +copy, east 2 → 5, +new 3, -west"
    assert persist.describe_move({"a": 1}, {"a": None}) == "a 1 → all"


def test_a_first_placement_is_told_whole_but_not_endlessly() -> None:
    assert persist.describe_move({}, {"west": 2, "east": 4}) == "east 4, west 2"
    assert persist.describe_move({}, {"west": None, "east": None}) == "east, west"
    many = persist.describe_move({}, {f"c{number:02}": 1 for number in range(22)})
    assert many.endswith("c19 1, and 2 more clusters")


def a_fed_object() -> dict[str, Any]:
    annotations = {names.PENDING_CONTROLLERS: f'[["{names.GLOBAL_SCHEDULER}"],["later"]]'}
    return {
        "metadata": {"name": "c", "resourceVersion": "5", "annotations": annotations},
        "spec": {"template": {"kind": "ConfigMap"}},
    }


def test_a_type_without_replicas_gets_no_overrides() -> None:
    policy = compile_policy({"spec": {"autoMigration": {"when": {"podUnschedulableFor": "2m"}}}})
    patch, is_moved = persist.place(a_fed_object(), CONFIGMAP_TYPE, policy, {"east": None}, {})
    assert is_moved
    assert patch is not None
    assert set(patch["spec"]) == {"placements"}
    annotations = patch["metadata"]["annotations"]
    assert annotations[names.POD_UNSCHEDULABLE_THRESHOLD] == "2m0s"
    assert annotations[names.SCHEDULING] == '{"placement":{"east":null}}'
    assert annotations[names.PENDING_CONTROLLERS] == '[["later"]]'
    assert patch["metadata"]["resourceVersion"] == "5"


def test_keeping_passes_the_turn_on_once() -> None:
    fed_object = a_fed_object()
    patch = persist.keep(fed_object, CONFIGMAP_TYPE, {})
    assert patch == {
        "metadata": {"annotations": {names.PENDING_CONTROLLERS: '[["later"]]'}, "resourceVersion": "5"},
    }
    fed_object["metadata"] = {"name": "c", "resourceVersion": "6", "annotations": {names.PENDING_CONTROLLERS: "[]"}}
    assert persist.keep(fed_object, CONFIGMAP_TYPE, {}) is None


def test_controllers_that_are_idle_for_the_object_get_no_turn() -> None:
    fed_object = a_fed_object()
    fed_object["metadata"]["annotations"] = {
        names.PENDING_CONTROLLERS: f'[["{names.GLOBAL_SCHEDULER}"]]',
        names.IDLE_CONTROLLERS: "later",
    }
    policy = compile_policy({"spec": {}})
    patch, _ = persist.place(fed_object, CONFIGMAP_TYPE, policy, {"east": None}, {})
    assert patch is not None
    assert patch["metadata"]["annotations"][names.PENDING_CONTROLLERS] == "[]"
