"""Filter: a cluster must serve the kind of the object that is to be placed there.

What a member serves comes from the discovery that the cluster controller repeats (`status.apiResourceTypes`). Group,
version and kind must match exactly: a member that serves only another version cannot take the manifest as it is.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Awaiting, FilterPlugin, Shaped
from federation.scheduling.framework.types import SUCCESS, Change, Cluster, SchedulingUnit, Status, unschedulable

_NOT_SERVED = unschedulable("cluster(s) didn't support this APIVersion")


class APIResources(FilterPlugin, Shaped, Awaiting):
    """Lets clusters pass that serve the unit's kind."""

    NAME: ClassVar[str] = "APIResources"
    AWAITS: ClassVar[Change] = Change.API_TYPES

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return why the cluster is left out when it does not serve the kind."""
        return SUCCESS if unit.gvk in cluster.api_types else _NOT_SERVED

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on the kind only."""
        return unit.gvk
