"""Counts the objects that move because of one cause in a sliding window, and holds what exceeds its limit. Pure.

A move may have several causes: the object's policy, a profile, its type, the clusters that it leaves. It waits until
no further one was proposed for a moment: the first ten of fifty must not leave before the other forty are known.
The limit holds at any rate: in no window do more moves go on without approval. Times are seconds of the wall clock.
"""

import heapq
import itertools
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """Limits of the guard."""

    share: float = 0.2
    """The share of a cause's objects that may move within the window; 1 turns the guard off."""
    count: int = 10
    """This many objects may move in any case."""
    window_s: float = 600.0
    """The length of the window."""
    quiet_s: float = 1.0
    """How long a move waits after the last proposal with the same cause."""
    wait_s_max: float = 30.0
    """The longest such wait."""

    def allowed(self, size: int) -> int:
        """Return how many of `size` objects may move within a window."""
        return max(self.count, int(self.share * size))


@dataclass(frozen=True, slots=True, order=True)
class Cause:
    """The common cause of moves: the kind, namespace and name of a policy, a FederatedTypeConfig or a cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def parse_cause(text: str) -> Cause:
    """Return the cause of its text; ValueError for a malformed one."""
    kind, _, path = text.partition(" ")
    if not path:
        raise ValueError(f"{text!r} is not a kind and a name")
    namespace, _, name = path.rpartition("/")
    return Cause(kind, namespace, name)


class Permit(StrEnum):
    """Whether a proposed move may go on, must wait, or is held until somebody approves it."""

    GO = "go"
    WAIT = "wait"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The permit; for WAIT when to propose again, for HOLD the cause whose limit is exceeded."""

    permit: Permit
    wait_s: float = 0.0
    cause: Cause | None = None


class _Count(Generic[K]):
    """The objects of one cause that moved, are proposed, or are held. No step depends on the number of objects."""

    def __init__(self) -> None:
        self.moved: dict[K, float] = {}
        """When each of them moved."""
        self.proposed: dict[K, float] = {}
        """Since when."""
        self.held: set[K] = set()
        self.latest_s = 0.0
        """When the latest new proposal came."""
        self._counted: set[K] = set()
        self._expiries: list[tuple[float, int, K]] = []
        self._sequence = itertools.count()

    def total(self, since_s: float) -> int:
        """Return how many objects count, after removing moves before `since_s`."""
        while self._expiries and self._expiries[0][0] <= since_s:
            at_s, _, key = heapq.heappop(self._expiries)
            if self.moved.get(key) == at_s:  # it has not moved again
                del self.moved[key]
                self._count_again(key)
        return len(self._counted)

    def propose(self, key: K, now_s: float) -> None:
        """Add a proposal that is not counted yet."""
        if key not in self.proposed:
            if key not in self._counted:
                self.latest_s = now_s
            self.proposed[key] = now_s
            self._counted.add(key)

    def hold(self, key: K) -> None:
        """Count an object as held."""
        self.held.add(key)
        self._counted.add(key)

    def move(self, key: K, at_s: float) -> None:
        """Count an object that moved."""
        self.moved[key] = at_s
        heapq.heappush(self._expiries, (at_s, next(self._sequence), key))
        self._counted.add(key)

    def drop(self, key: K) -> None:
        """Remove a proposal."""
        self.proposed.pop(key, None)
        self.held.discard(key)
        self._count_again(key)

    def _count_again(self, key: K) -> None:
        if not (key in self.moved or key in self.proposed or key in self.held):
            self._counted.discard(key)


class Ledger(Generic[K]):
    """The moves of all causes. It holds at most one entry per object and cause."""

    def __init__(self, options: GuardOptions) -> None:
        self._options = options
        self._counts: dict[Cause, _Count[K]] = {}
        self._causes: dict[K, set[Cause]] = {}

    def propose(self, key: K, sizes: Mapping[Cause, int], now_s: float) -> Judgement:
        """Return the permit for the move of one object; `sizes` are the numbers of objects by cause.

        The causes come in the order in which one of them is named. A move that may go on is recorded as done.
        """
        self._forget(key, self._causes.get(key, set()) - sizes.keys())
        since_s, exceeded = now_s - self._options.window_s, None
        for cause, size in sizes.items():
            count = self._count(key, cause)
            count.propose(key, now_s)
            if exceeded is None and count.total(since_s) > self._options.allowed(size):
                exceeded = cause
        if exceeded is not None:
            self.hold(key, exceeded)
            return Judgement(Permit.HOLD, cause=exceeded)
        wait_s = self._wait_s(key, sizes, now_s)
        if wait_s > 0:
            return Judgement(Permit.WAIT, wait_s)
        self.withdraw(key)
        self.record(key, sizes, now_s)
        return Judgement(Permit.GO)

    def moved(self, cause: Cause, now_s: float) -> int:
        """Return how many objects of the cause moved within the window."""
        count = self._counts.get(cause)
        if count is None:
            return 0
        count.total(now_s - self._options.window_s)
        return len(count.moved)

    def counted(self, cause: Cause, now_s: float) -> int:
        """Return how many objects of the cause moved within the window, are proposed, or are held."""
        count = self._counts.get(cause)
        return 0 if count is None else count.total(now_s - self._options.window_s)

    def hold(self, key: K, cause: Cause) -> None:
        """Record that the move of an object is held; it counts for this cause only, so that no other is held for it."""
        self.withdraw(key)
        self._count(key, cause).hold(key)

    def record(self, key: K, causes: Iterable[Cause], at_s: float) -> None:
        """Record a move that went on at this time."""
        for cause in causes:
            self._counts.setdefault(cause, _Count()).move(key, at_s)

    def withdraw(self, key: K) -> None:
        """Forget the proposal of an object that does not move any more, or whose move is approved."""
        self._forget(key, set(self._causes.get(key, ())))

    def _count(self, key: K, cause: Cause) -> _Count[K]:
        self._causes.setdefault(key, set()).add(cause)
        return self._counts.setdefault(cause, _Count())

    def _forget(self, key: K, causes: set[Cause]) -> None:
        for cause in causes:
            count = self._counts[cause]
            count.drop(key)
            self._causes[key].discard(cause)
            if not (count.moved or count.proposed or count.held):
                del self._counts[cause]
        if not self._causes.get(key, True):
            del self._causes[key]

    def _wait_s(self, key: K, sizes: Mapping[Cause, int], now_s: float) -> float:
        """Return how long to wait for further proposals; a cause with few objects cannot exceed its limit."""
        options = self._options
        large = [self._counts[cause] for cause, size in sizes.items() if size > options.count]
        if not large:
            return 0.0
        quiet_s = max(count.latest_s for count in large) + options.quiet_s
        first_s = min(count.proposed[key] for count in large)
        return min(quiet_s, first_s + options.wait_s_max) - now_s
