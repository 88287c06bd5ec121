"""New pod templates in waves of clusters, with gates: FederatedRollout (docs/reference/rollout.md).

`controller.py` watches, `reconcile.py` acts, `clusterobservation.py` reads the caches of members, `httpgate.py` and
`metricsgate.py` send the requests of gates, `screens.py` shows rollouts in the web UI, and `rules/` decides. The rest
of the control plane sees two annotations of a federated object: the rules that a policy gives (`planning/waves`), and
the approved revisions (`planning/steps/waveapproval.py`), which the delivery obeys.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature, Loop

if TYPE_CHECKING:
    from federation.api.v1alpha1.base import Kind
    from federation.featureapi.surroundings import Surroundings
    from federation.web.ui.screen import Screen


def _kinds() -> Sequence["type[Kind]"]:
    from federation.features.waves.model import FederatedRollout

    return (FederatedRollout,)


def _controllers(surroundings: "Surroundings") -> Mapping[str, Loop]:
    from federation.admission.rolloutgates import compile_gate
    from federation.features.waves.controller import RolloutController
    from federation.features.waves.metricsgate import MetricsGate
    from federation.features.waves.policies.controller import PolicyChangeController

    host = surroundings.host
    metrics = MetricsGate(surroundings.metrics_transport, surroundings.metric_sources, host.clock)
    return {
        "rollout": RolloutController(host, compile_gate, surroundings.gate_transport, metrics),
        "policychange": PolicyChangeController(host, surroundings.policy_usage, metrics, compile_gate),
    }


def _screens() -> Sequence["Screen"]:
    from federation.features.waves.screens import SCREENS

    return SCREENS


FEATURE = Feature("waves", page="rollout.md", kinds=_kinds, controllers=_controllers, screens=_screens)
