"""What can help a unit that could not be placed: which changes of which clusters may turn its decision around.

Where a filter rejected it, the changes that this filter says it awaits (`Awaiting`); everywhere else, and for whatever
failed behind the filters, any change; a cluster that joins or leaves always. Too much hope costs a decision in vain,
too little would lose one, so what is not known is hoped for. Pure: the schedule controller keeps and asks the hopes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from federation.scheduling.engine import Decision
from federation.scheduling.framework.runner import Framework
from federation.scheduling.framework.types import Change


@dataclass(frozen=True, slots=True)
class Hope:
    """Changes that can help, by cluster and for all `other` ones; `at` is when time alone can, None for never."""

    by_cluster: Mapping[str, Change] = field(default_factory=dict)
    other: Change = Change.NOTHING
    at: datetime | None = None

    def is_helped_by(self, cluster: str, change: Change) -> bool:
        """Say whether this change of the cluster may turn the decision around."""
        return bool(change & self.by_cluster.get(cluster, self.other))

    def key(self) -> tuple[frozenset[tuple[str, Change]], Change]:
        """Return what is equal for all units that the same changes of clusters can help."""
        return frozenset(self.by_cluster.items()), self.other


NO_CLUSTER_HELPS = Hope()
"""It waits for something else: a policy, a profile, a plugin that answers."""


def hope_of(decision: Decision, framework: Framework, now: datetime) -> Hope:
    """Return what can help the unit of an unsuccessful decision."""
    rejected = decision.filtered.rejected if decision.filtered is not None else {}
    awaited = {
        name: Change.MEMBERSHIP | framework.awaits(status.plugin) for name, status in rejected.items() if status.plugin
    }
    migration = decision.unit.custom_migration
    closed = migration.unavailable_until.values() if migration is not None else ()
    return Hope(awaited, Change.ANY, min((until for until in closed if until > now), default=None))
