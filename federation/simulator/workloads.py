"""The nodes of a simulated member and the controllers that run its Deployments.

Works on an in-process registry with any store and clock: `member.py` puts an API server in front of it, scenario tests
use it without a network. Everything except the binding of pods goes through the `Client` protocol. Read
`deployments.py`, `replicasets.py`, `podlifecycle.py` and `nodelifecycle.py` for the controllers.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine

from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.errors import AlreadyExists
from federation.apimachinery.resources import DEPLOYMENTS, NODES, PODS, REPLICA_SETS, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.client.local import LocalClient
from federation.runtime.informers import Informers
from federation.simulator.deployments import DeploymentController
from federation.simulator.nodelifecycle import NodeLifecycleController
from federation.simulator.options import MemberOptions, NodeShape
from federation.simulator.podlifecycle import Kubelet, PodScheduler
from federation.simulator.replicasets import ReplicaSetController


class Workloads:
    """The nodes and workload controllers of one member."""

    def __init__(self, registry: Registry, options: MemberOptions, clock: Clock) -> None:
        self._registry = registry
        self._options = options
        self._clock = clock
        self._client = LocalClient(registry, user_agent="simulated-member")
        self._informers = Informers(self._client, clock=clock, cluster=options.name)

    async def ensure_nodes(self) -> None:
        """Create the nodes that do not exist yet; the registry must be ready."""
        for shape in self._options.nodes:
            try:
                await self._client.create(NODES, _to_node(shape, to_rfc3339(self._clock.now())))
            except AlreadyExists:
                continue

    async def run(self) -> None:
        """Reconcile until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run())
            for run in self._controllers():
                group.create_task(run())

    def _controllers(self) -> list[Callable[[], Coroutine[None, None, None]]]:
        client, clock, options = self._client, self._clock, self._options
        deployments = self._informers.for_resource(DEPLOYMENTS)
        replica_sets = self._informers.for_resource(REPLICA_SETS)
        pods = self._informers.for_resource(PODS)
        nodes = self._informers.for_resource(NODES)
        rng = random.Random(options.name)  # noqa: S311  # names of simulated pods, not secrets
        controllers = (
            DeploymentController(client, deployments, replica_sets, clock, options.workers),
            ReplicaSetController(client, replica_sets, pods, clock, options.workers, rng),
            PodScheduler(client, pods, nodes, clock, self._bind),
            NodeLifecycleController(client, pods, nodes, clock, options.workers),
            Kubelet(
                client,
                pods,
                clock,
                start_s=options.pod_start_s,
                stop_s=options.pod_stop_s,
                workers=options.workers,
            ),
        )
        return [entry.controller.run for entry in controllers]

    async def _bind(self, namespace: str, pod: str, node: str) -> None:
        """Create the pod's binding; the Client protocol has no verb for it."""
        binding: Object = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        info = self._registry.kinds.lookup(PODS.group, PODS.version, PODS.plural)
        await self._registry.create(info, namespace, binding, WriteOptions(), name=pod, subresource="binding")


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
