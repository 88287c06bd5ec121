"""Objects, and indexes in step with them."""

from hypothesis import given
from hypothesis import strategies as st

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


@given(STEPS)
def test_the_cache_and_its_index_agree_with_a_plain_mapping(steps) -> None:
    cache, plain = Cache(), {}
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
    assert all(cache.get(*key) is obj for key, obj in plain.items())
    assert cache.get("a", "nothing") is None
    for color in ("red", "blue", "green"):
        wanted = [obj for obj in plain.values() if color in obj["colors"]]
        found = cache.by_index("color", color)
        assert sorted(map(id, found)) == sorted(map(id, wanted))
    assert sorted(map(id, cache.list("a"))) == sorted(id(o) for k, o in plain.items() if k[0] == "a")
    assert len(cache.list()) == len(plain)
