"""Groups of bare Pods start together in one cluster, or none of them is in any member (docs/batch.md).

`reconcile.py` chooses the leader of each group and writes the records of `planning/podgroups.py`; the scheduler obeys
them (`scheduling/podgroups.py`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.featureapi.surroundings import Surroundings
    from federation.scheduling.chain import Step


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.podgroups.controller import PodGroupController

    return {"podgroups": PodGroupController(surroundings.host)}


def _steps() -> Sequence["Step"]:
    from federation.features.podgroups.groupgate import STEPS

    return STEPS


FEATURE = Feature("podgroups", page="podgroups.md", controllers=_controllers, steps=_steps)
