"""The volumes of earlier objects, as a world knows them. Pure.

The control plane lists the claims of the members (`controllers/schedule/claimwatch.py`). A plan and a replay read no
member. They have what the control plane recorded about an object that waits for its volumes.

Decision: docs/decisions/0262-halts-of-failover-have-a-controller.md
"""

from collections.abc import Mapping
from typing import Any, Protocol

from federation.api import names
from federation.planning.federatedobject.placements import Name, placement_of
from federation.planning.guard.earliervolumes import NO_VOLUMES, EarlierVolumes, find_volumes
from federation.planning.guard.record import held_move


class VolumeFinder(Protocol):
    """Finds the volumes of earlier objects of a name."""

    def find(self, key: Name, federated: Mapping[str, Any]) -> EarlierVolumes:
        """Return where they are; nothing for an object with a place, or without such volumes."""
        ...


class RecordedVolumes:
    """The volumes that the control plane found before, for objects that have had no place since."""

    def find(self, key: Name, federated: Mapping[str, Any]) -> EarlierVolumes:
        """Return where they are; nothing for an object with a place, or that waits for nothing."""
        del key
        held = None if placement_of(federated, names.GLOBAL_SCHEDULER) else held_move(federated)
        return NO_VOLUMES if held is None else find_volumes(federated, {}, recorded=held.clusters)
