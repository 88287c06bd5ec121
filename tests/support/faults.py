"""Faults of one member: what its connection, its API server and its clock do wrong.

`Faults` is the description that `lines.MemberLine` follows for every request: a share of the requests fails, and lists
lie. A skewed clock, and a store that is copied, restored or emptied, are the faults of the member itself. Connections
that break or hang are `Line.mode`, slow answers `Line.delays_s`. Every choice comes from a seed.
"""

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import (
    ApiError,
    ClusterUnreachable,
    Conflict,
    Expired,
    FederationError,
    InternalError,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unauthorized,
)
from federation.apimachinery.resources import Object
from federation.apiserver.store.interface import Entry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import Request

WRITES = frozenset({"create", "update", "patch", "apply", "delete"})
READS_OF_MANY = frozenset({"list", "watch"})


class _Error(NamedTuple):
    """An error that a member answers. `verbs` are those that a real server answers with it; None for all."""

    make: Callable[[], FederationError]
    verbs: frozenset[str] | None = None
    may_be_late: bool = False
    """Whether it can come after the request took effect."""


_ERRORS: dict[str, tuple[_Error, ...]] = {
    "409": (_Error(lambda: Conflict("the object has been modified (injected)"), WRITES),),
    "410": (_Error(lambda: Expired("too old resource version (injected)"), READS_OF_MANY),),
    "429": (_Error(lambda: TooManyRequests("slow down (injected)", details={"retryAfterSeconds": 1})),),
    "5xx": (
        _Error(lambda: InternalError("injected"), may_be_late=True),
        _Error(lambda: ServiceUnavailable("injected")),
        _Error(lambda: Timeout("injected"), may_be_late=True),
    ),
    "reset": (_Error(lambda: ClusterUnreachable("connection reset (injected)"), may_be_late=True),),
    "401": (_Error(lambda: Unauthorized("the token has expired (injected)")),),
}
STORMS = tuple(sorted(_ERRORS))
"""Kinds of errors."""
LIES = ("empty", "partial", "stale")
"""Lists of a member: without objects, without half of them, or the first one that it ever answered."""


class Faults:
    """What a member answers instead of the truth. Nothing, until `begin` or `lie` is set."""

    def __init__(self, seed: int) -> None:
        self.lie = ""
        self.injected = 0
        """Errors so far."""
        self._random = random.Random(seed)
        self._errors: tuple[_Error, ...] = ()
        self._share = 0.0
        self._first_lists: dict[tuple[str, ...], str] = {}
        self._misled: set[tuple[str, ...]] = set()

    def begin(self, share: float, *storms: str) -> None:
        """Let this share of the requests fail with errors of these kinds."""
        self._share, self._errors = share, tuple(error for storm in storms for error in _ERRORS[storm])

    @property
    def is_active(self) -> bool:
        """Whether requests fail."""
        return bool(self._errors)

    def end(self) -> None:
        """Tell the truth."""
        self._share, self._errors, self.lie = 0.0, (), ""

    def error_for(self, verb: str) -> tuple[FederationError | None, bool]:
        """Return the error of a request, None for none, and whether the request takes effect before it."""
        if not self._errors or self._random.random() >= self._share:
            return None, False
        possible = [error for error in self._errors if error.verbs is None or verb in error.verbs]
        if not possible:
            return None, False
        self.injected += 1
        error = self._random.choice(possible)
        return error.make(), error.may_be_late and verb in WRITES and self._random.random() < 0.5

    def tell(self, request: Request, answer: Object) -> Object:
        """Return the member's answer to a list."""
        answer = {**answer, "items": list(answer["items"])}
        key = _collection(request)
        if key not in self._first_lists:
            self._first_lists[key] = json.dumps(answer)  # a broken member sends numbers beyond 64 bits
        (self._misled.add if self.lie else self._misled.discard)(key)
        match self.lie:
            case "empty":
                return {**answer, "items": []}
            case "partial":
                return {**answer, "items": [item for item in answer["items"] if self._random.random() < 0.5]}
            case "stale":
                first: Object = json.loads(self._first_lists[key])
                return first
        return answer

    def must_list(self, request: Request) -> bool:
        """Return whether the watch follows a list that was a lie, and the lie is over.

        A member that lied has restarted since: it cannot resume the watches that it had before.
        """
        return not self.lie and _collection(request) in self._misled

    def forget(self) -> None:
        """Forget the lists of a server that was replaced. Caches that hold its lies still have to be filled again."""
        self._first_lists.clear()


def _collection(request: Request) -> tuple[str, ...]:
    """Return what a list and the watch after it have in common: pods with and without a node are two collections."""
    selectors = request.label_selector, request.field_selector
    return (request.resource.group_resource, request.namespace, *selectors)


def status_of(error: FederationError) -> tuple[int, bytes] | None:
    """Return the HTTP answer of an error, None for one that is no answer."""
    return (error.code, orjson.dumps(error.to_status())) if isinstance(error, ApiError) else None


class SkewedClock:
    """A clock whose wall time is wrong by `offset_s` seconds; seconds pass as on the other clock."""

    def __init__(self, clock: Clock) -> None:
        self.offset_s = 0.0
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now() + timedelta(seconds=self.offset_s)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, delay_s: float) -> None:
        await self._clock.sleep(delay_s)


class StoreCopy(NamedTuple):
    """The content of a store at one revision: a backup."""

    entries: list[Entry]
    revision: int


def copy_of(store: MemoryStore) -> StoreCopy:
    """Return the content of a store."""
    cache = store._watch_cache.cache
    page = cache.page("", limit=0, from_key="", revision=cache.revision, undo={})
    return StoreCopy(page.entries, page.revision)


def restored(store: MemoryStore, copy: StoreCopy | None) -> MemoryStore:
    """Fill an empty store with a copy, without its history, as etcd does; None leaves it empty."""
    if copy is not None:
        store._watch_cache.load(copy.entries, copy.revision, copy.revision)
    return store
