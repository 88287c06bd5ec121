"""Rules for clusters: ClusterTaintPolicies and Remedies (docs/reference/clusterrules.md).

`rules/` decides which rule is active in which cluster and which taints follow. `reconcile.py` writes one cluster,
`notifying.py` sends webhooks, and `statusreport.py` publishes where each rule is active.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.admission.hostreader import HostReader
    from federation.api.v1alpha1.base import Kind
    from federation.apiserver.admission.plugins import AdmissionPlugin
    from federation.featureapi.surroundings import Surroundings
    from federation.scheduling.whatif.forecasts import Forecasting


def _kinds() -> Sequence["type[Kind]"]:
    from federation.features.clusterrules.model import ClusterTaintPolicy, Remedy

    return (ClusterTaintPolicy, Remedy)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.features.clusterrules.controller import ClusterRuleController

    return {"clusterrules": ClusterRuleController(surroundings.host, surroundings.gate_transport)}


def _admission(host: "HostReader") -> Sequence["AdmissionPlugin"]:
    del host
    from federation.features.clusterrules.admission import ClusterRuleAdmission

    return (ClusterRuleAdmission(),)


def _forecasts() -> Sequence["Forecasting"]:
    from federation.features.clusterrules.rules.forecast import forecast_rules

    return (forecast_rules,)


FEATURE = Feature(
    "clusterrules",
    page="clusterrules.md",
    kinds=_kinds,
    controllers=_controllers,
    admission=_admission,
    forecasts=_forecasts,
)
