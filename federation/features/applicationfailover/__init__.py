"""Failover of applications: a workload leaves a cluster in which it is unhealthy (docs/reference/failover.md).

`reconcile.py` reads the health of the copies from the caches of members, `rules/` judges it and decides what leaves.
`handoverpermit.py` gives the state of each copy that leaves a cluster, for any cause, to the copies that begin then.
The result is a record in an annotation (`planning/failover/application.py`): the scheduler avoids the clusters in it,
and the delivery keeps or removes the old copies as it says.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.featureapi.surroundings import Surroundings
    from federation.scheduling.chain import Step


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.admission.rolloutgates import compile_gate
    from federation.features.applicationfailover.controller import ApplicationFailoverController

    return {"applicationfailover": ApplicationFailoverController(surroundings.host, compile_gate)}


def _steps() -> "Sequence[Step]":
    from federation.features.applicationfailover.handoverpermit import StateHandedOver

    return (StateHandedOver(),)


FEATURE = Feature("applicationfailover", page="failover.md", controllers=_controllers, steps=_steps)
