"""CronFederatedHPA: replicas of workloads, and limits of autoscalers, at set times (docs/reference/autoscaling.md).

`rules.py` decides which rules are due, `controller.py` watches, `reconcile.py` acts, `admission.py` checks.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.api.resources import CRON_AUTOSCALERS
from federation.featureapi.feature import Feature, Loop, Rights

if TYPE_CHECKING:
    from federation.admission.hostreader import HostReader
    from federation.api.v1alpha1.base import Kind
    from federation.apiserver.admission.plugins import AdmissionPlugin
    from federation.featureapi.surroundings import Surroundings


def _kinds() -> Sequence["type[Kind]"]:
    from federation.features.cronfederatedhpa.model import CronFederatedHPA

    return (CronFederatedHPA,)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.cronfederatedhpa.controller import CronAutoscalerController

    return {"cronautoscaler": CronAutoscalerController(surroundings.host)}


def _admission(host: "HostReader") -> Sequence["AdmissionPlugin"]:
    from federation.admission.authors import AuthorAdmission
    from federation.features.cronfederatedhpa.admission import CronAutoscalerAdmission

    return (AuthorAdmission(CronAutoscalerAdmission(host.find)),)


FEATURE = Feature(
    "cronfederatedhpa",
    page="autoscaling.md",
    kinds=_kinds,
    rights=Rights(written=(CRON_AUTOSCALERS,)),  # who scales at set times can do what a HorizontalPodAutoscaler can
    controllers=_controllers,
    admission=_admission,
)
