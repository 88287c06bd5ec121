"""The clusters that replicas leave, because they are lost or drained, and what keeps all replicas there. Pure.

Halts and ClusterDisruptionBudgets are about clusters, so they are asked once for all objects; `scheduling/permits` asks
what else keeps the replicas of one object. Reference: docs/reference/failover.md.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from federation.api import names
from federation.apimachinery import conditions
from federation.planning.changehold import Hold
from federation.planning.failover.clusterbudgets import budgeted_clusters, disruptions_of, find_blocked
from federation.planning.failover.departure import Evicting, evicting_of
from federation.planning.failover.halts import HaltOptions, HaltReason, next_halt, state_of, states_of

Object = Mapping[str, Any]


class Listed(Protocol):
    """Objects of one kind; an informer has those of the present."""

    def get(self, namespace: str, name: str) -> Object | None:
        """Return one of them."""
        ...

    def list(self) -> Sequence[Object]:
        """Return all of them."""
        ...


_BUDGETS_S = 1.0
"""How long an answer of the ClusterDisruptionBudgets is used; their windows end by time alone."""


class NothingListed:
    """A world without objects of the kind."""

    def get(self, namespace: str, name: str) -> Object | None:
        """Return nothing."""
        del namespace, name
        return None

    def list(self) -> Sequence[Object]:
        """Return nothing."""
        return ()


class EvictingClusters:
    """What is known of FederatedClusters, ClusterDisruptionBudgets and rollouts."""

    def __init__(self, clusters: Listed, budgets: Listed, options: HaltOptions) -> None:
        self._options = options
        self._clusters = clusters
        self._budgets = budgets
        self._evicting: dict[str, Evicting] = {}
        self._disruptions: dict[tuple[str, str], Mapping[str, datetime]] = {}
        """The clusters that waves of rollouts are changing, by rollout."""
        self._blocked: dict[str, tuple[datetime, Hold | None]] = {}
        """The last answer of the ClusterDisruptionBudgets about a drained cluster, with its time."""
        self._begun: set[str] = set()
        """The clusters whose drain the budgets have allowed."""
        self._halt: Hold | None = None
        self._is_stale = True

    def on_cluster(self, old: Object | None, new: Object | None) -> None:
        """Record the taints and the readiness of a cluster; this runs before objects are reconciled for the change."""
        name = (new if new is not None else old or {})["metadata"]["name"]
        self._blocked.clear()
        evicting = evicting_of(new) if new is not None else None
        if evicting is not None:
            self._evicting[name] = evicting
        else:
            self._evicting.pop(name, None)
        if evicting is None or not evicting.is_drained:
            self._begun.discard(name)
        if old is None and new is not None:
            self._restore(new, evicting)
        if state_of(old or {}) != state_of(new or {}):
            self._is_stale = True

    def _restore(self, cluster: Object, evicting: Evicting | None) -> None:
        """Learn from a cluster's condition what was decided before a restart."""
        stated = conditions.find((cluster.get("status") or {}).get("conditions"), names.EVICTION_ALLOWED) or {}
        if stated.get("status") == "False":
            # The end of the halt is not known, so it ends now.
            self._halt = self._halt or Hold(HaltReason.MAJORITY, "")
        elif stated and evicting is not None and evicting.is_drained and evicting.is_ready:
            self._begun.add(evicting.name)

    def cluster(self, name: str) -> Object | None:
        """Return a FederatedCluster, whether or not replicas leave it; None if it does not exist."""
        return self._clusters.get("", name)

    @property
    def by_name(self) -> Mapping[str, Evicting]:
        """The clusters that replicas leave."""
        return self._evicting

    def halt(self, now: datetime) -> Hold | None:
        """Return the halt that holds now."""
        if self._is_stale or self._halt is not None:
            states = states_of(self._clusters.list())
            self._halt = next_halt(self._halt, states, now, self._options)
            self._is_stale = False
        return self._halt

    def on_budget(self) -> None:
        """Ask the ClusterDisruptionBudgets again after a change of one."""
        self._blocked.clear()

    def on_rollout(self, old: Object | None, new: Object | None) -> bool:
        """Record the clusters that waves change; return whether they have changed."""
        metadata = (new if new is not None else old or {})["metadata"]
        key = (metadata.get("namespace") or "", metadata["name"])
        after = disruptions_of(new) if new is not None else {}
        before = self._disruptions.pop(key, {})
        if after:
            self._disruptions[key] = after
        if before != after:
            self._blocked.clear()
        return before != after

    def blocked(self, name: str, now: datetime) -> Hold | None:
        """Return which ClusterDisruptionBudget does not allow the drain of a cluster now, None if all of them do."""
        asked_at, known = self._blocked.get(name, (None, None))
        if asked_at is None or (now - asked_at).total_seconds() >= _BUDGETS_S:
            views = budgeted_clusters(self._clusters.list(), self._disruptions.values(), now, self._begun)
            known = find_blocked(name, views, self._budgets.list(), now)
            self._blocked[name] = (now, known)
            if known is None and self._evicting[name].is_ready:  # a lost cluster is allowed without a question
                self._begun.add(name)
        return known
