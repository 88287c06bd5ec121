"""Select clusters and divide replicas, over all feasible clusters or group by group (`spec.clusterGroups`).

A `Choice` is what the engine selects and divides with. Without groups there is one, over all clusters; with groups
there is one for each tier (`framework/orderedgroups.py`), and the engine takes the first that places everything.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cycle import SchedulingCycle, ScoreResult, UnschedulableError
from federation.scheduling.framework.orderedgroups import (
    Members,
    Tier,
    held_in,
    merge_divisions,
    scores_of,
    share_of,
    stays,
)
from federation.scheduling.framework.runner import Framework
from federation.scheduling.framework.types import Cluster, Division, Exchange, SchedulingMode

Actual = Callable[[ClusterGroup], Sequence[Cluster]]
"""Returns the clusters as they are reported, without what recent decisions assume."""


class Choice(Protocol):
    """Selects clusters, and divides the unit's replicas over selected ones."""

    def select(self, cycle: SchedulingCycle) -> Exchange[ClusterGroup]:
        """Return the selected clusters; UnschedulableError when a plugin finds none."""
        ...

    def divide(self, cycle: SchedulingCycle, clusters: Sequence[Cluster]) -> Exchange[Division]:
        """Return the division of `cycle.unit.desired_replicas`; UnschedulableError when a plugin finds none."""
        ...

    def describe(self) -> str:
        """Return the groups that were used, for the reason of the decision; "" without groups."""
        ...


class AllClusters:
    """One selection and one division over all feasible clusters."""

    def __init__(self, framework: Framework, scored: ScoreResult) -> None:
        self._framework = framework
        self._scored = scored

    def select(self, cycle: SchedulingCycle) -> Exchange[ClusterGroup]:
        """Return the clusters that the select plugins select."""
        return self._framework.run_select(cycle, self._scored)

    def divide(self, cycle: SchedulingCycle, clusters: Sequence[Cluster]) -> Exchange[Division]:
        """Return the division over the clusters."""
        return self._framework.run_replicas(cycle, clusters)

    def describe(self) -> str:
        """Return "": there are no groups."""
        return ""


class TierChoice:
    """Selections and divisions group by group: what has no room in a group flows into the next."""

    def __init__(self, framework: Framework, scored: ScoreResult, tier: Tier, actual: Actual) -> None:
        self._framework = framework
        self._scored = scored
        self._tier = tier
        self._actual = actual
        self._used: list[str] = []

    def select(self, cycle: SchedulingCycle) -> Exchange[ClusterGroup]:
        """Return the clusters of the first group; of objects that are copied also of later ones, up to maxClusters."""
        cycle.selections.clear()
        self._used = []
        found = ClusterGroup.of(())
        refusal: UnschedulableError | None = None
        most = cycle.unit.max_clusters
        for members in self._tier:
            try:
                clusters = yield from self._select_in(cycle, members, len(found))
            except UnschedulableError as error:
                refusal = error
                continue
            if clusters:
                self._used.append(members.group.name)
                found = ClusterGroup.of([*found, *clusters]) if found else clusters
            if found and (cycle.unit.mode is SchedulingMode.DIVIDE or most is None or len(found) >= most):
                break
        if refusal is not None and not found:
            raise refusal
        return found

    def _select_in(self, cycle: SchedulingCycle, members: Members, used: int) -> Exchange[ClusterGroup]:
        """Return the selected clusters of one group; `used` is the number of clusters that earlier groups use."""
        unit = cycle.unit
        if unit.max_clusters is not None:
            cycle.unit = replace(unit, max_clusters=max(0, unit.max_clusters - used))
        try:
            return (yield from self._framework.run_select(cycle, scores_of(self._scored, members)))
        finally:
            cycle.unit = unit

    def divide(self, cycle: SchedulingCycle, clusters: Sequence[Cluster]) -> Exchange[Division]:
        """Return the division over the groups; `clusters` are not needed, because each group selects its own.

        If a group cannot keep all that it has, the others are asked for the rest.
        """
        del clusters
        unit = cycle.unit
        held = [held_in(unit, self._names(members)) if stays(unit, members) else 0 for members in self._tier]
        division, fitting = yield from self._divide_keeping(cycle, held)
        kept = [min(count, had) for count, had in zip(fitting, held, strict=True)]
        if kept != held and sum(fitting) < (unit.desired_replicas or 0):
            division, _ = yield from self._divide_keeping(cycle, kept)
        return division

    def _divide_keeping(self, cycle: SchedulingCycle, kept: Sequence[int]) -> Exchange[tuple[Division, Sequence[int]]]:
        """Return the division that gives each group what it keeps, the first ones the rest, and what fits in each."""
        cycle.selections.clear()
        parts, table = list[tuple[str, Division]](), list[dict[str, Any]]()
        rest, used, fitting = cycle.unit.desired_replicas or 0, 0, [0] * len(self._tier)
        for at, members in enumerate(self._tier):
            asked, placed = share_of(rest, kept[at], sum(kept[at + 1 :])), 0
            if asked > 0:
                is_last = at == len(self._tier) - 1
                division = yield from self._divide_in(cycle, members, asked, used, is_last=is_last)
                if division is not None:
                    parts.append((members.group.name, division))
                    placed = sum(division.replicas.values())
                    fitting[at] = placed - _waiting(division)
                    used += sum(1 for count in division.replicas.values() if count)
            rest -= min(placed, asked)
            table.append({"name": members.group.name, "asked": asked, "placed": placed})
        self._used = [entry["name"] for entry in table if entry["placed"]]
        whole = merge_divisions(parts) if parts else Division({}, because="the limits of its cluster groups")
        return replace(whole, explanation={"groups": table, **whole.explanation}), fitting

    def _divide_in(
        self, cycle: SchedulingCycle, members: Members, asked: int, used: int, *, is_last: bool
    ) -> Exchange[Division | None]:
        """Return the division within one group, None without any place.

        Before the last group nothing is placed beyond what fits: it flows into the next one instead.
        """
        unit = cycle.unit
        try:
            clusters = yield from self._select_in(cycle, members, used)
            if not clusters:
                return None
            offered = self._actual(clusters)
            cycle.unit = replace(unit, desired_replicas=asked)
            division = yield from self._framework.run_replicas(cycle, offered)
            waiting = _waiting(division)
            if not waiting or is_last:
                return division
            fitting = sum(division.replicas.values()) - waiting
            if fitting <= 0:
                return None
            cycle.unit = replace(unit, desired_replicas=fitting)
            return (yield from self._framework.run_replicas(cycle, offered))
        except UnschedulableError:
            if is_last:
                raise
            return None
        finally:
            cycle.unit = unit

    def _names(self, members: Members) -> list[str]:
        names = self._scored.totals.names
        return [names[at] for at in members.positions]

    def describe(self) -> str:
        """Return the names of the groups that were used."""
        if not self._used:
            return ""
        return f"in group{'s' * (len(self._used) > 1)} {' and '.join(self._used)}"


def _waiting(division: Division) -> int:
    """Return how many replicas of a division are placed beyond what fits."""
    return sum((division.explanation.get("waiting") or {}).values())
