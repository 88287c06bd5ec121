"""WorkloadSpreads in a simulated member: the service of a real cluster, reached over the member's service network."""

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object
from federation.apiserver.registry.registry import Registry
from federation.client.local import LocalClient
from federation.features.workloadspread.incluster import configurations
from federation.features.workloadspread.incluster.service import SpreadService

SERVICE = ("kube-system", "workloadspread")
"""Namespace and name of the service that the webhook configurations refer to."""


class WorkloadSpreads:
    """The WorkloadSpread service of one member. `answer` is for the service network."""

    def __init__(self, registry: Registry, clock: Clock, *, cluster: str) -> None:
        self._client = LocalClient(registry, user_agent="workloadspread")
        self._service = SpreadService(self._client, clock=clock, cluster=cluster)
        self.wait_synced = self._service.wait_synced
        self.run = self._service.run

    async def prepare(self) -> None:
        """Install the webhook configurations. The registry must serve the definitions already."""
        await configurations.install_webhooks(self._client, _client_config)

    async def answer(self, path: str, review: Object) -> Object:
        """Answer an AdmissionReview; NotFound for an unknown path."""
        return await self._service.answer(path, review)


def _client_config(path: str) -> Object:
    namespace, name = SERVICE
    return {"service": {"namespace": namespace, "name": name, "path": path}}
