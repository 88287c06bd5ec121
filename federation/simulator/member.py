"""One simulated member: a real API server with real credentials, and the controllers that run its workloads.

Where it keeps its objects and where it listens is decided by `memberprocess.py`, for a member in a process of its own,
and by `lightmember.py`, for many members in one process. Read `workloads.py` for the controllers.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import NODE_METRICS, PODS
from federation.apiserver.auth.serveridentity import SELF_ISSUED, ServerIdentity
from federation.apiserver.http.serving import Listen, serve
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.apiserver.server import APIServer, APIServerOptions
from federation.apiserver.store.interface import Store
from federation.apiserver.verbs.requestoptions import RegistryOptions
from federation.client.local import LocalClient
from federation.features.uniteddeployment.admission import UnitedDeploymentAdmission
from federation.features.uniteddeployment.unitedservice import UnitedDeploymentService
from federation.features.workloadspread.incluster.configurations import definitions
from federation.memberproxy.hostviews import metrics_kind
from federation.simulator.hostusers import admit_host_users
from federation.simulator.network import Network
from federation.simulator.nodemetrics import NodeMetricsReader
from federation.simulator.options import MemberOptions
from federation.simulator.podconnections import PodExec, PodLogs, PodPorts
from federation.simulator.podwebhooks import PodWebhooks
from federation.simulator.workloads import Workloads
from federation.simulator.workloadspreads import SERVICE, WorkloadSpreads

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
"""The namespaces of any new cluster; joining creates the federation's own."""


def server_options(
    options: MemberOptions, directory: Path, kubeconfig: Path, *, port: int = 0, tls: ServerIdentity = SELF_ISSUED
) -> APIServerOptions:
    """Return the options of a member's API server, which keeps its keys in the directory."""
    return APIServerOptions(
        directory,
        kubeconfig,
        name=options.name,
        port=port,
        tls=tls,
        # Without a limit on bytes: a simulated member is as large as the host allows.
        registry=RegistryOptions(system_namespaces=_NAMESPACES, namespace_bytes_max=0),
    )


class SimulatedMember:
    """A member cluster in this process."""

    def __init__(
        self,
        options: MemberOptions,
        store: Store,
        server: APIServerOptions,
        clock: Clock,
        *,
        network: Network,
        listen: Listen = serve,
    ) -> None:
        self._store = store
        self._server = APIServer(store, options=server, clock=clock, listen=listen)
        self._server.wrap(network.wrap)
        self._server.connect(PODS, "log", PodLogs(self._server.registry, clock))
        self._server.connect(PODS, "exec", PodExec(self._server.registry, clock))
        self._server.connect(PODS, "portforward", PodPorts(self._server.registry, clock))
        self._server.registry.kinds.replace(NODE_METRICS.group, NODE_METRICS.plural, [metrics_kind(NODE_METRICS)])
        self.client = LocalClient(self._server.registry, user_agent="simulated-member")
        """A client with all rights in the member."""
        own = LocalClient(self._server.registry, user_agent="metrics-server")
        self._server.read_from(NODE_METRICS, NodeMetricsReader(own, clock))
        self._server.add_other_services(PodWebhooks(own).answer)
        self._workloads = Workloads(self._server.registry, options, clock)
        self._trusts_federation = options.trusts_federation
        self._spreads: WorkloadSpreads | None = None
        self._uniteds: UnitedDeploymentService | None = None
        if options.has_workload_spreads:
            self._spreads = WorkloadSpreads(self._server.registry, clock, cluster=options.name)
            self._server.add_service(*SERVICE, self._spreads.answer)
            registry = self._server.registry
            registry.add_admission_plugin(UnitedDeploymentAdmission())
            client = LocalClient(registry, user_agent="uniteddeployment")
            self._uniteds = UnitedDeploymentService(client, patch_pod=patch_pod, clock=clock, cluster=options.name)

    async def prepare(self) -> None:
        """Create the objects that a new cluster has, and what the host's users may do."""
        await self._server.prepare(definitions() if self._spreads is not None else ())
        await admit_host_users(self.client, trusts_federation=self._trusts_federation)

    async def settle(self) -> None:
        """Write, after `prepare`, what a new API server writes first, so that copies of the store need not."""
        await self._server.settle()

    async def run(self, on_started: Callable[[str], None]) -> None:
        """Serve and reconcile until cancelled; `on_started` gets the URL."""
        await self.prepare()
        await self._workloads.ensure_nodes()
        try:
            async with asyncio.TaskGroup() as group:
                controllers = group.create_task(self._run_controllers())
                try:
                    await self._server.run(on_started)
                finally:
                    controllers.cancel()
        finally:
            await self._store.close()

    async def _run_controllers(self) -> None:
        async with asyncio.TaskGroup() as group:
            if self._spreads is not None:
                # Before the controllers that create pods: a pod that is created earlier is not spread.
                group.create_task(self._spreads.run())
                await self._spreads.wait_synced()
                await self._spreads.prepare()
            if self._uniteds is not None:
                group.create_task(self._uniteds.run())
            group.create_task(self._workloads.run())
