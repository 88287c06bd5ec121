"""ClusterProfiles: the members as an inventory that other tools read (docs/reference/clusterprofiles.md).

`rules.py` makes the profile of a cluster, `controller.py` watches, `reconcile.py` writes.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.api.v1alpha1.base import Kind
    from federation.featureapi.surroundings import Surroundings


def _kinds() -> Sequence["type[Kind]"]:
    from federation.features.clusterprofiles.model import ClusterProfile

    return (ClusterProfile,)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.clusterprofiles.controller import ClusterProfileController

    return {"clusterprofile": ClusterProfileController(surroundings.host)}


FEATURE = Feature("clusterprofiles", page="clusterprofiles.md", kinds=_kinds, controllers=_controllers)
