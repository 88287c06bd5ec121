"""Kueue's MultiKueue with our decisions: a dispatcher for the host's Kueue (docs/reference/kueue.md).

`rules/` reads Workloads and the queues of workers, `reconcile.py` decides and nominates, `controller.py` watches once
the host has Kueue's definitions.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.featureapi.surroundings import Surroundings


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.kueue.controller import KueueController

    return {"kueue": KueueController(surroundings.host, surroundings.engine)}


FEATURE = Feature("kueue", page="kueue.md", controllers=_controllers)
