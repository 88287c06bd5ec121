"""Properties of the comparison that decides whether a member is written at all."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.planning.rendering.drift import is_subset

_KEYS = st.sampled_from(["spec", "labels", "replicas", "containers", "env", "image", "ports", "x"])
_SCALARS = st.one_of(st.integers(-3, 3), st.booleans(), st.sampled_from(["", "a", "b"]), st.none())
_NAMED = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc"), "image": st.sampled_from("xy")}),
    max_size=3,
    unique_by=lambda item: item["name"],
)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(_SCALARS, _NAMED),
    lambda inner: st.one_of(st.dictionaries(_KEYS, inner, max_size=4), st.lists(inner, max_size=3)),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(_KEYS, _VALUES, max_size=4)


@given(_OBJECTS)
def test_every_object_is_a_subset_of_itself(obj: dict[str, Any]) -> None:
    assert is_subset(obj, copy.deepcopy(obj))


@given(_OBJECTS, st.sampled_from(["p", "q"]), _SCALARS)
def test_foreign_keys_in_maps_are_ignored(obj: dict[str, Any], key: str, value: Any) -> None:
    def grown(part: Any) -> Any:
        if isinstance(part, dict):
            return {**{k: grown(v) for k, v in part.items()}, key: value}
        return [grown(item) for item in part] if isinstance(part, list) else part

    assert is_subset(obj, grown(obj))


@given(_OBJECTS, _KEYS, st.integers(1, 5))
def test_a_changed_value_is_noticed(obj: dict[str, Any], key: str, value: int) -> None:
    assert not is_subset({**obj, key: value}, {**obj, key: value + 1})


@given(_OBJECTS, _KEYS, st.integers(1, 5))
def test_a_missing_value_is_noticed_unless_it_is_empty(obj: dict[str, Any], key: str, value: int) -> None:
    without = {k: v for k, v in obj.items() if k != key}
    assert not is_subset({**without, key: value}, without)
    for empty in (None, "", 0, False, {}, []):
        assert is_subset({**without, key: empty}, without)


@given(_NAMED, st.permutations(["a", "b", "c"]))
def test_lists_that_are_maps_may_be_ordered_and_extended(items: list[dict[str, str]], order: list[str]) -> None:
    live = [*sorted(items, key=lambda item: order.index(item["name"])), {"name": "sidecar", "image": "z"}]
    assert is_subset({"containers": items}, {"containers": live})
    assert not is_subset({"other": items}, {"other": live}), "other lists belong to one owner as a whole"


def test_quantities_are_compared_as_amounts_only_where_they_are_quantities() -> None:
    desired = {"resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}}
    assert is_subset(desired, {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}})
    assert not is_subset(desired, {"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}})
    assert not is_subset({"annotations": {"cpu": "1000m"}}, {"annotations": {"cpu": "1"}})


def test_strings_in_labels_and_data_are_exact() -> None:
    assert not is_subset({"data": {"a": ""}}, {"data": {}})
    assert not is_subset({"replicas": True}, {"replicas": 1})
    assert is_subset({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "TCP"}]})
