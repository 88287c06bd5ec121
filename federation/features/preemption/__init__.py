"""Preemption across clusters: replicas give way to workloads of higher priority (docs/reference/preemption.md).

One round per interval: `memberview.py` reads the caches of members, `rules/` chooses, `reconcile.py` writes how many
replicas a workload keeps (`scheduling/yields.py`), and the scheduler moves the others. `reports.py` emits Events.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.featureapi.surroundings import Surroundings


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.preemption.controller import PreemptionController
    from federation.features.preemption.rules.victims import to_interval

    interval_s = to_interval(surroundings.preemption_interval_s)
    controller = PreemptionController(
        surroundings.host, surroundings.collectors, surroundings.journal, interval_s=interval_s
    )
    return {"preemption": controller}


FEATURE = Feature("preemption", page="preemption.md", controllers=_controllers)
