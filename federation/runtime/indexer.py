"""Objects by namespace and name, with indexes: the memory of an informer.

It owns the mapping and keeps indexes in step with it; it knows nothing of servers, revisions or handlers
(`informer.py`, read next). Returned objects are read-only: a change in place would corrupt all readers and
indexes. A parsed object needs four times the memory of its JSON text, so a large cache keeps most objects as text.

Decision: docs/decisions/0075-caches-keep-text.md
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator

import orjson

from federation.apimachinery.memory import share
from federation.apimachinery.resources import Object
from federation.client.client import Objects

CacheKey = tuple[str, str]
"""Namespace and name."""


def cache_key(obj: Object) -> CacheKey:
    """Return namespace ("" for cluster-scoped objects) and name, shared: an object has a key in ten mappings."""
    metadata = obj["metadata"]
    return share(metadata.get("namespace") or ""), share(metadata["name"])


class _Index:
    """Keys of objects by the values that a function gives for the objects."""

    __slots__ = ("_buckets", "_values_of", "values")

    def __init__(self, values: Callable[[Object], Iterable[str]]) -> None:
        self.values = values
        self._buckets: dict[str, dict[CacheKey, None]] = {}
        self._values_of: dict[CacheKey, tuple[str, ...]] = {}

    def put(self, key: CacheKey, obj: Object) -> None:
        values = tuple(map(share, self.values(obj)))
        before = self._values_of.get(key, ())
        if values == before:
            return
        for value in before:
            if value not in values:
                self._drop(value, key)
        for value in values:
            self._buckets.setdefault(value, {})[key] = None
        if values:
            self._values_of[key] = values
        else:
            del self._values_of[key]

    def remove(self, key: CacheKey) -> None:
        for value in self._values_of.pop(key, ()):
            self._drop(value, key)

    def keys(self, value: str) -> Collection[CacheKey]:
        return self._buckets.get(value, ())

    def _drop(self, value: str, key: CacheKey) -> None:
        bucket = self._buckets.get(value)
        if bucket is not None:
            bucket.pop(key, None)
            if not bucket:
                del self._buckets[value]


class Cache:
    """The newest known state of each object of one collection.

    With `parsed_max`, so many objects are kept parsed, those that were stored or returned by `get` last, and the others
    as JSON text: parsing one takes about 5 µs. 0 keeps all of them parsed.
    """

    def __init__(self, parsed_max: int = 0) -> None:
        self._namespaces: dict[str, dict[str, Object | bytes]] = {}
        self._indexes: dict[str, _Index] = {}
        self._parsed_max = parsed_max
        self._parsed: dict[CacheKey, Object] = {}
        """The parsed objects besides their text, oldest first."""

    def __len__(self) -> int:
        return sum(map(len, self._namespaces.values()))

    def keys(self) -> Iterator[CacheKey]:
        """Yield every key; the cache must not change during the iteration."""
        for namespace, named in self._namespaces.items():
            for name in named:
                yield namespace, name

    def get(self, namespace: str, name: str) -> Object | None:
        """Return the object or None."""
        named = self._namespaces.get(namespace)
        stored = named.get(name) if named is not None else None
        if not isinstance(stored, bytes):
            return stored
        key = namespace, name
        parsed = self._parsed.get(key)
        return self._keep_parsed(key, orjson.loads(stored)) if parsed is None else parsed

    def list(self, namespace: str = "") -> list[Object]:
        """Return the objects of one namespace, or all of them when it is ""."""
        if namespace:
            return [self._peek(namespace, name) for name in self._namespaces.get(namespace, ())]
        return [self._peek(*key) for key in self.keys()]

    def scan(self) -> Iterator[Object]:
        """Yield the objects one by one, without objects removed meanwhile: a list parses all of them at once."""
        for namespace, name in list(self.keys()):
            if name in self._namespaces.get(namespace, ()):
                yield self._peek(namespace, name)

    def put(self, key: CacheKey, obj: Object, text: bytes = b"", *, is_listed: bool = False) -> None:
        """Store the object under its key; `text` is its JSON if the caller has it.

        An object of a list replaces no other parsed one. Most lists that are longer than `parsed_max` are those of a
        start, in which every object would replace the one that is still in the processor's cache.
        """
        self._store(key, obj, text, keeps_parsed=not is_listed or len(self._parsed) < self._parsed_max)
        for index in self._indexes.values():
            index.put(key, obj)

    def remove(self, key: CacheKey) -> None:
        """Forget the key; nothing happens when it is unknown."""
        named = self._namespaces.get(key[0])
        if named is None or named.pop(key[1], None) is None:
            return
        if not named:
            del self._namespaces[key[0]]
        self._parsed.pop(key, None)
        for index in self._indexes.values():
            index.remove(key)

    def add_index(self, name: str, values: Callable[[Object], Iterable[str]]) -> None:
        """Add or replace an index and fill it; an index with the same name and function stays unchanged."""
        if name in self._indexes and self._indexes[name].values is values:
            return
        index = _Index(values)
        for key in self.keys():
            index.put(key, self._peek(*key))
        self._indexes[name] = index

    def by_index(self, name: str, value: str) -> Objects:
        """Return the objects with that value; KeyError when there is no such index."""
        return [self._peek(*key) for key in self._indexes[name].keys(value)]

    def keys_by_index(self, name: str, value: str) -> Collection[CacheKey]:
        """Return the keys of the objects with that value, to be read before the cache changes; KeyError."""
        return self._indexes[name].keys(value)

    def _peek(self, namespace: str, name: str) -> Object:
        """Return a stored object; a scan of many does not change which ones stay parsed."""
        stored = self._namespaces[namespace][name]
        if not isinstance(stored, bytes):
            return stored
        parsed = self._parsed.get((namespace, name))
        return orjson.loads(stored) if parsed is None else parsed

    def _store(self, key: CacheKey, obj: Object, text: bytes, *, keeps_parsed: bool) -> None:
        named = self._namespaces.get(key[0])
        if named is None:
            named = self._namespaces[key[0]] = {}
        named[key[1]] = obj
        if self._parsed_max:
            self._parsed.pop(key, None)
            with contextlib.suppress(orjson.JSONEncodeError):  # An object that is nested too deeply stays parsed.
                # orjson's result keeps its whole buffer, twice the text's length; a copy has the text's length.
                named[key[1]] = bytes(memoryview(text or orjson.dumps(obj)))
                if keeps_parsed:
                    self._keep_parsed(key, obj)

    def _keep_parsed(self, key: CacheKey, obj: Object) -> Object:
        self._parsed[key] = obj
        if len(self._parsed) > self._parsed_max:
            del self._parsed[next(iter(self._parsed))]
        return obj
