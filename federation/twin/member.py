"""A member of a twin: a registry in memory, the simulator's nodes and workload controllers, and a line that can break.

What runs in the original beside the federation's workloads is not known object by object: one pod per node stands for
it, which has what else is used there.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.errors import ApiError, FederationError
from federation.apimachinery.resources import NAMESPACES, NODES, PODS, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.store.options import StoreOptions
from federation.assembly import HOST_REGISTRY
from federation.client.client import PatchType, Request, Watch
from federation.client.identity import KUBE_SYSTEM
from federation.client.local import LocalClient, LocalTransport
from federation.planning.clusters.clusterresources import Collector, spec_requests
from federation.planning.clusters.nodeclasses import PODS as POD_COUNT
from federation.planning.clusters.nodeclasses import ceil_amounts, to_texts
from federation.simulator.options import MemberOptions
from federation.simulator.workloads import Workloads
from federation.twin.nodes import PodKey, amounts_of, copied_nodes, filled_nodes

_STORE = StoreOptions(history_rows_max=10_000)
_OTHERS = "everything-else"
"""Name of the pods that stand for what is not copied, with the name of their node behind it."""
_ROOM = "free-room"
"""Name of the pods that hold what is free, while the copied workloads start, with the name of their node behind it."""
_ELSEWHERE = "elsewhere"
"""Name of the closed node."""


class TwinLine(LocalTransport):
    """The connection from the control plane to a member; every call fails with `problem` while it has one."""

    problem: FederationError | None = None

    async def request(self, request: Request) -> Object:
        self._check()
        return await super().request(request)

    async def stream(self, request: Request) -> Watch:
        self._check()
        async for batch in super().stream(request):
            self._check()
            yield batch

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        if isinstance(self.problem, ApiError):
            return self.problem.code, b"{}"
        self._check()
        return await super().raw(method, path, body, timeout_s, accept)

    async def close(self) -> None:
        """Stay open: the control plane connects again over the same line."""

    def _check(self) -> None:
        if self.problem is not None:
            raise self.problem


class TwinMember:
    """One member cluster."""

    def __init__(self, name: str, resources: Mapping[str, Any], clock: Clock, seed: int) -> None:
        """`resources` are those that the original reported."""
        self.name = name
        nodes = copied_nodes(name, resources)
        self._nodes = {node.shape.name: node for node in nodes}
        self._available = amounts_of(resources.get("available"))
        self._waiting = amounts_of(resources.get("waiting"))
        self.registry = Registry(
            MemoryStore(_STORE, clock=clock), clock=clock, options=HOST_REGISTRY, entropy=SeededEntropy(seed)
        )
        self.admin = LocalClient(self.registry, user_agent="twin")
        self.line = TwinLine(self.registry)
        self._workloads = Workloads(self.registry, MemberOptions(name, tuple(n.shape for n in nodes)), clock)
        self.tasks: list[asyncio.Task[None]] = []

    async def start(self, definitions: Iterable[Object], cluster: Mapping[str, Any]) -> str:
        """Run the member as one that has joined as this FederatedCluster; return its uid."""
        await self.registry.start()
        await self.registry.install_crds(list(definitions))
        claim = {"metadata": {"annotations": {names.FEDERATED_CLUSTER_UID: cluster["metadata"]["uid"]}}}
        await self.admin.patch(NAMESPACES, names.SYSTEM_NAMESPACE, claim, patch_type=PatchType.MERGE)
        await self._workloads.ensure_nodes()
        for name, node in self._nodes.items():
            # Leaves the room that was used in the original.
            await self._put_pod(f"{_ROOM}-{name}", name, node.free)
        self.tasks = [
            asyncio.create_task(self.registry.run(), name=f"registry of {self.name}"),
            asyncio.create_task(self._workloads.run(), name=f"workloads of {self.name}"),
        ]
        return str((await self.admin.get(NAMESPACES, KUBE_SYSTEM))["metadata"]["uid"])

    async def revision(self) -> int:
        """Return how often the member's objects were written."""
        return await self.registry.store.revision()

    async def fill(self) -> None:
        """Let what is free on each node be what was free in the original, once the copied workloads run."""
        held: dict[str, dict[str, int]] = {name: {} for name in self._nodes}
        pending: list[tuple[PodKey, Mapping[str, int]]] = []
        for pod in (await self.admin.list(PODS)).items:
            spec, key = pod.get("spec") or {}, (str(pod["metadata"]["namespace"]), str(pod["metadata"]["name"]))
            request, node = ceil_amounts(spec_requests(spec).items()), spec.get("nodeName") or ""
            if not node:
                pending.append((key, request))
            elif (on_node := held.get(node)) is not None and key != (KUBE_SYSTEM, f"{_ROOM}-{node}"):
                for resource, amount in {**request, POD_COUNT: 1}.items():
                    on_node[resource] = on_node.get(resource, 0) + amount
        filled = filled_nodes(list(self._nodes.values()), held, pending, self._waiting)
        for name, node in filled.items():
            # The number of other pods is not copied: the node allows as many more as the original did.
            pods = held[name].get(POD_COUNT, 0) + len(node.bound) + 1
            allocatable = {**node.allocatable, POD_COUNT: self._nodes[name].free.get(POD_COUNT, 0) + pods}
            texts = {**dict.fromkeys(allocatable, "0"), **to_texts(allocatable)}
            patch = {"status": {"allocatable": texts}}
            await self.admin.patch(NODES, name, patch, patch_type=PatchType.MERGE, subresource="status")
            for namespace, pod_name in node.bound:
                await self._workloads.bind(namespace, pod_name, name)
            await self._put_pod(f"{_OTHERS}-{name}", name, node.others)
        for name in self._nodes:
            await self.admin.delete(PODS, f"{_ROOM}-{name}", KUBE_SYSTEM, grace_period_s=0)
        await self._fill_elsewhere()

    async def _fill_elsewhere(self) -> None:
        """Hold what pods without a node, or on closed ones, request in the original, on a closed node of its own."""
        now = amounts_of((await self.resources()).get("available"))
        held = {name: amount - self._available.get(name, amount) for name, amount in now.items()}
        if any(amount > 0 for amount in held.values()):
            node: Object = {
                "apiVersion": NODES.api_version,
                "kind": NODES.kind,
                "metadata": {"name": _ELSEWHERE},
                "spec": {"unschedulable": True},
            }
            await self.admin.create(NODES, node)
            await self._put_pod(
                f"{_OTHERS}-{_ELSEWHERE}", _ELSEWHERE, {name: max(0, amount) for name, amount in held.items()}
            )

    async def resources(self) -> Mapping[str, Any]:
        """Return `status.resources` as the member is now."""
        collector = Collector()
        for node in (await self.admin.list(NODES)).items:
            collector.set_node(node["metadata"]["name"], node)
        for pod in (await self.admin.list(PODS)).items:
            collector.set_pod((pod["metadata"].get("namespace"), pod["metadata"]["name"]), pod)
        return collector.resources().to_status()

    async def lose_nodes(self, lost: Iterable[str]) -> None:
        """Remove nodes, with their pods."""
        for name in lost:
            await self.admin.delete(NODES, name)

    async def nodes(self) -> list[Object]:
        """Return the copied nodes that there still are."""
        return [node for node in (await self.admin.list(NODES)).items if node["metadata"]["name"] in self._nodes]

    async def stop(self) -> None:
        """Stop everything."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _put_pod(self, name: str, node: str, amounts: Mapping[str, int]) -> None:
        requests = to_texts({name: amount for name, amount in amounts.items() if name != POD_COUNT})
        # Of extended resources, requests and limits are equal.
        limits = {name: text for name, text in requests.items() if "/" in name}
        container = {"name": "main", "image": "none", "resources": {"requests": requests, "limits": limits}}
        pod: Object = {
            "apiVersion": PODS.api_version,
            "kind": PODS.kind,
            "metadata": {"name": name, "namespace": KUBE_SYSTEM},
            "spec": {"nodeName": node, "containers": [container], "tolerations": [{"operator": "Exists"}]},
        }
        await self.admin.create(PODS, pod)
