"""ClusterDisruptionBudgets for waves: what rollouts use of them, and which rollouts wait for them.

The clusters that a rollout disrupts are in its status. They are counted here from the decision on, before the status is
written, so that two rollouts that are decided at the same time do not both take the rest of a budget.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

from federation.api.resources import CLUSTER_DISRUPTION_BUDGETS, FEDERATED_CLUSTERS
from federation.apimachinery.resources import Object
from federation.planning.changehold import Hold
from federation.planning.failover.clusterbudgets import DisruptionBudgets, budgeted_clusters, disruptions_of
from federation.runtime.controller import Key, key_of
from federation.runtime.informers import Informers


class WaitingForBudgets:
    """Counts disruptions by rollout. It lives as long as the controller; `enqueue` requeues a rollout."""

    def __init__(self, informers: Informers, enqueue: Callable[[Key], None]) -> None:
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._budgets = informers.for_resource(CLUSTER_DISRUPTION_BUDGETS)
        self._enqueue = enqueue
        self._disrupted: dict[Key, Mapping[str, datetime]] = {}
        self._waiting: set[Key] = set()

    async def run(self) -> None:
        """Subscribe, and return once all budgets are known."""
        self._budgets.add_handler(lambda _old, _new: self.retry())
        await self._budgets.wait_synced()

    def budgets(self, key: Key, now: datetime, frozen: Mapping[str, Hold]) -> DisruptionBudgets | None:
        """Return what is left of the budgets for this rollout, None if there are none and nothing is frozen."""
        budgets = self._budgets.list()
        if not budgets:
            return DisruptionBudgets((), (), now, frozen) if frozen else None
        others = (found for other, found in self._disrupted.items() if other != key)
        return DisruptionBudgets(budgeted_clusters(self._clusters.list(), others, now), budgets, now, frozen)

    def on_rollout(self, old: Object | None, new: Object | None) -> None:
        """Count what the status of a rollout says until this process decides about it; forget a deleted one."""
        key = key_of(new if new is not None else old or {})
        if new is None:
            self.record(key, {}, is_waiting=False)
        elif key not in self._disrupted:
            self._disrupted[key] = disruptions_of(new)

    def record(self, key: Key, disrupted: Mapping[str, datetime], *, is_waiting: bool) -> None:
        """Count the disruptions of a decision; rollouts that wait are retried when there are fewer of them."""
        before = self._disrupted.get(key, {})
        self._disrupted[key] = disrupted
        self._waiting.discard(key)
        if before.keys() - disrupted.keys():
            self.retry()
        if is_waiting:
            self._waiting.add(key)

    def retry(self) -> None:
        """Requeue every rollout that waits for a budget."""
        for key in sorted(self._waiting):
            self._enqueue(key)
