"""KubeFed's federated objects → native objects with policies, and their status (docs/reference/kubefed.md).

`controller.py` watches, `reconcile.py` acts, `rules.py` makes the status, `admission.py` lets nobody do more than with
the native kinds. `planning/kubefed` decides which objects stand for a federated one: `fedctl convert` prints them, too.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.api.kubefedkinds import FEDERATED_KINDS, FEDERATED_SECRETS, REPLICA_PREFERENCES
from federation.featureapi.feature import Feature, Loop, Rights

if TYPE_CHECKING:
    from federation.admission.hostreader import HostReader
    from federation.api.v1alpha1.base import Kind
    from federation.apiserver.admission.plugins import AdmissionPlugin
    from federation.featureapi.surroundings import Surroundings

_IN_NAMESPACES = [each.resource for each in FEDERATED_KINDS.values() if each.resource.namespaced]
"""Their authors need the same rights on the native kinds (`admission.py`)."""


def _kinds() -> Sequence["type[Kind]"]:
    from federation.features.kubefed.model.federatedresources import FEDERATED_RESOURCES
    from federation.features.kubefed.model.replicaschedulingpreference import ReplicaSchedulingPreference

    return (*FEDERATED_RESOURCES, ReplicaSchedulingPreference)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.kubefed.controller import KubeFedController

    return {"kubefed": KubeFedController(surroundings.host)}


def _admission(host: "HostReader") -> Sequence["AdmissionPlugin"]:
    from federation.admission.authors import AuthorAdmission
    from federation.features.kubefed.admission import KubeFedAdmission

    return (AuthorAdmission(KubeFedAdmission(host.client)),)


FEATURE = Feature(
    "kubefed",
    page="kubefed.md",
    kinds=_kinds,
    rights=Rights(
        written=[*(each for each in _IN_NAMESPACES if each != FEDERATED_SECRETS), REPLICA_PREFERENCES],
        written_unread=(FEDERATED_SECRETS,),
    ),
    controllers=_controllers,
    admission=_admission,
)
