"""The WorkloadSpread service of one cluster: informers, ledger, admission and controller over one client.

Several instances may run over one cluster: the API server's resourceVersions are what they agree by. Constructors start
nothing; `run` works until cancelled. Requests are answered before that, and admitted unchanged.
"""

from collections.abc import Awaitable, Callable

from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.clock import Clock
from federation.apimachinery.deepjson import is_encodable
from federation.apimachinery.entropy import Entropy, SystemEntropy
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import NODES, PODS, Object
from federation.apimachinery.tasks import Supervisor
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.client.client import Client
from federation.features.workloadspread.incluster.configurations import (
    CREATE_POD,
    EVICT_POD,
    PATHS,
    REMOVE_POD,
    WRITE_SPREAD,
)
from federation.features.workloadspread.incluster.controller import Caches, SpreadController
from federation.features.workloadspread.incluster.podadmission import PodAdmission
from federation.features.workloadspread.incluster.reviews import ReviewOptions, Reviews
from federation.features.workloadspread.incluster.simulation import Simulation
from federation.features.workloadspread.incluster.spreadadmission import RULES, SpreadAdmission
from federation.features.workloadspread.incluster.statusledger import StatusLedger
from federation.features.workloadspread.incluster.targetworkloads import Workloads
from federation.features.workloadspread.rules.hub import to_hub
from federation.features.workloadspread.rules.patchcheck import PatchCheck
from federation.runtime.events import EventRecorder
from federation.runtime.informers import Informers
from federation.runtime.transforms import drop_managed_fields


def slim_spread(spread: Object) -> Object:
    """Return a WorkloadSpread as it is cached: in the form of v1beta1, without managed fields.

    ValueError for one that is nested too deeply to be written: it is left out, and others are not harmed.
    """
    slim = to_hub(drop_managed_fields(spread))
    if not is_encodable(slim):
        raise ValueError("the WorkloadSpread is nested too deeply")
    return slim


class SpreadService:
    """Spreads the pods of one cluster. `reviews` answers the API server's admission requests."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        cluster: str,
        entropy: Entropy | None = None,
        options: ReviewOptions | None = None,
    ) -> None:
        self._clock = clock
        self._informers = Informers(client, clock=clock, cluster=cluster, transform=drop_managed_fields)
        spreads = self._informers.for_resource(WORKLOAD_SPREADS, transform=slim_spread)
        pods, nodes = self._informers.for_resource(PODS), self._informers.for_resource(NODES)
        self._recorder = EventRecorder(client, component="workloadspread", clock=clock)
        workloads = Workloads(client, self._informers)
        ledger = StatusLedger(client, spreads, clock)
        simulation = Simulation(pods, nodes, patch_pod)
        admission = PodAdmission(
            client,
            spreads,
            pods,
            workloads,
            ledger,
            simulation,
            patch_pod,
            self._recorder,
            clock,
            entropy or SystemEntropy(),
        )
        self.reviews = Reviews(
            {
                CREATE_POD: admission.admit_creation,
                REMOVE_POD: admission.admit_deletion,
                EVICT_POD: admission.admit_eviction,
                WRITE_SPREAD: SpreadAdmission(spreads, workloads).admit,
            },
            clock,
            options=options,
        )
        controller = SpreadController(
            client, Caches(spreads, pods, nodes), workloads, ledger, self._recorder, patch_pod, PatchCheck(RULES), clock
        )
        self._loops: dict[str, Callable[[], Awaitable[None]]] = {
            "spread-informers": self._informers.run,
            "spread-events": self._recorder.run,
            "spread-controller": controller.run,
        }

    async def wait_synced(self) -> None:
        """Wait until all caches are filled. Pods that are admitted before that are not spread."""
        await self._informers.wait_synced()

    async def answer(self, path: str, review: Object) -> Object:
        """Answer an AdmissionReview that was sent to a path; NotFound for an unknown path."""
        handler = PATHS.get(path)
        if handler is None:
            raise NotFound(f"{path}: no such path")
        return await self.reviews.answer(handler, review)

    async def run(self) -> None:
        """Work until cancelled."""
        loops = Supervisor(self._clock)
        for name, run in self._loops.items():
            loops.add(name, run)
        await loops.run()
