"""The quota of queues and cohorts: what is used, what may be borrowed, and the share of each queue.

A queue of a cohort may use what other members have and do not use, up to its own borrowing limit and their lending
limits. `Usage` counts amounts during a round.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from federation.features.queues.rules.facts import Amounts, Lack, Limit, Pair, Queue, Waits

_NONE = Limit(0, 0, 0)


class Usage:
    """Amounts that jobs hold, by queue. Every method costs a time that depends on the amounts of one job only."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._queues = queues
        self._used: dict[str, dict[Pair, int]] = {name: defaultdict(int) for name in queues}
        self._lendable: dict[tuple[str, Pair], int] = defaultdict(int)
        self._nominal: dict[tuple[str, str], int] = defaultdict(int)
        """By group and resource, over all flavours."""
        self._taken: dict[tuple[str, Pair], int] = defaultdict(int)
        """Amounts that members of a group use beyond the part that they never lend."""
        self._by_resource: dict[str, dict[str, int]] = {name: defaultdict(int) for name in queues}
        for queue in queues.values():
            for pair, limit in queue.limits.items():
                self._lendable[queue.group, pair] += limit.nominal - limit.kept
                self._nominal[queue.group, pair[1]] += limit.nominal

    def copy(self) -> "Usage":
        """Return an equal one that counts on its own."""
        other = Usage({})
        other._queues, other._lendable, other._nominal = self._queues, self._lendable, self._nominal
        other._used = {name: used.copy() for name, used in self._used.items()}
        other._by_resource = {name: used.copy() for name, used in self._by_resource.items()}
        other._taken = self._taken.copy()
        return other

    def add(self, name: str, amounts: Amounts, sign: int = 1) -> None:
        """Count what a job of a queue holds, or with -1 no longer holds."""
        used, queue = self._used.get(name), self._queues.get(name)
        if used is None or queue is None:
            return
        for pair, amount in amounts.items():
            kept = queue.limits.get(pair, _NONE).kept
            before = used[pair]
            used[pair] = after = before + sign * amount
            self._taken[queue.group, pair] += max(0, after - kept) - max(0, before - kept)
            self._by_resource[name][pair[1]] += sign * amount

    def used(self, name: str, pair: Pair) -> int:
        """Return what the jobs of a queue hold."""
        return self._used[name][pair]

    def shortage(self, name: str, amounts: Amounts) -> Waits | None:
        """Return the first pair of which the queue cannot have so much more now, None if it can have all."""
        queue = self._queues[name]
        for pair, amount in amounts.items():
            free = self.free(queue, pair)
            if amount > free:
                return Waits(Lack.QUOTA, *pair, amount, max(0, free))
        return None

    def free(self, queue: Queue, pair: Pair) -> int:
        """Return how much more a queue may use now."""
        limit, used = queue.limits.get(pair, _NONE), self._used[queue.name][pair]
        own = limit.nominal - used if limit.borrowing is None else limit.nominal + limit.borrowing - used
        unlent = max(0, limit.kept - used)
        shared = unlent + self._lendable[queue.group, pair] - self._taken[queue.group, pair]
        return shared if limit.borrowing is None else min(own, shared)

    def most_of(self, name: str, pair: Pair) -> int:
        """Return how much the queue of this name can have when nothing else runs."""
        return self.most(self._queues[name], pair)

    def most(self, queue: Queue, pair: Pair) -> int:
        """Return how much a queue can have when nothing else runs."""
        limit = queue.limits.get(pair, _NONE)
        shared = limit.kept + self._lendable[queue.group, pair]
        return shared if limit.borrowing is None else min(limit.nominal + limit.borrowing, shared)

    def is_borrowing(self, name: str, amounts: Amounts) -> bool:
        """Return whether the queue would use more than its own quota with these amounts added."""
        limits, used = self._queues[name].limits, self._used[name]
        return any(used[pair] + amount > limits.get(pair, _NONE).nominal for pair, amount in amounts.items())

    def borrows_any(self, name: str, pairs: Iterable[Pair]) -> bool:
        """Return whether the queue uses more than its own quota of any of the pairs."""
        limits, used = self._queues[name].limits, self._used[name]
        return any(used[pair] > limits.get(pair, _NONE).nominal for pair in pairs)

    def share(self, name: str) -> float:
        """Return the dominant share: the largest part of a resource of its group that the queue uses, by weight."""
        queue = self._queues[name]
        return dominant(self._by_resource[name], queue.group, self._nominal) / queue.weight

    def share_of(self, queue: Queue, amounts: Mapping[str, int]) -> float:
        """Return the dominant share of amounts by resource in the group of a queue."""
        return dominant(amounts, queue.group, self._nominal)


def dominant(used: Mapping[str, int], group: str, nominal: Mapping[tuple[str, str], int]) -> float:
    """Return the largest part of the group's quota of a resource that is used."""
    return max((amount / max(1, nominal.get((group, name), 0)) for name, amount in used.items() if amount), default=0.0)
