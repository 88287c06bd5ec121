"""ClusterProfiles: members as an inventory for other tools, and clusters of other inventories as members.

`rules.py` makes the profile of a member, `controller.py` watches, `reconcile.py` writes. `joinrules.py` decides whether
the cluster of another manager's profile joins, `joincontroller.py` watches, `joinreconcile.py` acts.

Reference: docs/reference/clusterprofiles.md
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.api.v1alpha1.base import Kind
    from federation.featureapi.surroundings import Surroundings


def _kinds() -> Sequence["type[Kind]"]:
    from federation.features.clusterprofiles.joinpolicy import ClusterJoinPolicy
    from federation.features.clusterprofiles.model import ClusterProfile

    return (ClusterJoinPolicy, ClusterProfile)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.clusterprofiles.controller import ClusterProfileController
    from federation.features.clusterprofiles.joincontroller import ClusterJoinController

    joining = ClusterJoinController(surroundings.host, surroundings.cluster_providers, surroundings.run_program)
    return {"clusterprofile": ClusterProfileController(surroundings.host), "clusterjoin": joining}


FEATURE = Feature("clusterprofiles", page="clusterprofiles.md", kinds=_kinds, controllers=_controllers)
