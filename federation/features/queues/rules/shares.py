"""The dominant share of queues: the largest part of a resource of their group that they use. Pure."""

from collections import defaultdict
from collections.abc import Mapping

from federation.features.queues.rules.facts import Pair, Queue


class Shares:
    """The shares in the nominal quota of each group, over all flavours."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._nominal: dict[tuple[str, str], int] = defaultdict(int)
        for queue in queues.values():
            for (_, resource), limit in queue.limits.items():
                self._nominal[queue.group, resource] += limit.own

    def of(self, queue: Queue, amounts: Mapping[str, int]) -> float:
        """Return the dominant share of amounts by resource in the group of a queue."""
        nominal, group = self._nominal, queue.group
        return max((amount / max(1, nominal.get((group, name), 0)) for name, amount in amounts.items()), default=0.0)

    def weighed(self, queue: Queue, used: Mapping[Pair, int]) -> float:
        """Return the dominant share of what a queue uses, by its weight."""
        amounts: dict[str, int] = defaultdict(int)
        for (_, resource), amount in used.items():
            amounts[resource] += amount
        return self.of(queue, amounts) / queue.weight
