"""NodeMetrics of `metrics.k8s.io` in a simulated member, computed for each request.

The use of a node is that of its pods with a load (`controllers/podmetrics.py`), and a little for the system.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.errors import NotFound, not_served
from federation.apimachinery.quantity import to_milli
from federation.apimachinery.resources import NODE_METRICS, NODES, POD_METRICS, PODS, Object
from federation.apimachinery.selectors import parse_label_selector
from federation.apiserver.http.asgi import Request
from federation.apiserver.http.readers import WatchBatch
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.requestoptions import ListOptions, ListResult
from federation.client.client import Client

_SYSTEM_CPU_MILLI: Final = 50
_SYSTEM_MEMORY_MILLI: Final = 256 * 1024**2 * 1000
_WINDOW: Final = "15s"


class NodeMetricsReader:
    """A `Reader` of NodeMetrics."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    def answers(self, _request: Request) -> bool:
        """Return True."""
        return True

    async def get(self, _request: Request, _info: KindInfo, _namespace: str, name: str) -> bytes:
        """Return the metrics of a node; NotFound."""
        for found in await self._measure():
            if found["metadata"]["name"] == name:
                return orjson.dumps(found)
        raise NotFound(f'{NODE_METRICS.group_resource} "{name}" not found')

    async def list(self, _request: Request, _info: KindInfo, _namespace: str, options: ListOptions) -> ListResult:
        """Return the metrics of all nodes that the label selector matches."""
        selector = parse_label_selector(options.label_selector)
        items = [found for found in await self._measure() if selector.matches(found["metadata"]["labels"])]
        return ListResult([orjson.dumps(item) for item in items], "")

    def watch(
        self, _request: Request, _info: KindInfo, _namespace: str, _options: ListOptions
    ) -> AsyncGenerator[WatchBatch, None]:
        """Refuse: metrics are not watched."""
        raise not_served()

    async def _measure(self) -> Sequence[Object]:
        nodes = (await self._client.list(NODES)).items
        pods = (await self._client.list(PODS)).items
        metrics = (await self._client.list(POD_METRICS)).items
        return measure_nodes(nodes, pods, metrics, self._clock.now())


def measure_nodes(
    nodes: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    metrics: Iterable[Mapping[str, Any]],
    now: datetime,
) -> list[Object]:
    """Return the NodeMetrics of nodes: the use of their pods, which PodMetrics give, and of the system. Pure."""
    node_of = {_key(pod): (pod.get("spec") or {}).get("nodeName") for pod in pods}
    cpu: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    for metric in metrics:
        node = node_of.get(_key(metric))
        for container in metric.get("containers") or () if node else ():
            usage = container.get("usage") or {}
            cpu[str(node)] += to_milli(str(usage.get("cpu", 0)))
            memory[str(node)] += to_milli(str(usage.get("memory", 0)))
    return [
        {
            "apiVersion": NODE_METRICS.api_version,
            "kind": NODE_METRICS.kind,
            "metadata": {"name": name, "labels": dict(node["metadata"].get("labels") or {})},
            "timestamp": to_rfc3339(now),
            "window": _WINDOW,
            "usage": {
                "cpu": f"{_SYSTEM_CPU_MILLI + cpu[name]}m",
                "memory": f"{(_SYSTEM_MEMORY_MILLI + memory[name]) // 1024_000}Ki",
            },
        }
        for node in nodes
        for name in [node["metadata"]["name"]]
    ]


def _key(obj: Mapping[str, Any]) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
