"""The UnitedDeployment controller of one cluster with all it needs: informers and events over one client.

It runs beside a simulated member or a real cluster. Constructors start nothing; `run` works until cancelled.
"""

from federation.apimachinery.clock import Clock
from federation.apimachinery.tasks import Supervisor
from federation.client.client import Client
from federation.features.uniteddeployment.controller import UnitedDeploymentController
from federation.features.uniteddeployment.localpods import LocalPods
from federation.planning.corerules import PatchPod
from federation.runtime.events import EventRecorder
from federation.runtime.informers import Informers
from federation.runtime.transforms import drop_managed_fields


class UnitedDeploymentService:
    """Keeps the UnitedDeployments of one cluster. The cluster must serve their definition."""

    def __init__(self, client: Client, *, patch_pod: PatchPod, clock: Clock, cluster: str) -> None:
        self._clock = clock
        self._informers = Informers(client, clock=clock, cluster=cluster, transform=drop_managed_fields)
        self._recorder = EventRecorder(client, component="uniteddeployment", clock=clock)
        self._controller = UnitedDeploymentController(
            client,
            self._informers,
            LocalPods(client, self._informers),
            recorder=self._recorder,
            patch_pod=patch_pod,
            clock=clock,
        )

    async def run(self) -> None:
        """Work until cancelled."""
        loops = Supervisor(self._clock)
        loops.add("uniteddeployment-informers", self._informers.run)
        loops.add("uniteddeployment-events", self._recorder.run)
        loops.add("uniteddeployment-controller", self._controller.run)
        await loops.run()
