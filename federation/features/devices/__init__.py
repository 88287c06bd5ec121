"""Devices of pods: what the ResourceClaims of an object ask for (docs/reference/devices.md).

`reconcile.py` writes it into an annotation of the federated object, `planning/clusters/deviceclaims.py` has its form,
and the scheduler counts it (`scheduling/framework/devicerooms.py`). The first claim federates the kinds of claims.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.featureapi.surroundings import Surroundings


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.devices.controller import DeviceClaimController

    return {"deviceclaims": DeviceClaimController(surroundings.host)}


FEATURE = Feature("devices", page="devices.md", controllers=_controllers)
