"""Checks of the objects that a server sends, before an informer stores them: their shape and their memory.

A member is not trusted. An item without the metadata of a Kubernetes object would fail in each handler; an endless
list would exhaust our memory. Each informer has one `Admittance`, which rejects malformed items and enforces the limits
of one collection; a `CacheBudget` limits the estimated memory of all caches of one member.
"""

from collections.abc import Callable
from operator import attrgetter

import orjson
import structlog
from prometheus_client import Counter, Gauge

from federation.apimachinery.errors import BadRequest, ClusterLimitExceeded, Expired, Timeout
from federation.apimachinery.metrics import show
from federation.apimachinery.objectshape import REVISION_LENGTH_MAX
from federation.apimachinery.resources import Object, Resource
from federation.runtime.indexer import CacheKey

_log = structlog.get_logger(__name__)

_malformed = Counter(
    "federation_runtime_informer_malformed_total", "Items that are not Kubernetes objects", ["cluster", "resource"]
)
_limits = Counter(
    "federation_runtime_informer_limits_total", "Lists and watches that exceeded a limit", ["cluster", "resource"]
)
_used = Gauge("federation_runtime_member_cache_bytes", "Estimated memory of a member's caches", ["cluster"])

Transform = Callable[[Object], Object]
"""Returns the part of an object to keep, at least its name, namespace and resourceVersion. May change its argument."""

_SEPARATOR_BYTES = 105
"""Memory per comma or opening bracket, besides the text: a value takes 60 bytes and a dict or list 150 (CPython 3.11).

An object of many empty dicts or lists, the dearest one, has as many commas as brackets.
"""


def estimate_bytes(text: bytes) -> int:
    """Return the estimated memory of an object by its JSON; many small values need more memory than their text."""
    return len(text) + _SEPARATOR_BYTES * (len(text) - len(text.translate(None, b",[{")))


def bookmark_revision(obj: object) -> str:
    """Return the revision of a bookmark, "" when it has none."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    revision = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return revision if isinstance(revision, str) and len(revision) <= REVISION_LENGTH_MAX else ""


def is_within(obj: Object, resource: Resource, namespace: str) -> bool:
    """Return whether the object is in the scope of the resource and in the namespace, "" for all."""
    found = obj["metadata"].get("namespace") or ""
    return bool(found) == resource.namespaced and namespace in ("", found)


def needs_list(failure: Exception) -> bool:
    """Return whether the server cannot watch from our revision: it is too old, or from another server."""
    if isinstance(failure, Expired | BadRequest):
        return True
    if isinstance(failure, Timeout):
        return any(cause.get("reason") == "ResourceVersionTooLarge" for cause in failure.details.get("causes") or ())
    return False


class CacheBudget:
    """Limits the estimated memory of all caches of one member. It lives as long as the member is followed."""

    def __init__(self, cluster: str, bytes_max: int) -> None:
        self._cluster = cluster
        self._bytes_max = bytes_max
        self._bytes = 0
        show(_used.labels(cluster), self, attrgetter("_bytes"))

    def charge(self, change_bytes: int) -> None:
        """Add to the memory in use, or subtract; ClusterLimitExceeded when it would exceed the limit."""
        total = self._bytes + change_bytes
        if change_bytes > 0 and total > self._bytes_max:
            raise ClusterLimitExceeded(
                f"the objects of cluster {self._cluster} need more than {self._bytes_max} bytes of memory"
                " (member_cache_bytes_max)"
            )
        self._bytes = total


class Admittance:
    """The checks of one informer. `exceeded` is the exceeded limit, as a message; "" after a complete list."""

    def __init__(
        self,
        cluster: str,
        resource: Resource,
        transform: Transform | None,
        budget: CacheBudget | None,
        *,
        pages_max: int,
        objects_max: int,
    ) -> None:
        self.exceeded = ""
        self.has_malformed = False
        """Whether the server has sent a malformed item since the last list began."""
        self._cluster = cluster
        self._resource = resource.group_resource
        self._transform = transform
        self._budget = budget
        self._pages_max = pages_max
        self._objects_max = objects_max
        self._bytes: dict[CacheKey, int] = {}
        self._is_logged = False
        self._malformed = _malformed.labels(cluster, self._resource)
        self._limits = _limits.labels(cluster, self._resource)

    def begin_list(self) -> None:
        """Log the next malformed item and the next failed handler again."""
        self._is_logged = self.has_malformed = False

    def check_pages(self, count: int) -> None:
        """Raise ClusterLimitExceeded when a list has too many pages."""
        if 0 < self._pages_max < count:
            raise self._excess(f"a list has more than {self._pages_max} pages (list_pages_max)")

    def check_objects(self, count: int) -> None:
        """Raise ClusterLimitExceeded when there are too many objects."""
        if 0 < self._objects_max < count:
            raise self._excess(f"there are more than {self._objects_max} objects (list_objects_max)")

    def admit(self, key: CacheKey, obj: Object) -> tuple[Object, bytes] | None:
        """Return the reduced object to store and its JSON, None for a malformed one; ClusterLimitExceeded.

        The JSON is b"" where memory has no limit, which is measured by it.
        """
        kept, text = self.shrink(obj), b""
        if kept is not None and self._budget is not None:
            try:
                text = orjson.dumps(kept)
            except orjson.JSONEncodeError:  # nested too deeply
                kept = None
        if kept is None:
            self.reject(obj)
            return None
        if self._budget is not None:
            size = estimate_bytes(text)
            self._budget.charge(size - self._bytes.get(key, 0))
            self._bytes[key] = size
        return kept, text

    def shrink(self, obj: Object) -> Object | None:
        """Return the reduced object, None when its inner parts are malformed."""
        if self._transform is None:
            return obj
        try:
            return self._transform(obj)
        except (AttributeError, KeyError, TypeError, ValueError):
            return None

    def forget(self, key: CacheKey) -> None:
        """Return the memory of a removed object to the budget."""
        if self._budget is not None:
            self._budget.charge(-self._bytes.pop(key, 0))

    def forget_all(self) -> None:
        """Return the memory of all objects to the budget."""
        if self._budget is not None:
            self._budget.charge(-sum(self._bytes.values()))
            self._bytes.clear()

    def reject(self, obj: object) -> None:
        """Count a malformed item; the first one since the last list is logged."""
        self._malformed.inc()
        self.has_malformed = True
        if self.may_log():
            item = repr(obj)[:200]
            _log.warning("malformed items are ignored", cluster=self._cluster, resource=self._resource, item=item)

    def may_log(self) -> bool:
        """Return True once per list: a server can send a million objects that are malformed."""
        before, self._is_logged = self._is_logged, True
        return not before

    def record(self, excess: ClusterLimitExceeded) -> None:
        """Count an exceeded limit, and log it when it is new."""
        self._limits.inc()
        if not self.exceeded:
            _log.warning("cluster exceeds a limit", cluster=self._cluster, error=str(excess))
        self.exceeded = str(excess)

    def _excess(self, problem: str) -> ClusterLimitExceeded:
        return ClusterLimitExceeded(f"cluster {self._cluster}, {self._resource}: {problem}")
