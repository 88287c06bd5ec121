"""UnitedDeployments → a workload per subset (docs/reference/uniteddeployment.md).

It runs inside a cluster (`unitedservice.py`) and on the host. `controller.py` watches and maps keys, `reconcile.py`
acts, `children.py` reads caches, `subsetwriter.py` writes. Pods are in the cluster (`localpods.py`) or in members
(`memberpods.py`). `rules/` decides.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.admission.hostreader import HostReader
    from federation.api.v1alpha1.base import Kind
    from federation.apiserver.admission.plugins import AdmissionPlugin
    from federation.featureapi.surroundings import Surroundings


def _kinds() -> Sequence["type[Kind]"]:
    from federation.features.uniteddeployment.model import UnitedDeployment

    return (UnitedDeployment,)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.apiserver.semantics.validation.podpatches import patch_pod
    from federation.features.uniteddeployment.controller import UnitedDeploymentController
    from federation.features.uniteddeployment.memberpods import MemberPods

    host = surroundings.host
    controller = UnitedDeploymentController(
        host.client, host.informers, MemberPods(host), recorder=host.recorder, patch_pod=patch_pod, clock=host.clock
    )
    return {"uniteddeployment": controller}


def _admission(host: "HostReader") -> Sequence["AdmissionPlugin"]:
    from federation.admission.authors import AuthorAdmission
    from federation.features.uniteddeployment.admission import UnitedDeploymentAdmission

    return (AuthorAdmission(UnitedDeploymentAdmission(host.list_objects, host.review)),)


FEATURE = Feature(
    "uniteddeployment", page="uniteddeployment.md", kinds=_kinds, controllers=_controllers, admission=_admission
)
