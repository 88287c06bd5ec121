"""The nodes of a simulated member and the controllers that run its workloads.

Works on an in-process registry with any store and clock: `member.py` puts an API server in front of it, scenario tests
use it without a network. Everything except the binding of pods goes through the `Client` protocol. Read
`deployments.py`, `replicasets.py`, `podlifecycle.py` and `nodelifecycle.py` for the controllers.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping
from typing import Any

from federation.api.resources import ADVANCED_STATEFUL_SETS, CLONE_SETS, UNITED_DEPLOYMENTS
from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.errors import AlreadyExists
from federation.apimachinery.resources import (
    DEPLOYMENTS,
    DEVICE_CLASSES,
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_SLICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    Object,
    Resource,
)
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.client.local import LocalClient
from federation.controllers.horizontalautoscaler.controller import HorizontalAutoscalerController
from federation.runtime.events import EventRecorder
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers
from federation.runtime.timeslice import TimeSlice
from federation.simulator.controllers.autoscalers import SCALER_MANAGER, LoadedWorkloads
from federation.simulator.controllers.clonesets import CloneSetController
from federation.simulator.controllers.cronjobs import CronJobController
from federation.simulator.controllers.daemonsets import DaemonSetController
from federation.simulator.controllers.deployments import DeploymentController
from federation.simulator.controllers.deviceallocator import DeviceAllocator
from federation.simulator.controllers.disruptionbudgets import DisruptionBudgetController
from federation.simulator.controllers.endpointslices import EndpointSliceController
from federation.simulator.controllers.jobs import JobController
from federation.simulator.controllers.kubelet import Kubelet
from federation.simulator.controllers.loadbalancers import LoadBalancerController
from federation.simulator.controllers.memberparts import Member
from federation.simulator.controllers.nodelifecycle import NodeLifecycleController
from federation.simulator.controllers.podmetrics import DEFINITION, MetricsServer
from federation.simulator.controllers.pods import NameSuffixes, PodControl
from federation.simulator.controllers.podscheduler import PodScheduler
from federation.simulator.controllers.replicasets import ReplicaSetController
from federation.simulator.controllers.selections import index_pods
from federation.simulator.controllers.statefulsets import StatefulSetController
from federation.simulator.controllers.volumes import VolumeController
from federation.simulator.customworkloads import CustomWorkloads, Run
from federation.simulator.options import MemberOptions, NodeShape


def _controllers() -> Object:
    """Return the user of the member's controllers, whom its admission and quotas judge as in a real cluster."""
    return {"username": "system:kube-controller-manager", "groups": ["system:masters", "system:authenticated"]}


_SLICE_S = 0.002
_SLICE_KEYS_MAX = 64
"""The time, and the keys, that all controllers of a member together may take in an iteration of the event loop."""


class Workloads:
    """The nodes and workload controllers of one member."""

    def __init__(self, registry: Registry, options: MemberOptions, clock: Clock) -> None:
        self._registry = registry
        self._options = options
        self._clock = clock
        self._client = LocalClient(registry, user_agent="simulated-member", requester=_controllers)
        self._recorder = EventRecorder(self._client, component="simulated-member", clock=clock)
        self._informers = Informers(self._client, clock=clock, cluster=options.name)

    async def ensure_nodes(self) -> None:
        """Define the metrics of pods, and create the nodes that do not exist yet; the registry must be ready."""
        await self._registry.install_crds([DEFINITION])
        for shape in self._options.nodes:
            try:
                await self._client.create(NODES, _to_node(shape, to_rfc3339(self._clock.now())))
            except AlreadyExists:
                continue
        await self._ensure_devices()

    async def _ensure_devices(self) -> None:
        """Create the slices and classes of the nodes' devices, as drivers do."""
        classes = {shape.devices.driver for shape in self._options.nodes if shape.devices is not None}
        for driver in sorted(classes):
            selector = {"cel": {"expression": f"device.driver == '{driver}'"}}
            await self._ensure(DEVICE_CLASSES, {"metadata": {"name": driver}, "spec": {"selectors": [selector]}})
        for shape in self._options.nodes:
            if shape.devices is not None:
                await self._ensure(RESOURCE_SLICES, shape.devices.to_slice(shape.name))

    async def _ensure(self, resource: Resource, obj: Mapping[str, Any]) -> None:
        body: Object = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        with contextlib.suppress(AlreadyExists):
            await self._client.create(resource, body)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        async with asyncio.TaskGroup() as group:
            controllers = self._controllers()
            group.create_task(self._informers.run())
            group.create_task(self._recorder.run())
            # A controller that acts on half of the caches after a restart would replace pods that still run.
            await self._informers.wait_synced()
            for run in controllers:
                group.create_task(run())

    def _controllers(self) -> list[Run]:
        client, clock, options = self._client, self._clock, self._options
        pods = self._informer(PODS)
        scalable = {
            (resource.group, resource.kind): self._informer(resource)
            for resource in (DEPLOYMENTS, STATEFUL_SETS, REPLICA_SETS, REPLICATION_CONTROLLERS)
        }
        suffixes = NameSuffixes(random.Random(options.name))  # noqa: S311  # names of simulated pods, not secrets
        index_pods(pods)
        control = PodControl(client, pods, self._recorder)
        member = Member(
            client, self._informers, control, self._recorder, clock, suffixes, options.name, options.workers
        )
        loaded = LoadedWorkloads(scalable, pods, clock)
        controllers = (
            DeploymentController(member),
            ReplicaSetController(member),
            ReplicaSetController(member, REPLICATION_CONTROLLERS),
            StatefulSetController(member),
            DaemonSetController(member),
            JobController(member),
            CronJobController(member),
            HorizontalAutoscalerController(
                client,
                self._informer(HORIZONTAL_POD_AUTOSCALERS),
                loaded,
                clock=clock,
                manager=SCALER_MANAGER,
                workers=options.workers,
            ),
            DisruptionBudgetController(member, scalable),
            EndpointSliceController(member),
            LoadBalancerController(member),
            VolumeController(member),
            self._scheduler(),
            NodeLifecycleController(member),
            Kubelet(member, start_s=options.pod_start_s, stop_s=options.pod_stop_s),
        )
        # Controllers and kubelets of a cluster run beside its API server: they must not delay its answers.
        slice_ = TimeSlice(_SLICE_S, _SLICE_KEYS_MAX)
        for entry in controllers:
            entry.controller.share_time(slice_)
        builders: dict[Resource, Callable[[], Run] | None] = {
            CLONE_SETS: lambda: CloneSetController(member).controller.run,
            ADVANCED_STATEFUL_SETS: lambda: StatefulSetController(member, ADVANCED_STATEFUL_SETS).controller.run,
            UNITED_DEPLOYMENTS: None,
        }
        custom = CustomWorkloads(self._informers, builders, scalable)
        metrics = MetricsServer(client, loaded, clock)
        return [*(entry.controller.run for entry in controllers), custom.run, metrics.run]

    def _scheduler(self) -> PodScheduler:
        devices = DeviceAllocator(self._client, self._informers)
        pods, nodes, claims, classes = map(self._informer, (PODS, NODES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES))
        return PodScheduler(self._client, pods, nodes, claims, classes, self._clock, self.bind, devices)

    def _informer(self, resource: Resource) -> Informer:
        return self._informers.for_resource(resource)

    async def bind(self, namespace: str, pod: str, node: str) -> None:
        """Create the pod's binding; the Client protocol has no verb for it."""
        binding: Object = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        info = self._registry.kinds.lookup(PODS.group, PODS.version, PODS.plural)
        await self._registry.create(info, namespace, binding, WriteOptions(), name=pod, subresource="binding")


_KUBELET_LABELS = {
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "beta.kubernetes.io/arch": "amd64",
}
"""A kubelet gives its node these, and most public charts select nodes by them."""


def _to_node(shape: NodeShape, now: str) -> Object:
    labels = {"kubernetes.io/hostname": shape.name, **_KUBELET_LABELS, **shape.labels}
    amounts = {"cpu": shape.cpu, "memory": shape.memory, "pods": str(shape.pods), **shape.extended}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": shape.name, "labels": labels},
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
