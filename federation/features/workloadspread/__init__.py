"""WorkloadSpread: pods of a workload over ordered subsets of nodes or clusters (docs/reference/workloadspread.md).

On the host, `controller.py` and `reconcile.py` deliver WorkloadSpreads to the members of their workloads and merge
their status. The scheduler divides the replicas; it asks `rules/compiledspread.py` through `SpreadIndex`. Inside a
cluster, `incluster/` admits pods and counts them. `rules/` decides for both.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.admission.hostreader import HostReader
    from federation.api.v1alpha1.base import Kind
    from federation.apiserver.admission.plugins import AdmissionPlugin
    from federation.featureapi.surroundings import Surroundings
    from federation.scheduling.chain import Step


def _kinds() -> Sequence["type[Kind]"]:
    from federation.features.workloadspread.model import WorkloadSpread

    return (WorkloadSpread,)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.workloadspread.controller import WorkloadSpreadController
    from federation.features.workloadspread.incluster.spreadadmission import RULES
    from federation.features.workloadspread.rules.patchcheck import PatchCheck

    return {"workloadspreads": WorkloadSpreadController(surroundings.host, PatchCheck(RULES))}


def _admission(host: "HostReader") -> Sequence["AdmissionPlugin"]:
    from federation.features.workloadspread.admission import WorkloadSpreadAdmission
    from federation.features.workloadspread.incluster.spreadadmission import RULES

    return (WorkloadSpreadAdmission(host.find, host.list_objects, host.read_object, RULES),)


def _steps() -> "Sequence[Step]":
    from federation.features.workloadspread.spreadshape import STEPS

    return STEPS


FEATURE = Feature(
    "workloadspread",
    page="workloadspread.md",
    kinds=_kinds,
    controllers=_controllers,
    admission=_admission,
    steps=_steps,
)
