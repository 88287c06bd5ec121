"""Objects, and indexes in step with them."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.memory import share
from federation.runtime.controller import key_of
from federation.runtime.indexer import Cache, cache_key


def an_object(namespace: str, name: str, *colors: str) -> dict:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"metadata": metadata, "colors": list(colors)}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "remove", "index"]),
        st.sampled_from(["", "a", "b"]),
        st.sampled_from(["x", "y", "z"]),
        st.lists(st.sampled_from(["red", "blue"]), unique=True, max_size=2),
    ),
    max_size=30,
)


@given(STEPS, st.integers(0, 3))
def test_the_cache_and_its_index_agree_with_a_plain_mapping(steps, parsed_max) -> None:
    cache, plain = Cache(parsed_max), {}
    cache.add_index("color", lambda obj: obj["colors"])
    for what, namespace, name, colors in steps:
        key = (namespace, name)
        if what == "put":
            plain[key] = an_object(namespace, name, *colors)
            cache.put(cache_key(plain[key]), plain[key])
        elif what == "remove":
            plain.pop(key, None)
            cache.remove(key)
        else:
            cache.add_index("color", lambda obj: obj["colors"])
    assert len(cache) == len(plain)
    assert set(cache.keys()) == set(plain)
    assert all(cache.get(*key) == obj for key, obj in plain.items())
    assert cache.get("a", "nothing") is None
    for color in ("red", "blue", "green"):
        wanted = {key: obj for key, obj in plain.items() if color in obj["colors"]}
        assert set(cache.keys_by_index("color", color)) == set(wanted)
        assert {cache_key(obj): obj for obj in cache.by_index("color", color)} == wanted
    assert {cache_key(obj): obj for obj in cache.list("a")} == {k: o for k, o in plain.items() if k[0] == "a"}
    assert len(cache.list()) == len(plain)


def test_the_objects_used_last_stay_parsed_and_the_others_are_text() -> None:
    cache = Cache(parsed_max=2)
    stored = [an_object("a", f"x{number}", "red") for number in range(4)]
    for obj in stored:
        cache.put(cache_key(obj), obj)
    assert cache.get("a", "x3") is stored[3]
    first = cache.get("a", "x0")
    assert first == stored[0]
    assert first is not stored[0]
    assert cache.get("a", "x0") is first


def test_an_object_that_cannot_be_text_stays_as_it_is() -> None:
    cache, deep = Cache(parsed_max=1), an_object("a", "deep")
    inner = deep
    for _ in range(400):
        inner["spec"] = inner = {}
    cache.put(cache_key(deep), deep)
    cache.put(("a", "next"), an_object("a", "next"))
    assert cache.get("a", "deep") is deep


def test_the_objects_of_a_long_list_are_text_from_the_place_where_the_cache_has_enough_parsed() -> None:
    cache = Cache(parsed_max=2)
    stored = [an_object("a", f"x{number}", "red") for number in range(4)]
    for obj in stored:
        cache.put(cache_key(obj), obj, is_listed=True)
    assert cache.get("a", "x1") is stored[1]
    assert cache.get("a", "x3") == stored[3]
    assert cache.get("a", "x3") is not stored[3]
    changed = an_object("a", "x1", "blue")
    cache.put(cache_key(changed), changed, is_listed=True)
    assert cache.get("a", "x1") == changed


@pytest.mark.skipif(share is not sys.intern, reason="this interpreter would keep shared strings for ever")
def test_equal_names_of_different_answers_are_one_string_in_all_keys() -> None:
    answers = [json.loads('{"metadata": {"namespace": "a-namespace", "name": "a-name"}}') for _ in range(2)]
    first, second = map(cache_key, answers)
    assert answers[0]["metadata"]["name"] is not answers[1]["metadata"]["name"]
    assert first[0] is second[0] is key_of(answers[0]).namespace
    assert first[1] is second[1] is key_of(answers[1]).name


def test_a_namespace_of_null_is_no_namespace() -> None:
    """No API server sends that, but a member can send anything."""
    obj = {"metadata": {"namespace": None, "name": "one"}}
    assert cache_key(obj) == key_of(obj) == ("", "one")
