"""Requests for the metrics of autoscalers that are not of resources, to the metrics APIs of one member.

`custom.metrics.k8s.io` has the metrics of pods and other objects, `external.metrics.k8s.io` those of things outside of
the cluster. Paths and answers are those of the Kubernetes metrics APIs; amounts are in milli-units.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from federation.apimachinery.errors import ApiError, ClusterError, from_status
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.quantity import to_milli
from federation.apimachinery.resources import Resource
from federation.apimachinery.selectors import format_label_selector
from federation.client.client import Client
from federation.planning.autoscaling.measurements import PodValues, Totals, Unmeasured, Values
from federation.planning.autoscaling.podmetrics import Sample

_CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
_EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
_TIMEOUT_S = 10.0
_T = TypeVar("_T")


class CustomMetrics:
    """The metrics of one autoscaler from the members of its target; `client_of` returns None for one not ready."""

    def __init__(
        self,
        client_of: Callable[[str], Client | None],
        resource_of: Callable[[str, str], Resource | None],
        namespace: str,
        selector: str,
    ) -> None:
        self._client_of = client_of
        self._resource_of = resource_of
        self._namespace = namespace
        self._selector = selector
        self.problems: list[str] = []
        """The source that did not answer."""

    async def measure(self, metric: Mapping[str, Any], pods: Mapping[str, Sequence[Sample]]) -> Values | None:
        """Return the values of a metric, None for one of resources. `pods` has the samples of each cluster."""
        match metric.get("type"):
            case "Pods":
                source = (metric.get("pods") or {}).get("metric") or {}
                found = await asyncio.gather(
                    *(self._pods_in(cluster, source) if pods[cluster] else _nothing() for cluster in pods)
                )
                values = zip(pods.values(), found, strict=True)
                return PodValues(
                    [by_name.get(s.pod["metadata"]["name"]) for samples, by_name in values for s in samples]
                )
            case "Object":
                return await self._object(metric.get("object") or {}, list(pods))
            case "External":
                return await self._external((metric.get("external") or {}).get("metric") or {}, list(pods))
        return None

    async def _pods_in(self, cluster: str, metric: Mapping[str, Any]) -> Mapping[str, int]:
        return (
            await self._asked(cluster, lambda client: pod_values(client, self._namespace, self._selector, metric)) or {}
        )

    async def _object(self, source: Mapping[str, Any], clusters: Sequence[str]) -> Values:
        metric, described = source.get("metric") or {}, source.get("describedObject") or {}
        group, kind = str(described.get("apiVersion") or "").rpartition("/")[0], str(described.get("kind") or "")
        resource = None if (group, kind) == ("", "Namespace") else self._resource_of(group, kind)
        if resource is None and kind != "Namespace":
            return Unmeasured(f"no FederatedTypeConfig has the kind {kind} of its object")
        name = str(described.get("name") or "")
        found = await asyncio.gather(
            *(
                self._asked(cluster, lambda client: object_value(client, self._namespace, resource, name, metric))
                for cluster in clusters
            )
        )
        amounts = [amount for amount in found if amount is not None]
        return Totals(amounts) if amounts else Unmeasured("no cluster of the target has it")

    async def _external(self, metric: Mapping[str, Any], clusters: Sequence[str]) -> Values:
        """Return what the first cluster says that answers: all see the same thing outside of them."""
        for cluster in clusters:
            found = await self._asked(cluster, lambda client: external_values(client, self._namespace, metric))
            if found:
                return Totals(found)
        return Unmeasured("no cluster of the target has it")

    async def _asked(self, cluster: str, ask: Callable[[Client], Awaitable[_T]]) -> _T | None:
        client = self._client_of(cluster)
        if client is None:
            return None  # the problem is known from its pods
        try:
            return await ask(client)
        except (ApiError, ClusterError) as error:
            self.problems.append(f"cluster {cluster} has no such metric: {error}")
            return None


async def _nothing() -> Mapping[str, int]:
    return {}


async def pod_values(client: Client, namespace: str, selector: str, metric: Mapping[str, Any]) -> dict[str, int]:
    """Return a metric of the pods that the selector matches, by name; ApiError and ClusterError."""
    path = f"{_CUSTOM}/namespaces/{_part(namespace)}/pods/*/{_part(metric.get('name'))}"
    items = await _items(client, path, {"labelSelector": selector, **_selector_of(metric)})
    return {str((item.get("describedObject") or {}).get("name") or ""): _amount(item) for item in items}


async def object_value(
    client: Client, namespace: str, resource: Resource | None, name: str, metric: Mapping[str, Any]
) -> int:
    """Return a metric of one object, of the namespace itself without a resource; ApiError and ClusterError."""
    where = "metrics" if resource is None else f"{resource.group_resource}/{_part(name)}"
    path = f"{_CUSTOM}/namespaces/{_part(namespace)}/{where}/{_part(metric.get('name'))}"
    items = await _items(client, path, _selector_of(metric))
    if len(items) != 1:
        raise ClusterError(f"{len(items)} values of the metric {metric.get('name')} instead of one")
    return _amount(items[0])


async def external_values(client: Client, namespace: str, metric: Mapping[str, Any]) -> list[int]:
    """Return all series of an external metric; ApiError and ClusterError."""
    path = f"{_EXTERNAL}/namespaces/{_part(namespace)}/{_part(metric.get('name'))}"
    query = {"labelSelector": selector["metricLabelSelector"]} if (selector := _selector_of(metric)) else {}
    return [_amount(item) for item in await _items(client, path, query)]


async def _items(client: Client, path: str, query: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    status, body = await client.raw("GET", path, query=query, timeout_s=_TIMEOUT_S)
    answer = parse_object(body)
    if status >= 300:
        raise from_status(answer or {}, status)
    items = (answer or {}).get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ClusterError(f"the metrics API answered {path} without a list of values")
    return items


def _amount(item: Mapping[str, Any]) -> int:
    try:
        return to_milli(str(item.get("value")))
    except ValueError as error:
        raise ClusterError(f"the metrics API answered with the value {item.get('value')!r}") from error


def _selector_of(metric: Mapping[str, Any]) -> dict[str, str]:
    text = format_label_selector(metric.get("selector") or {})
    return {"metricLabelSelector": text} if text else {}


def _part(text: object) -> str:
    return quote(str(text), safe="")
