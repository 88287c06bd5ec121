"""Keep a new StatefulSet from being delivered before it has its constraints."""

from federation.api.resources import TOPOLOGY_SPREAD_PLANS
from federation.apimachinery.resources import Object
from federation.features.topologyspreadplan.rules.observation import awaits_constraints
from federation.runtime.host import Host


class ConstraintHold:
    """A `SourceHold` for the StatefulSets that a TopologySpreadPlan selects."""

    def __init__(self, host: Host) -> None:
        self._plans = host.informers.for_resource(TOPOLOGY_SPREAD_PLANS)
        self._clock = host.clock

    async def wait_synced(self) -> None:
        """Wait until the plans are cached."""
        await self._plans.wait_synced()

    def holds(self, source: Object) -> bool:
        """Return whether the object awaits constraints."""
        return awaits_constraints(source, self._plans.list(source["metadata"].get("namespace", "")), self._clock.now())
