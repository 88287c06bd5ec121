"""The simulated metrics server: PodMetrics of `metrics.k8s.io` for the pods of workloads with a load.

A real metrics server computes them for each request. Here they are objects of a CustomResourceDefinition, written every
15 seconds, so that they are read the same way over HTTP and in process. Garbage collection deletes them with their pod.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.errors import ApiError, ConfigurationError
from federation.apimachinery.resources import CRDS, POD_METRICS, PODS, Object
from federation.client.client import Client, PatchType
from federation.planning.autoscaling.podmetrics import PodMetric
from federation.simulator.controllers.autoscalers import LoadedWorkloads
from federation.simulator.controllers.loads import measure_pods

_INTERVAL_S = 15.0
"""Seconds between two measurements, as a metrics server has it; each covers the time since the last one."""
_MANAGER = "metrics-server"
_OBJECT = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Object = {
    "apiVersion": CRDS.api_version,
    "kind": CRDS.kind,
    "metadata": {
        "name": POD_METRICS.group_resource,
        "annotations": {"api-approved.kubernetes.io": "unapproved, simulated"},
    },
    "spec": {
        "group": POD_METRICS.group,
        "scope": "Namespaced",
        "names": {
            "kind": POD_METRICS.kind,
            "listKind": f"{POD_METRICS.kind}List",
            "plural": POD_METRICS.plural,
            "singular": "podmetrics",
        },
        "versions": [
            {"name": POD_METRICS.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": _OBJECT}}
        ],
    },
}


class MetricsServer:
    """Keeps the PodMetrics of one member."""

    def __init__(self, client: Client, workloads: LoadedWorkloads, clock: Clock) -> None:
        self._client = client
        self._workloads = workloads
        self._clock = clock

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            for workload in list(self._workloads.loaded()):
                await self._publish(workload)
            await self._clock.sleep(_INTERVAL_S)

    async def _publish(self, workload: Object) -> None:
        pods = {pod["metadata"]["name"]: pod for pod in self._workloads.pods_of(workload)}
        try:
            metrics = measure_pods(workload, list(pods.values()), self._clock.now(), _INTERVAL_S)
        except ConfigurationError:
            return  # Its autoscaler reports a malformed load.
        await self._write_all(_to_object(pods[name], metric) for name, metric in metrics.items())

    async def _write_all(self, objects: Iterable[Object]) -> None:
        await asyncio.gather(*map(self._write, objects))

    async def _write(self, obj: Object) -> None:
        metadata = obj["metadata"]
        try:
            await self._client.patch(
                POD_METRICS,
                metadata["name"],
                obj,
                patch_type=PatchType.APPLY,
                namespace=metadata["namespace"],
                field_manager=_MANAGER,
                force=True,
            )
        except ApiError:
            return  # The next measurement is soon.


def _to_object(pod: Mapping[str, Any], metric: PodMetric) -> Object:
    metadata = pod["metadata"]
    return {
        "apiVersion": POD_METRICS.api_version,
        "kind": POD_METRICS.kind,
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": metadata.get("labels") or {},
            "ownerReferences": [
                {"apiVersion": PODS.api_version, "kind": PODS.kind, "name": metadata["name"], "uid": metadata["uid"]}
            ],
        },
        "timestamp": to_rfc3339(metric.time),
        "window": f"{_INTERVAL_S:.0f}s",
        "containers": [
            {"name": container, "usage": {resource: _quantity(resource, used) for resource, used in usage.items()}}
            for container, usage in metric.containers.items()
        ],
    }


def _quantity(resource: str, milli: int) -> str:
    return f"{milli}m" if resource == "cpu" else str(milli // 1000)
