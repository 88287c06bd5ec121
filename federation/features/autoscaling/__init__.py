"""HorizontalPodAutoscalers on the host (docs/reference/autoscaling.md).

`memberscales.py` and `custommetrics.py` are their targets, whose pods run in members. The loop that scales is in
`controllers/horizontalautoscaler`: simulated members have it, too. `controller.py` and `reconcile.py` mark autoscalers
that do not act. `rules/` decides which ones act, and what the marks say.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from federation.api.names import AUTOSCALER_MANAGER
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS
from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.featureapi.surroundings import Surroundings


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.controllers.horizontalautoscaler.controller import HorizontalAutoscalerController
    from federation.features.autoscaling.controller import AutoscalerController
    from federation.features.autoscaling.memberscales import MemberScales

    host = surroundings.host
    scales = MemberScales(host, acts_by_default=not surroundings.has_existing_host)
    scalers = host.informers.for_resource(HORIZONTAL_POD_AUTOSCALERS)
    return {
        "autoscalers": AutoscalerController(host, acts=scales.is_responsible, usage=surroundings.policy_usage),
        "horizontalautoscaler": HorizontalAutoscalerController(
            host.client, scalers, scales, clock=host.clock, manager=AUTOSCALER_MANAGER
        ),
    }


FEATURE = Feature("autoscaling", page="autoscaling.md", controllers=_controllers)
