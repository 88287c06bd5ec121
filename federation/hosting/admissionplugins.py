"""All admission plugins of the host, over a client that reads it: an embedded API server or another one."""

from collections.abc import Sequence
from itertools import chain

from federation.admission.authors import AuthorAdmission
from federation.admission.autoscalers import AutoscalerAdmission
from federation.admission.changefreezes import ChangeFreezeAdmission
from federation.admission.dividednumbers import DividedNumbersAdmission
from federation.admission.federatedobjects import FederatedObjectAdmission, FindResource
from federation.admission.hostreader import HostReader
from federation.admission.placementholds import PlacementHoldAdmission
from federation.admission.policyselectors import PolicyAdmission
from federation.admission.schedulingprofiles import SchedulingProfileAdmission
from federation.admission.suspensions import SuspensionAdmission
from federation.apimachinery.clock import Clock
from federation.apimachinery.effect import EffectOf
from federation.apimachinery.publicaddresses import Network
from federation.apiserver.admission.plugins import AdmissionPlugin
from federation.client.client import Client
from federation.features.catalogue import FEATURES
from federation.planning.waves.metricsources import NO_SOURCES, Sources


def admission_plugins(
    client: Client,
    find: FindResource,
    clock: Clock,
    gate_networks: Sequence[Network] = (),
    effect_of: EffectOf | None = None,
    metric_sources: Sources = NO_SOURCES,
    *,
    acts_as_users: bool = True,
) -> list[AdmissionPlugin]:
    """Return the admission of the kinds that the control plane writes, of policies, and of what users steer.

    `gate_networks` are those that gates of rollouts may reach beside global unicast addresses, `metric_sources` those
    that their objectives may name. `effect_of` is given for a host that keeps configurations as data; `acts_as_users`
    as in `HostReader`.
    """
    host = HostReader(client, find, clock, acts_as_users)
    return [
        AuthorAdmission(FederatedObjectAdmission(find)),
        ChangeFreezeAdmission(),
        PlacementHoldAdmission(clock),
        SchedulingProfileAdmission(host.list_objects),
        SuspensionAdmission(find),
        AuthorAdmission(PolicyAdmission(find, host.list_objects, gate_networks, effect_of, metric_sources)),
        DividedNumbersAdmission(host.list_objects, AutoscalerAdmission(host.list_objects)),
        *chain.from_iterable(feature.admission(host) for feature in FEATURES),
    ]
