"""A member cluster of a world: its registry and workload controllers, the connection to it, and an administrator's client.

`world.py` creates members and connects the control plane to them. A member's store can be copied, and restored from a
copy, as from a backup.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from federation.apimachinery.clock import Clock, ManualClock
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import DEPLOYMENTS, Object, Resource
from federation.apimachinery.webhooks import ServiceNetwork
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.cel.authorizer import AccessDecision
from federation.apiserver.store.interface import Event
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.store.writes import Change
from federation.client.client import Client, PatchType
from federation.client.local import LocalClient
from federation.simulator.options import MemberOptions, NodeShape
from federation.simulator.workloads import Workloads
from tests.support.faults import SkewedClock, StoreCopy, restored
from tests.support.instantworkloads import InstantWorkloads
from tests.support.lines import MemberLine

if TYPE_CHECKING:
    from federation.simulator.workloadspreads import WorkloadSpreads


class _Store(MemoryStore):
    """A member's store, which reports its changes."""

    def __init__(self, clock: Clock, on_change: Callable[[Event], None]) -> None:
        super().__init__(clock=clock)
        self._on_change = on_change

    def _publish(self, change: Change) -> None:
        super()._publish(change)
        self._on_change(change.event)


class Member:
    """One member cluster: its registry, its workload controllers, the connection to it, and an administrator's client.

    Its wall clock may be wrong (`clock.offset_s`), and its store can be replaced by a copy. With `nodes` it has these
    nodes, and runs the WorkloadSpread service.
    """

    def __init__(
        self,
        name: str,
        clock: ManualClock,
        seed: int,
        labels: Mapping[str, str],
        *,
        has_workloads: bool,
        nodes: Sequence[NodeShape] = (),
        has_spreads: bool = False,
        has_reports: bool,
        copy: StoreCopy | None = None,
    ) -> None:
        self.name = name
        self.labels = dict(labels)
        self.clock = SkewedClock(clock)
        self._has_workloads = has_workloads
        self._nodes = tuple(nodes)
        self._has_spreads = has_spreads
        self._has_reports = has_reports
        self._seeds = itertools.count(seed, 1_000_000)
        self._tasks: list[asyncio.Task[None]] = []
        self.on_change: Callable[[Event], None] | None = None
        """Is called with each change of its store."""
        self._build(copy)
        self.line = MemberLine(self.registry, clock, seed)

    def _build(self, copy: StoreCopy | None) -> None:
        self.store = _Store(self.clock, self._changed)
        restored(self.store, copy)
        network = ServiceNetwork()
        entropy = SeededEntropy(next(self._seeds))
        self.registry = Registry(self.store, clock=self.clock, entropy=entropy, webhooks=network)
        # Only its own controllers ask for permissions here: the scheduler, which allocates devices.
        self.registry.set_authorizer(lambda _user, _check: AccessDecision(is_allowed=True))
        self.admin = LocalClient(self.registry, user_agent="admin")
        nodes = self._nodes or (NodeShape("node-1", cpu="64", memory="256Gi", pods=1000),)
        self.workloads = Workloads(self.registry, MemberOptions(self.name, nodes), self.clock)
        self._spreads: WorkloadSpreads | None = None
        if self._has_spreads:  # other worlds need no wing
            from federation.simulator import workloadspreads

            self._spreads = workloadspreads.WorkloadSpreads(self.registry, self.clock, cluster=self.name)
            network.add(*workloadspreads.SERVICE, self._spreads.answer)

    def _changed(self, event: Event) -> None:
        if self.on_change is not None:
            self.on_change(event)

    async def start(self) -> None:
        """Run the member's servers and controllers."""
        await self.registry.start()
        await self.workloads.ensure_nodes()
        self._tasks = [asyncio.create_task(self.registry.run(), name=self.name)]
        if self._spreads is not None:
            from federation.features.workloadspread.incluster.configurations import definitions

            # Before the controllers that create pods: a pod that is created earlier is not spread.
            await self.registry.install_crds(definitions())
            self._tasks.append(asyncio.create_task(self._spreads.run(), name=f"WorkloadSpreads of {self.name}"))
            await self._spreads.wait_synced()
            await self._spreads.prepare()
        if self._has_workloads:
            self._tasks.append(asyncio.create_task(self.workloads.run(), name=f"workloads of {self.name}"))
        elif self._has_reports:
            self._tasks.append(asyncio.create_task(InstantWorkloads(self.admin).run(), name=f"reports of {self.name}"))

    async def stop(self) -> None:
        """Stop them; the store keeps its content."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        raise_failures(await asyncio.gather(*tasks, return_exceptions=True))

    async def replace(self, copy: StoreCopy | None) -> None:
        """Restore the cluster from a backup; without one, a new and empty cluster takes its place."""
        await self.stop()
        self._build(copy)
        await self.start()
        self.line.connect(self.registry)

    @property
    def tasks(self) -> Sequence[asyncio.Task[None]]:
        """The tasks that run the member."""
        return self._tasks

    async def find(self, resource: Resource, name: str, namespace: str = "default") -> Object | None:
        """Return an object of the member, None when there is none."""
        return await find(self.admin, resource, name, namespace)

    async def replicas(self, name: str) -> int | None:
        """Return the desired replicas of the Deployment in the member, None without it."""
        deployment = await self.find(DEPLOYMENTS, name)
        return deployment["spec"]["replicas"] if deployment is not None else None

    async def merge(self, resource: Resource, name: str, patch: Object, namespace: str = "default") -> Object:
        """Patch as the member's administrator."""
        return await self.admin.patch(resource, name, patch, patch_type=PatchType.MERGE, namespace=namespace)

    async def report(self, name: str, **status: Any) -> None:
        """Act as the Deployment controller of a member without workloads: publish a status for the newest generation."""
        deployment = await self.admin.get(DEPLOYMENTS, name, "default")
        body = {"status": {"observedGeneration": deployment["metadata"]["generation"], **status}}
        await self.admin.patch(
            DEPLOYMENTS, name, body, patch_type=PatchType.MERGE, namespace="default", subresource="status"
        )


async def find(client: Client, resource: Resource, name: str, namespace: str) -> Object | None:
    """Return an object, None when there is none."""
    try:
        return await client.get(resource, name, namespace if resource.namespaced else "")
    except NotFound:
        return None


def raise_failures(outcomes: Sequence[BaseException | None]) -> None:
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
