"""Whether the ClusterDisruptionBudgets allow that a cluster is drained or changed by a wave now. Pure.

Drains and waves of several teams ask the same budgets, so that they do not add up. A cluster counts as unavailable
while it is not ready, has the drain taint, or a wave of a rollout is changing it. Disruptions that have begun go
first, then earlier ones; a cluster that is not ready anyway makes nothing worse. A malformed budget allows nothing: a
mistake in it must not lift the limit.

A wave counts for `WAVE_MAX`, then no more: users choose its timeout and pause it without an end, and the budget is
everybody's.

Decision: docs/decisions/0266-what-is-an-account.md
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from federation.apimachinery.clock import parse_rfc3339, to_rfc3339
from federation.apimachinery.selectors import EVERYTHING, Selector, SelectorError, compile_label_selector
from federation.planning.accounts.usage import Limit, Scope, Usage
from federation.planning.changehold import Hold
from federation.planning.failover.departure import evicting_of
from federation.planning.failover.halts import state_of
from federation.planning.windows import MALFORMED, is_open, next_opening

_MALFORMED = (SelectorError, *MALFORMED)
WAVE_MAX = timedelta(hours=1)
"""For how long a wave makes a cluster unavailable to others."""


@dataclass(frozen=True, slots=True)
class BudgetedCluster:
    """The part of a cluster that budgets need: labels, readiness, and since when drains and waves disrupt it."""

    name: str
    labels: Mapping[str, str]
    is_ready: bool
    drained_at: datetime | None = None
    changed_at: datetime | None = None
    """Since when waves change it, None while none does."""
    has_begun: bool = False
    """Whether its drain was allowed. It then goes before a drain that seems to be as early or earlier: the time of a
    taint is that of a client's clock, in whole seconds."""

    @property
    def is_unavailable(self) -> bool:
        """Whether it counts against a budget."""
        return not self.is_ready or self.drained_at is not None or self.changed_at is not None


def to_budgeted(cluster: Mapping[str, Any]) -> BudgetedCluster | None:
    """Return the view of a FederatedCluster, None for one that has not joined or is leaving."""
    state = state_of(cluster)
    if state is None:
        return None
    evicting = evicting_of(cluster)
    drained_at = evicting.since if evicting is not None and evicting.is_drained else None
    return BudgetedCluster(state.name, cluster["metadata"].get("labels") or {}, state.is_ready, drained_at)


def disruptions_of(rollout: Mapping[str, Any]) -> dict[str, datetime]:
    """Return since when a FederatedRollout disrupts clusters, by cluster."""
    entries = (rollout.get("status") or {}).get("clusters") or ()
    times = ((str(entry.get("name")), parse_rfc3339(entry.get("disruptedSince"))) for entry in entries)
    return {name: since for name, since in times if since is not None}


def budgeted_clusters(
    clusters: Iterable[Mapping[str, Any]],
    disruptions: Iterable[Mapping[str, datetime]],
    now: datetime,
    begun: Collection[str] = (),
) -> list[BudgetedCluster]:
    """Return the views of FederatedClusters.

    `disruptions` are those of the rollouts, `begun` are the clusters whose drain was allowed.
    """
    changed_at: dict[str, datetime] = {}
    for found in disruptions:
        for name, since in found.items():
            if now < since + WAVE_MAX:
                changed_at[name] = min(since, changed_at.get(name, since))
    views = (view for cluster in clusters if (view := to_budgeted(cluster)) is not None)
    return [replace(view, changed_at=changed_at.get(view.name), has_begun=view.name in begun) for view in views]


class DisruptionBudgets:
    """What is left of the budgets at one moment, and what one decision takes from them.

    Each budget is a scope, and each unavailable cluster takes one of every budget that selects it. With `drained` they
    are asked about the drain of this cluster: then those count that come before it. `frozen` are the clusters that get
    no new template now, whatever the budgets say.
    """

    def __init__(
        self,
        clusters: Iterable[BudgetedCluster],
        budgets: Iterable[Mapping[str, Any]],
        now: datetime,
        frozen: Mapping[str, Hold] | None = None,
        *,
        drained: str = "",
    ) -> None:
        self.frozen = frozen or {}
        self._clusters = {cluster.name: cluster for cluster in clusters}
        self._budgets = [_read(budget, self._clusters, now) for budget in sorted(budgets, key=_name)]
        self._usage = Usage({budget.name: Scope(budget.name, {_CLUSTERS: budget.limit}) for budget in self._budgets})
        self._taken: set[str] = set()
        asking = self._clusters.get(drained)
        for each in self._clusters.values():
            if each.is_unavailable if asking is None else _comes_first(each, asking):
                self.take(each.name)
        ends = (each.changed_at + WAVE_MAX for each in self._clusters.values() if each.changed_at is not None)
        self._first_end = min(ends, default=None)
        """When the first wave no longer counts."""

    def take(self, name: str) -> None:
        """Count a cluster as unavailable."""
        if name not in self._taken:
            self._taken.add(name)
            self._count(name, 1)

    def find_blocked(self, name: str) -> Hold | None:
        """Return the first budget, by name, that does not allow to disrupt this cluster now."""
        cluster = self._clusters.get(name)
        if cluster is None or not cluster.is_ready:
            return None
        is_taken = name in self._taken
        if is_taken:
            self._count(name, -1)
        blocked = next(filter(None, (self._judge(budget) for budget in self._budgets if name in budget.selected)), None)
        if is_taken:
            self._count(name, 1)
        return blocked

    def _count(self, name: str, sign: int) -> None:
        for budget in self._budgets:
            if name in budget.selected:
                self._usage.add(budget.name, _ONE, sign)

    def _judge(self, budget: "_Budget") -> Hold | None:
        """Return why a budget allows no further cluster, None if it does. Tenants see it, so it names no cluster."""
        if budget.closed is not None:
            return budget.closed
        excess = self._usage.find_excess(budget.name, _ONE)
        if excess is None:
            return None
        text = f"{excess.others} of {len(budget.selected)} clusters are unavailable already"
        message = f"ClusterDisruptionBudget {budget.name} allows {excess.hard} unavailable clusters; {text}"
        return Hold(budget.name, message, self._first_end)


_CLUSTERS = "clusters"
_ONE = {_CLUSTERS: 1}


@dataclass(frozen=True, slots=True)
class _Budget:
    """A budget with the clusters that it selects; `closed` is set if it allows nothing, whatever the number."""

    name: str
    selected: Collection[str]
    limit: Limit
    closed: Hold | None


def _read(budget: Mapping[str, Any], clusters: Mapping[str, BudgetedCluster], now: datetime) -> _Budget:
    name, spec = _name(budget), budget.get("spec") or {}
    selected: Collection[str] = clusters.keys()
    try:
        selector = _selector(spec)
        selected = frozenset(each.name for each in clusters.values() if selector.matches(each.labels))
        closed = _closed(name, spec, now)
        return _Budget(name, selected, Limit(_resolve(spec.get("maxUnavailable"), len(selected))), closed)
    except _MALFORMED as error:
        closed = Hold(name, f"ClusterDisruptionBudget {name} is malformed: {error}")
        return _Budget(name, selected, Limit(None), closed)


def find_blocked(
    name: str, clusters: Iterable[BudgetedCluster], budgets: Iterable[Mapping[str, Any]], now: datetime
) -> Hold | None:
    """Return the first ClusterDisruptionBudget, by name, that does not allow to drain this cluster now.

    The cluster may have the drain taint already: then disruptions that have begun count, and earlier ones.
    """
    return DisruptionBudgets(clusters, budgets, now, drained=name).find_blocked(name)


def _name(budget: Mapping[str, Any]) -> str:
    return str(budget["metadata"]["name"])


def _closed(label: str, spec: Mapping[str, Any], now: datetime) -> Hold | None:
    """Return that none of the budget's windows is open, None if one is or if it has none."""
    windows = spec.get("windows") or ()
    if not windows or any(is_open(window, now) for window in windows):
        return None
    opens = min((at for window in windows if (at := next_opening(window, now)) is not None), default=None)
    text = f"its next window opens at {to_rfc3339(opens)}" if opens is not None else "it has no further window"
    return Hold(label, f"ClusterDisruptionBudget {label} allows no disruption now: {text}", opens)


def _selector(spec: Mapping[str, Any]) -> Selector:
    given = spec.get("clusterSelector")
    return compile_label_selector(given) if given else EVERYTHING


def _comes_first(other: BudgetedCluster, cluster: BudgetedCluster) -> bool:
    """Return whether the other cluster counts as unavailable for this one."""
    if not other.is_ready:
        return True
    if cluster.drained_at is None:
        return other.is_unavailable
    # The time of a taint has whole seconds; of the same second, the wave goes first: it is under way already.
    if other.changed_at is not None and other.changed_at.replace(microsecond=0) <= cluster.drained_at:
        return True
    if other.drained_at is None:
        return False
    if other.has_begun is not cluster.has_begun:
        return other.has_begun
    return (other.drained_at, other.name) < (cluster.drained_at, cluster.name)


def _resolve(most: Any, total: int) -> int:
    if isinstance(most, str) and most.endswith("%"):
        return -(-int(most.removesuffix("%")) * total // 100)
    if isinstance(most, int) and not isinstance(most, bool) and most >= 0:
        return most
    raise ValueError(f"spec.maxUnavailable: {most!r} is neither a number nor a percentage")
