"""Objects by namespace and name, with indexes: the memory of an informer.

It owns the mapping and keeps indexes in step with it; it knows nothing of servers, revisions or handlers
(`informer.py`, read next). Returned objects are read-only: a change in place would corrupt all readers and
indexes.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from federation.apimachinery.objectshape import REVISION_LENGTH_MAX
from federation.apimachinery.resources import Object
from federation.client.client import Objects

CacheKey = tuple[str, str]
"""Namespace and name."""


def cache_key(obj: Object) -> CacheKey:
    """Return namespace ("" for cluster-scoped objects) and name."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def revision_of(obj: Object | None) -> int:
    """Return an object's resourceVersion as a number, 0 when it has none that is one."""
    return to_revision(((obj or {}).get("metadata") or {}).get("resourceVersion") or "")


def to_revision(resource_version: str) -> int:
    """Return a resourceVersion as a number, 0 when it is none.

    Kubernetes guarantees the order since 1.35, and every server before kept to it.
    """
    return int(resource_version) if resource_version.isdecimal() and len(resource_version) <= REVISION_LENGTH_MAX else 0


class _Index:
    """Objects by the values that a function gives for them."""

    __slots__ = ("_buckets", "_values_of", "values")

    def __init__(self, values: Callable[[Object], Iterable[str]]) -> None:
        self.values = values
        self._buckets: dict[str, dict[CacheKey, Object]] = {}
        self._values_of: dict[CacheKey, tuple[str, ...]] = {}

    def put(self, key: CacheKey, obj: Object) -> None:
        values = tuple(self.values(obj))
        before = self._values_of.get(key, ())
        for value in before:
            if value not in values:
                self._drop(value, key)
        for value in values:
            self._buckets.setdefault(value, {})[key] = obj
        if values:
            self._values_of[key] = values
        elif before:
            del self._values_of[key]

    def remove(self, key: CacheKey) -> None:
        for value in self._values_of.pop(key, ()):
            self._drop(value, key)

    def get(self, value: str) -> list[Object]:
        bucket = self._buckets.get(value)
        return list(bucket.values()) if bucket else []

    def _drop(self, value: str, key: CacheKey) -> None:
        bucket = self._buckets.get(value)
        if bucket is not None:
            bucket.pop(key, None)
            if not bucket:
                del self._buckets[value]


class Cache:
    """The newest known state of each object of one collection."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, Object]] = {}
        self._indexes: dict[str, _Index] = {}

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
        return named.get(name) if named is not None else None

    def list(self, namespace: str = "") -> list[Object]:
        """Return the objects of one namespace, or all of them when it is ""."""
        if namespace:
            return list(self._namespaces.get(namespace, {}).values())
        return list(chain.from_iterable(named.values() for named in self._namespaces.values()))

    def put(self, key: CacheKey, obj: Object) -> None:
        """Store the object under its key."""
        named = self._namespaces.get(key[0])
        if named is None:
            named = self._namespaces[key[0]] = {}
        named[key[1]] = obj
        for index in self._indexes.values():
            index.put(key, obj)

    def remove(self, key: CacheKey) -> None:
        """Forget the key; nothing happens when it is unknown."""
        named = self._namespaces.get(key[0])
        if named is None or named.pop(key[1], None) is None:
            return
        if not named:
            del self._namespaces[key[0]]
        for index in self._indexes.values():
            index.remove(key)

    def add_index(self, name: str, values: Callable[[Object], Iterable[str]]) -> None:
        """Add or replace an index and fill it; an index with the same name and function stays unchanged."""
        if name in self._indexes and self._indexes[name].values is values:
            return
        index = _Index(values)
        for namespace, named in self._namespaces.items():
            for each, obj in named.items():
                index.put((namespace, each), obj)
        self._indexes[name] = index

    def by_index(self, name: str, value: str) -> Objects:
        """Return the objects with that value; KeyError when there is no such index."""
        return self._indexes[name].get(value)
