"""One simulated member cluster: an API server of its own plus nodes, pod scheduler, workload controllers and kubelet.

State lives in a directory, so that a restart finds the same cluster (same CA, credentials, port, objects). Everything
but the binding of pods goes through the Kubernetes API in process. Read `fleet.py` for several members in one process.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine
from pathlib import Path

from federation.api.resources import DEPLOYMENTS, NODES, PODS, REPLICA_SETS, Object
from federation.base.clock import Clock, to_rfc3339
from federation.base.errors import AlreadyExists
from federation.client.local import LocalClient
from federation.registry.options import WriteOptions
from federation.runtime.informers import Informers
from federation.server.apiserver import APIServer, APIServerOptions
from federation.simulator.deployments import DeploymentController
from federation.simulator.options import MemberOptions, NodeShape
from federation.simulator.pods import Kubelet, PodScheduler
from federation.simulator.replicasets import ReplicaSetController
from federation.store.journal import MemoryJournal
from federation.store.sql import SQLStore


class SimulatedMember:
    """A member cluster in this process."""

    def __init__(self, options: MemberOptions, directory: Path, kubeconfig: Path, clock: Clock, *, port: int) -> None:
        self.options = options
        self._clock = clock
        self._store = SQLStore(f"sqlite:///{directory / 'state.db'}", clock=clock)
        self._server = APIServer(
            self._store,
            MemoryJournal(),
            options=APIServerOptions(directory, kubeconfig, name=options.name, port=port),
            clock=clock,
        )
        self._client = LocalClient(self._server.registry, user_agent="simulated-member")
        self._informers = Informers(self._client, clock=clock, cluster=options.name)

    async def run(self, on_started: Callable[[str], None]) -> None:
        """Serve and reconcile until cancelled; `on_started` gets the URL."""
        await self._server.prepare()
        for shape in self.options.nodes:
            await self._ensure_node(shape)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._informers.run())]
                tasks += [group.create_task(run()) for run in self._controllers()]
                try:
                    await self._server.run(on_started)
                finally:
                    for task in tasks:
                        task.cancel()
        finally:
            await self._store.close()

    def _controllers(self) -> list[Callable[[], Coroutine[None, None, None]]]:
        client, clock, options = self._client, self._clock, self.options
        deployments = self._informers.for_resource(DEPLOYMENTS)
        replica_sets = self._informers.for_resource(REPLICA_SETS)
        pods = self._informers.for_resource(PODS)
        nodes = self._informers.for_resource(NODES)
        rng = random.Random(options.name)  # noqa: S311  # names of simulated pods, not secrets
        parts = (
            DeploymentController(client, deployments, replica_sets, clock, options.workers),
            ReplicaSetController(client, replica_sets, pods, clock, options.workers, rng),
            PodScheduler(client, pods, nodes, clock, self._bind),
            Kubelet(
                client,
                pods,
                clock,
                start_s=options.pod_start_s,
                stop_s=options.pod_stop_s,
                workers=options.workers,
            ),
        )
        return [part.controller.run for part in parts]

    async def _bind(self, namespace: str, pod: str, node: str) -> None:
        """POST the pod's binding; the Client protocol has no verb for it."""
        registry = self._server.registry
        binding: Object = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        info = registry.kinds.lookup(PODS.group, PODS.version, PODS.plural)
        await registry.create(info, namespace, binding, WriteOptions(), name=pod, subresource="binding")

    async def _ensure_node(self, shape: NodeShape) -> None:
        node = _to_node(shape, to_rfc3339(self._clock.now()))
        with contextlib.suppress(AlreadyExists):
            await self._client.create(NODES, {**node, "status": {}})
        live = await self._client.get(NODES, shape.name)
        if (live.get("status") or {}).get("allocatable") != node["status"]["allocatable"]:
            await self._client.update(NODES, {**live, "status": node["status"]}, subresource="status")


def _to_node(shape: NodeShape, now: str) -> Object:
    amounts = {"cpu": shape.cpu, "memory": shape.memory, "pods": str(shape.pods), **shape.extended}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": shape.name, "labels": dict(shape.labels)},
        "spec": {"taints": [dict(taint) for taint in shape.taints]} if shape.taints else {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "simulated kubelet is posting ready status",
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": now,
                }
            ],
            "nodeInfo": {
                "kubeletVersion": "v1.36.0",
                "operatingSystem": "linux",
                "architecture": "amd64",
                "osImage": "simulated",
                "kernelVersion": "0",
                "containerRuntimeVersion": "simulated://1",
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kubeProxyVersion": "",
            },
        },
    }
