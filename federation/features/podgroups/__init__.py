"""Groups of bare Pods start together in one cluster, or none of them is in any member (docs/batch.md).

`reconcile.py` chooses the leader of each group and writes the records of `planning/podgroups.py`; the scheduler obeys
them (`scheduling/podgroups.py`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.featureapi.surroundings import Surroundings


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.podgroups.controller import PodGroupController

    return {"podgroups": PodGroupController(surroundings.host)}


FEATURE = Feature("podgroups", page="podgroups.md", controllers=_controllers)
