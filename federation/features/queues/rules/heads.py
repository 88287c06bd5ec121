"""The waiting jobs of queues, the next one to look at first. Pure; the order of a round is in `admission.py`."""

import heapq
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from federation.features.queues.rules.facts import Amounts, Job, Pair, Queue
from federation.features.queues.rules.shares import Shares
from federation.planning.accounts.usage import Usage

DEPTH = 1_000
"""Jobs of one JobQueue that are checked in a round, the first of its order."""


@dataclass(slots=True)
class Leaf:
    """The waiting jobs of one JobQueue, and what its jobs hold by resource."""

    name: str
    waiting: list[Job] = field(default_factory=list)
    at: int = 0
    used: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def end(self) -> int:
        """The number of jobs that are checked."""
        return min(len(self.waiting), DEPTH)

    @property
    def head(self) -> Job | None:
        """The next job to look at."""
        return self.waiting[self.at] if self.at < self.end else None

    def add(self, amounts: Amounts) -> None:
        """Count what a job of the JobQueue gets."""
        for (_, resource), amount in amounts.items():
            self.used[resource] += amount


_Key = tuple[bool, int, float, float, str]


class QueueHeads:
    """The JobQueues of a queue, the next one to look at first."""

    def __init__(self, queue: Queue, leaves: Iterable[Leaf], usage: Usage[Pair], shares: Shares) -> None:
        self.queue, self._usage, self._shares = queue, usage, shares
        self._heap = [(self._key(leaf, head), leaf.name, leaf) for leaf in leaves if (head := leaf.head) is not None]
        heapq.heapify(self._heap)

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def leaf(self) -> Leaf:
        """The next JobQueue to look at."""
        return self._heap[0][2]

    @property
    def head(self) -> Job:
        """The next job to look at."""
        head = self.leaf.head
        assert head is not None
        return head

    def advance(self) -> None:
        """Go on to the next job; the share of its JobQueue may have changed."""
        _, name, leaf = self._heap[0]
        leaf.at += 1
        if (head := leaf.head) is None:
            heapq.heappop(self._heap)
        else:
            heapq.heapreplace(self._heap, (self._key(leaf, head), name, leaf))

    def key(self) -> tuple[bool, float, float, str]:
        """Return the place of the queue among all: without borrowing first, then by share."""
        head, name = self.head, self.queue.name
        borrows = all(self._usage.is_borrowing(name, option.amounts) for option in head.options)
        return (borrows, self._shares.weighed(self.queue, self._usage.used(name)), head.created_s, name)

    def _key(self, leaf: Leaf, head: Job) -> _Key:
        share = self._shares.of(self.queue, leaf.used)
        return (not head.is_front, -head.priority, share, head.created_s, head.key)
