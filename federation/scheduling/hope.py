"""What can help a unit that could not be placed, or not all of it: which changes of clusters may turn that around.

Where a filter rejected it, the changes that this filter says it awaits (`Awaiting`); everywhere else, and for whatever
failed behind the filters, any change, or what a division that was short says (`Division.awaits`); a cluster that joins
or leaves always. Too much hope costs a decision in vain, too little would lose one, so what is not known is hoped for.
Pure: the schedule controller keeps and asks the hopes.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from federation.scheduling.engine import Decision
from federation.scheduling.framework.runner import Framework
from federation.scheduling.framework.types import Change


@dataclass(frozen=True, slots=True)
class Hope:
    """Clusters by the changes that can help there, `other` for all that are not named; `at`: when time alone can."""

    awaited: Mapping[Change, frozenset[str]] = field(default_factory=dict)
    other: Change = Change.NOTHING
    at: datetime | None = None

    def is_helped_by(self, cluster: str, change: Change) -> bool:
        """Say whether this change of the cluster may turn the decision around."""
        for awaited, clusters in self.awaited.items():
            if cluster in clusters:
                return bool(change & awaited)
        return bool(change & self.other)

    def key(self) -> Hashable:
        """Return what is equal for all units that the same changes of clusters can help."""
        return frozenset(self.awaited.items()), self.other


NO_CLUSTER_HELPS = Hope()
"""It waits for something else: a policy, a profile, a plugin that answers."""


def hope_of(decision: Decision, framework: Framework, now: datetime) -> Hope:
    """Return what can help the unit of a decision that was unsuccessful or left replicas without a place."""
    by_plugin: dict[str, list[str]] = {}
    for name, status in (decision.filtered.rejected if decision.filtered is not None else {}).items():
        by_plugin.setdefault(status.plugin, []).append(name)
    awaited: dict[Change, frozenset[str]] = {}
    for plugin, names in by_plugin.items():
        change = Change.MEMBERSHIP | framework.awaits(plugin)
        awaited[change] = awaited.get(change, frozenset()).union(names)
    migration = decision.unit.custom_migration
    closed = migration.unavailable_until.values() if migration is not None else ()
    division = decision.division if decision.is_success else None
    other = Change.ANY if division is None else Change.MEMBERSHIP | division.awaits
    return Hope(awaited, other, min((until for until in closed if until > now), default=None))
