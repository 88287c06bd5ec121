from federation.apimachinery.mergepatch import create_merge_patch, without_nulls


def test_the_patch_holds_only_what_differs() -> None:
    old = {"a": 1, "b": {"c": 1, "d": 2}, "e": [1], "gone": {}}
    new = {"a": 1, "b": {"c": 1, "d": 3}, "e": [1, 2], "f": {}}
    assert create_merge_patch(old, new) == {"gone": None, "b": {"d": 3}, "e": [1, 2], "f": {}}
    assert create_merge_patch(old, old) == {}


def test_a_map_that_replaces_a_value_is_sent_whole() -> None:
    assert create_merge_patch({"a": 1}, {"a": {"b": 2}}) == {"a": {"b": 2}}
    assert create_merge_patch({"a": {"b": 2}}, {"a": 1}) == {"a": 1}


def test_nulls_leave_maps_at_any_depth_and_nothing_else_is_copied() -> None:
    clean = {"a": [{"b": 1}], "c": {"d": "e"}}
    assert without_nulls(clean) is clean
    dirty = {"spec": {"template": {"metadata": {"creationTimestamp": None, "name": "x"}}, "keep": clean}, "l": [None]}
    result = without_nulls(dirty)
    assert result == {"spec": {"template": {"metadata": {"name": "x"}}, "keep": clean}, "l": [None]}
    assert result["spec"]["keep"] is clean
    assert dirty["spec"]["template"]["metadata"]["creationTimestamp"] is None
