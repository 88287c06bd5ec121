"""How fast replicas leave clusters: a sliding window over all objects, a share of it per namespace, by priority. Pure.

In no window of 60 seconds do more replicas leave than the limit, nor more of one namespace than its share. Objects
that exceed it wait; of those that could go, the one with the highest scheduling priority goes first, then the one that
came first. Times are seconds of the wall clock, so that moves of an earlier process count (`remember`).
"""

import heapq
import itertools
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class PaceOptions:
    """How many replicas leave lost and drained clusters."""

    replicas_per_minute: int = 600
    """Replicas that leave within any minute; 0 for none. Kubernetes evicts 6 nodes per minute, of at most 110 pods."""
    namespace_share: float = 0.5
    """The share of it that replicas of one namespace may use; at least one replica."""

    @property
    def is_on(self) -> bool:
        """Whether replicas leave at all."""
        return self.replicas_per_minute > 0

    @property
    def per_namespace(self) -> int:
        """Replicas of one namespace that leave within any minute."""
        return min(self.replicas_per_minute, max(1, int(self.namespace_share * self.replicas_per_minute)))


@dataclass(frozen=True, slots=True, order=True)
class _Turn:
    """The order among waiting objects; lower first."""

    rank: int
    number: int


@dataclass(frozen=True, slots=True)
class _Waiting:
    turn: _Turn
    namespace: str
    least: int


class Pace(Generic[K]):
    """Moves of the last minute, and the objects that wait."""

    def __init__(self, options: PaceOptions) -> None:
        self._options = options
        self._numbers = itertools.count()
        self._moves: list[tuple[float, int, str, K, int]] = []
        self._used = 0
        self._used_by: dict[str, int] = {}
        self._waiting: dict[K, _Waiting] = {}
        self._queues: dict[str, list[tuple[_Turn, K]]] = {}
        """Waiting objects by namespace, with entries of objects that do not wait any more."""
        self._unconfirmed: dict[K, tuple[str, int]] = {}
        """Grants that are counted when they are written."""

    def propose(
        self, key: K, namespace: str, priority: int, wanted: int, now_s: float, *, is_whole: bool = False
    ) -> int:
        """Return how many of `wanted` replicas of the object may leave now; 0 if it has to wait.

        A grant counts at once, and is taken back by the next proposal of the object unless `confirm` was called.
        `is_whole` objects leave with all replicas or none; more than the limit may leave if no other object did.
        """
        self._expire(now_s)
        self._take_back(key)
        if wanted <= 0 or self._options.replicas_per_minute <= 0:
            return 0
        least = min(wanted, self._options.per_namespace) if is_whole else 1
        old = self._waiting.get(key)
        turn = old.turn if old is not None and old.turn.rank == -priority else _Turn(-priority, next(self._numbers))
        room = self._room(namespace)
        if room < least or self._is_preceded(turn, namespace):
            self._wait(key, _Waiting(turn, namespace, least))
            return 0
        self._waiting.pop(key, None)
        granted = wanted if is_whole else min(wanted, room)
        self._unconfirmed[key] = (namespace, min(granted, room))
        self._count(namespace, min(granted, room))
        return granted

    def confirm(self, key: K, now_s: float) -> int:
        """Record that the object's grant, if it has one, was written at this time; return its replicas."""
        grant = self._unconfirmed.pop(key, None)
        if grant is None:
            return 0
        self._add(key, grant[0], grant[1], now_s)
        return grant[1]

    def remember(self, key: K, namespace: str, count: int, at_s: float) -> None:
        """Count replicas that left before the process started."""
        count = min(max(0, count), self._options.per_namespace)
        self._count(namespace, count)
        self._add(key, namespace, count, at_s)

    def withdraw(self, key: K) -> None:
        """Forget the proposal of an object that does not move any more."""
        self._waiting.pop(key, None)
        self._take_back(key)

    @property
    def waiting(self) -> int:
        """The number of objects that wait."""
        return len(self._waiting)

    def next_turns(self, now_s: float) -> tuple[list[K], float | None]:
        """Return the waiting objects that may propose again now, and after how many seconds to ask again, if ever."""
        self._expire(now_s)
        found, left, left_of = [], self._options.replicas_per_minute - self._used, dict[str, int]()
        queues = {namespace: deque(self._sorted(namespace)) for namespace in list(self._queues)}
        heads = [(queue[0][0], namespace) for namespace, queue in queues.items() if queue]
        heapq.heapify(heads)
        while heads:
            _, namespace = heapq.heappop(heads)
            _, key = queues[namespace].popleft()
            least = self._waiting[key].least
            room = left_of.setdefault(namespace, self._room(namespace))
            if least > min(left, room):
                continue  # the rest of the namespace waits behind it
            found.append(key)
            left, left_of[namespace] = left - least, room - least
            if queues[namespace]:
                heapq.heappush(heads, (queues[namespace][0][0], namespace))
        if not self._waiting or not self._moves:
            return found, None
        return found, max(0.0, self._moves[0][0] + WINDOW_S - now_s)

    def _room(self, namespace: str) -> int:
        options = self._options
        left = options.per_namespace - self._used_by.get(namespace, 0)
        return min(options.replicas_per_minute - self._used, left)

    def _is_preceded(self, turn: _Turn, namespace: str) -> bool:
        """Return whether an object that could leave now has its turn before this one."""
        for other in list(self._queues):
            first = self._first(other)
            if first is None or first[0] >= turn:
                continue
            # The first one of a namespace keeps the rest of it waiting, also when only its own share is used up.
            if other == namespace or self._room(other) >= self._waiting[first[1]].least:
                return True
        return False

    def _first(self, namespace: str) -> tuple[_Turn, K] | None:
        queue = self._queues[namespace]
        while queue and not self._is_current(queue[0]):
            heapq.heappop(queue)
        if not queue:
            del self._queues[namespace]
            return None
        return queue[0]

    def _sorted(self, namespace: str) -> Iterable[tuple[_Turn, K]]:
        return sorted((entry for entry in self._queues[namespace] if self._is_current(entry)), key=lambda e: e[0])

    def _is_current(self, entry: tuple[_Turn, K]) -> bool:
        waiting = self._waiting.get(entry[1])
        return waiting is not None and waiting.turn == entry[0]

    def _wait(self, key: K, waiting: _Waiting) -> None:
        old = self._waiting.get(key)
        self._waiting[key] = waiting
        if old is None or (old.turn, old.namespace) != (waiting.turn, waiting.namespace):
            heapq.heappush(self._queues.setdefault(waiting.namespace, []), (waiting.turn, key))

    def _add(self, key: K, namespace: str, count: int, at_s: float) -> None:
        heapq.heappush(self._moves, (at_s, next(self._numbers), namespace, key, count))

    def _count(self, namespace: str, count: int) -> None:
        self._used += count
        self._used_by[namespace] = self._used_by.get(namespace, 0) + count
        if not self._used_by[namespace]:
            del self._used_by[namespace]

    def _take_back(self, key: K) -> None:
        if (grant := self._unconfirmed.pop(key, None)) is not None:
            self._count(grant[0], -grant[1])

    def _expire(self, now_s: float) -> None:
        while self._moves and self._moves[0][0] <= now_s - WINDOW_S:
            _, _, namespace, _, count = heapq.heappop(self._moves)
            self._count(namespace, -count)
