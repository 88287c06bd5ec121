from federation.apimachinery.resources import Object
from federation.runtime.assumecache import AssumeCache


def obj(revision: int) -> Object:
    return {"metadata": {"name": "web", "resourceVersion": str(revision)}}


def test_an_assumed_object_is_returned_until_the_cache_has_it() -> None:
    cache = {"web": obj(9)}
    assumed: AssumeCache[str] = AssumeCache(cache.get)
    assumed.assume("web", obj(10))
    assert assumed.get("web") == obj(10)
    assumed.prune("web")
    assert assumed.get("web") == obj(10)
    cache["web"] = obj(11)
    assert assumed.get("web") == obj(11)
    assumed.assume("web", obj(12))
    cache["web"] = obj(12)
    assumed.prune("web")
    assert len(assumed) == 0
    assumed.assume("web", obj(13))
    del cache["web"]
    assert assumed.get("web") is None
    assert len(assumed) == 0


def test_a_write_that_the_cache_already_has_is_not_kept() -> None:
    """In one process the event often comes before the answer; no later event would drop the write."""
    cache = {"web": obj(10)}
    assumed: AssumeCache[str] = AssumeCache(cache.get)
    assumed.assume("web", obj(10))
    assumed.assume("gone", obj(10))
    assert len(assumed) == 0


def test_an_older_write_that_is_answered_last_does_not_replace_the_newer_one() -> None:
    cache = {"web": obj(9)}
    assumed: AssumeCache[str] = AssumeCache(cache.get)
    for revision in (11, 10):
        assumed.assume("web", obj(revision))
    assert assumed.get("web") == obj(11)
