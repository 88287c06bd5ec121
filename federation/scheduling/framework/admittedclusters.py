"""The step after the filters for objects of a JobQueue: only the clusters that their admission names stay feasible.

This is no plugin, because no profile may switch it off: room in other clusters is kept for other objects
(docs/reference/queues.md).
"""

from federation.scheduling.framework.cycle import FilterResult
from federation.scheduling.framework.types import Code, SchedulingUnit, Status

STEP = "JobQueue"
"""The name of this step in explanations and rejections."""
_REJECTION = Status(Code.UNSCHEDULABLE, ("cluster(s) were not offered by its JobQueue",), STEP)


def within_admitted(unit: SchedulingUnit, filtered: FilterResult) -> FilterResult:
    """Return the filter result without clusters that the unit was not admitted to."""
    if unit.admitted_to is None:
        return filtered
    return filtered.without({name: _REJECTION for name in filtered.feasible.names if name not in unit.admitted_to})
