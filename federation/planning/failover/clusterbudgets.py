"""Whether the ClusterDisruptionBudgets allow that a cluster is drained now, and if not, which one and until when. Pure.

Drains and waves of several teams ask the same budgets, so that they do not add up. A cluster counts as unavailable
while it is not ready or has the drain taint. Drains that began earlier go first; a cluster that is not ready anyway
makes nothing worse. A malformed budget allows nothing: a mistake in it must not lift the limit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import croniter  # type: ignore[import-untyped]  # it has no stubs of its own

from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.selectors import EVERYTHING, Selector, SelectorError, compile_label_selector
from federation.planning.failover.departure import evicting_of
from federation.planning.failover.halts import state_of


@dataclass(frozen=True, slots=True)
class Blocked:
    """Which budget does not allow a drain, and why; `until` is when its next window opens, if that is the reason."""

    budget: str
    message: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class BudgetedCluster:
    """What budgets need of a cluster: its labels, whether it is ready, and since when it is drained."""

    name: str
    labels: Mapping[str, str]
    is_ready: bool
    drained_at: datetime | None = None

    @property
    def is_unavailable(self) -> bool:
        """Whether it counts against a budget."""
        return not self.is_ready or self.drained_at is not None


def to_budgeted(cluster: Mapping[str, Any]) -> BudgetedCluster | None:
    """Return the view of a FederatedCluster, None for one that has not joined or is leaving."""
    state = state_of(cluster)
    if state is None:
        return None
    evicting = evicting_of(cluster)
    drained_at = evicting.since if evicting is not None and evicting.is_drained else None
    return BudgetedCluster(state.name, cluster["metadata"].get("labels") or {}, state.is_ready, drained_at)


def find_blocked(
    name: str, clusters: Sequence[BudgetedCluster], budgets: Iterable[Mapping[str, Any]], now: datetime
) -> Blocked | None:
    """Return the first ClusterDisruptionBudget, by name, that does not allow to drain this cluster now.

    The cluster may have the drain taint already: then drains that began earlier count, and later ones do not.
    """
    cluster = next((each for each in clusters if each.name == name), None)
    if cluster is None or not cluster.is_ready:
        return None
    for budget in sorted(budgets, key=lambda each: str(each["metadata"]["name"])):
        label = str(budget["metadata"]["name"])
        try:
            blocked = _judge(label, budget.get("spec") or {}, cluster, clusters, now)
        except (SelectorError, ValueError, TypeError, KeyError, OverflowError, ZoneInfoNotFoundError) as error:
            blocked = Blocked(label, f"ClusterDisruptionBudget {label} is malformed: {error}")
        if blocked is not None:
            return blocked
    return None


def _judge(
    label: str,
    spec: Mapping[str, Any],
    cluster: BudgetedCluster,
    clusters: Iterable[BudgetedCluster],
    now: datetime,
) -> Blocked | None:
    selector = _selector(spec)
    if not selector.matches(cluster.labels):
        return None
    selected = [each for each in clusters if selector.matches(each.labels)]
    windows = spec.get("windows") or ()
    if windows and not any(is_open(window, now) for window in windows):
        opens = min((at for window in windows if (at := next_opening(window, now)) is not None), default=None)
        text = f"its next window opens at {to_rfc3339(opens)}" if opens is not None else "it has no further window"
        return Blocked(label, f"ClusterDisruptionBudget {label} allows no drain now: {text}", opens)
    others = [each.name for each in selected if each.name != cluster.name and _comes_first(each, cluster)]
    most = _resolve(spec.get("maxUnavailable"), len(selected))
    if len(others) < most:
        return None
    text = f"{len(others)} of {len(selected)} clusters are unavailable already ({', '.join(sorted(others)[:5])})"
    return Blocked(label, f"ClusterDisruptionBudget {label} allows {most} unavailable clusters; {text or '-'}")


def is_open(window: Mapping[str, Any], now: datetime) -> bool:
    """Return whether the time is in the window; ValueError for a malformed one."""
    if window.get("start"):
        return from_rfc3339(str(window["start"])) <= now < from_rfc3339(str(window["end"]))
    # The library returns times before its start; a second later includes a window that opens now.
    opened: datetime = _times(window, now + timedelta(seconds=1)).get_prev(datetime)
    return now < opened + timedelta(seconds=parse_duration(str(window["duration"])))


def next_opening(window: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return when the window opens next, None for a single window that is over."""
    if window.get("start"):
        start = from_rfc3339(str(window["start"]))
        return start if start > now else None
    opens: datetime = _times(window, now).get_next(datetime)
    return opens


def _times(window: Mapping[str, Any], start: datetime) -> Any:
    text = str(window["schedule"])
    if len(text.split()) != len(_FIELDS):
        raise ValueError(f"{text!r} is not a schedule of {len(_FIELDS)} fields")
    return croniter(text, start.astimezone(ZoneInfo(str(window.get("timeZone") or "UTC"))))


_FIELDS = ("minute", "hour", "day of month", "month", "day of week")


def _selector(spec: Mapping[str, Any]) -> Selector:
    given = spec.get("clusterSelector")
    return compile_label_selector(given) if given else EVERYTHING


def _comes_first(other: BudgetedCluster, cluster: BudgetedCluster) -> bool:
    """Return whether the other cluster counts as unavailable for this one."""
    if not other.is_ready:
        return True
    if other.drained_at is None:
        return False
    if cluster.drained_at is None:
        return True
    return (other.drained_at, other.name) < (cluster.drained_at, cluster.name)


def _resolve(most: Any, total: int) -> int:
    if isinstance(most, str) and most.endswith("%"):
        return -(-int(most.removesuffix("%")) * total // 100)
    if isinstance(most, int) and not isinstance(most, bool) and most >= 0:
        return most
    raise ValueError(f"spec.maxUnavailable: {most!r} is neither a number nor a percentage")
