"""The arguments of a feature's controllers: the host, and facts that only the composition root has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from federation.apimachinery.connection import Connection
from federation.apimachinery.execplugin import ExecPlugin
from federation.apimachinery.resources import Object
from federation.apimachinery.webhookclient import WebhookResponse
from federation.client.execplugin import ExecCredential
from federation.journal.decisions import Journal
from federation.planning.clusters.accessproviders import Providers
from federation.planning.clusters.clusterresources import Collectors
from federation.planning.waves.metricsources import Sources
from federation.runtime.host import Host
from federation.scheduling.engine import Engine
from federation.scheduling.policyusage import PolicyUsage


class GateTransport(Protocol):
    """The network: a `WebhookClient`, or a double in tests."""

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        """Return the response, or the reason why there is none; never raises."""
        ...

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        """Return the response, or the reason why there is none; never raises."""
        ...


class RunProgram(Protocol):
    """Runs a credential program: `run_plugin`, or a double in tests."""

    async def __call__(
        self, plugin: ExecPlugin, connection: Connection, config: Object | None = None, *, timeout_s: float
    ) -> ExecCredential:
        """Return its credentials for a server; ConfigurationError says why there are none."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One control plane, as the controllers of features see it."""

    host: Host
    policy_usage: PolicyUsage
    """The policies that apply to each object."""
    collectors: Collectors
    """The capacity of members, node by node."""
    journal: Journal
    engine: Engine
    """The scheduler."""
    gate_transport: GateTransport
    """Sends requests to addresses that users choose, such as those of gates of rollouts and of remedies."""
    metrics_transport: GateTransport
    """Sends queries to the sources of metrics, whose addresses the administrator chooses."""
    metric_sources: Sources
    cluster_providers: Providers
    """The programs that give credentials for clusters of ClusterProfiles, by name."""
    run_program: RunProgram
    toleration_s: float
    """Time after which an unreachable cluster counts as lost."""
    has_existing_host: bool
    """Whether the host is an API server that is not embedded, with a controller manager of its own."""
    preemption_interval_s: float
    """Time between two rounds of preemption; 0 turns it off."""
