"""The steps after the filters for objects of a JobQueue and of a project: only clusters that are theirs stay feasible.

They are no plugins, because no profile may switch them off: room in other clusters is kept for other objects
(docs/reference/queues.md), and a cluster that left a project is not the tenant's any more (docs/reference/projects.md).
"""

from collections.abc import Mapping

from federation.scheduling.framework.cycle import FilterResult
from federation.scheduling.framework.shapekeys import ShapeKey
from federation.scheduling.framework.types import Code, SchedulingUnit, Status

STEP, PROJECT_STEP = "JobQueue", "Project"
"""The names of these steps in explanations and rejections."""
_REJECTION = Status(Code.UNSCHEDULABLE, ("cluster(s) were not offered by its JobQueue",), STEP)
ADMITTED_TO: ShapeKey[frozenset[str] | None] = ShapeKey("admitted_to", None)
"""The clusters that a JobQueue offers the unit, None without one."""


def within_admitted(unit: SchedulingUnit, filtered: FilterResult) -> FilterResult:
    """Return the filter result without clusters that the unit was not admitted to."""
    admitted = ADMITTED_TO.of(unit)
    if admitted is None:
        return filtered
    return filtered.without({name: _REJECTION for name in filtered.feasible.names if name not in admitted})


def within_project(left: Mapping[str, str], filtered: FilterResult) -> FilterResult:
    """Return the filter result without the clusters that left the unit's project, by name with the reasons."""
    if not left:
        return filtered
    rejected = {name: left[name] for name in filtered.feasible.names if name in left}
    return filtered.without({name: Status(Code.UNSCHEDULABLE, (why,), PROJECT_STEP) for name, why in rejected.items()})
