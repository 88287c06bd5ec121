"""Shapes of a unit about clusters that it leaves, and to which it returns. `movecauses.py` and other steps write them.

Part of the public plugin API.
"""

from collections.abc import Mapping

from federation.scheduling.framework.shapekeys import ShapeKey
from federation.scheduling.framework.types import Taint

HOMES: ShapeKey[frozenset[str]] = ShapeKey("homes", frozenset())
"""Clusters that the unit left when they were lost, and to which it returns now."""
CHOOSES_ANEW = ShapeKey("chooses_anew", default=False)
"""Whether scores may move what runs."""
ENDED_TOLERATIONS: ShapeKey[Mapping[str, Taint]] = ShapeKey("ended_tolerations", {})
"""By cluster, a NoExecute taint that was tolerated for a time that is over."""
AVOIDED: ShapeKey[Mapping[str, str]] = ShapeKey("avoided", {})
"""Clusters that the unit leaves or has left because it is unhealthy there or they left its project, and why."""
