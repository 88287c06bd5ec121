"""Volumes that move: a workload leaves a cluster with copies of its volumes (docs/reference/volumemoves.md).

`movesteps.py` keeps the workload where it is until its volumes are copied, and lets it go in the write that records
it. `reconcile.py` does what happens meanwhile: stop the workload, copy, verify, and keep the old volumes until
somebody agrees to their deletion. `rules/` decides, `snapshots.py` and `volsync.py` know how data gets to another
cluster. The record is an annotation of the federated object.

Decision: docs/decisions/0285-volumes-move-before-their-workload.md
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from federation.featureapi.surroundings import Surroundings
    from federation.scheduling.chain import Step


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.volumemoves.controller import VolumeMoveController

    return {"volumemove": VolumeMoveController(surroundings.host, surroundings.gate_transport)}


def _steps() -> "Sequence[Step]":
    from federation.features.volumemoves.movesteps import MoveGoesOn, VolumesCopied

    return (MoveGoesOn(), VolumesCopied())


FEATURE = Feature("volumemoves", page="volumemoves.md", controllers=_controllers, steps=_steps)
