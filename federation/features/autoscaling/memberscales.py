"""The targets of the autoscalers on the host: workloads whose pods run in members.

A stock HorizontalPodAutoscaler on the host that no policy delivers to members acts here. Its target is a workload that
the scheduler divides, or a UnitedDeployment. Metrics are requested from `metrics.k8s.io` of every member that has pods
of the target. The pods of UnitedDeployments are cached; those of other workloads are requested with their metrics, so
that memory does not grow with the pods of all members. A member that is not ready, or whose metrics cannot be read, has
pods without metrics.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, UNITED_DEPLOYMENTS
from federation.apimachinery.conditions import is_true
from federation.apimachinery.errors import ApiError, BadRequest, ClusterError, NotFound
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, POD_METRICS, PODS, Object, Resource
from federation.apimachinery.selectors import Selector, format_label_selector, parse_label_selector
from federation.client.client import Client
from federation.controllers.horizontalautoscaler.scaletargets import Scale
from federation.features.autoscaling.custommetrics import CustomMetrics
from federation.features.autoscaling.rules.hpamodes import mode_of
from federation.features.autoscaling.rules.idleautoscaler import target_of
from federation.planning.autoscaling.measurements import Measurements
from federation.planning.autoscaling.podmetrics import PodMetric, Sample, to_metric
from federation.planning.federatedobject.placements import current_clusters, effective_placement
from federation.runtime.host import Host
from federation.runtime.transforms import drop_managed_fields

_PODS_PER_PAGE = 500
PodsOf = Callable[[str, str], Awaitable[list[Object] | None]]
"""Returns the pods of a target in a cluster and namespace, None if they are not known."""


class MemberScales:
    """The scalable workloads of the host and their pods in the members. Lives as long as the control plane.

    Without `acts_by_default`, only autoscalers with the label `hpa-mode: centralized` act on divided workloads: a
    kube-controller-manager that runs on the same host acts on the others.
    """

    def __init__(self, host: Host, *, acts_by_default: bool = True) -> None:
        self._client = host.client
        self._objects = host.objects
        self._members = host.members
        self._uniteds = host.informers.for_resource(UNITED_DEPLOYMENTS)
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._acts_by_default = acts_by_default

    async def wait_synced(self) -> None:
        """Wait until targets, clusters and placements are cached."""
        await asyncio.gather(self._uniteds.wait_synced(), self._clusters.wait_synced(), self._objects.wait_synced())

    def is_responsible(self, autoscaler: Object) -> bool:
        """Return True for an autoscaler that acts in no member, and whose target runs in members."""
        resource, metadata = HORIZONTAL_POD_AUTOSCALERS, autoscaler["metadata"]
        own = self._federated(resource.group, resource.kind, metadata["namespace"], metadata["name"])
        if own is not None and effective_placement(own):
            return False
        if _is_united(autoscaler):
            return True
        mode = mode_of(autoscaler)
        is_asked = mode == names.HPA_CENTRALIZED or (self._acts_by_default and mode != names.HPA_DISTRIBUTED)
        return is_asked and self._is_divided(autoscaler)

    async def find(self, autoscaler: Object) -> Scale | None:
        """Return the scale of the target, None without one."""
        group, kind, namespace, name = target_of(autoscaler)
        if _is_united(autoscaler):
            united = self._uniteds.get(namespace, name)
            return None if united is None else Scale.of(UNITED_DEPLOYMENTS, united)
        type_ = self._objects.types.for_group_kind(group, kind)
        if type_ is None:
            return None
        try:
            return Scale.of(type_.resource, await self._client.get(type_.resource, name, namespace))
        except NotFound:
            return None

    async def measure(self, scale: Scale, metrics: Sequence[Mapping[str, Any]]) -> Measurements:
        """Return the pods of all members that the scale's selector matches, with the metrics of the autoscaler."""
        selector = _selector_of(scale)
        if not selector:
            return Measurements((), problem="the target has no selector yet", is_complete=False)
        try:
            wanted = parse_label_selector(selector)
        except BadRequest as error:
            return Measurements((), problem=error.message, is_complete=False)
        pods_of = partial(self._cached_pods, wanted=wanted)
        clusters = sorted(cluster["metadata"]["name"] for cluster in self._clusters.list())
        if scale.resource != UNITED_DEPLOYMENTS:
            pods_of, clusters = partial(self._requested_pods, selector=selector), self._clusters_of(scale)
        namespace = scale.target["metadata"]["namespace"]
        found = await asyncio.gather(*(self._measure_in(cluster, namespace, selector, pods_of) for cluster in clusters))
        samples = {cluster: measured.samples for cluster, measured in zip(clusters, found, strict=True)}
        custom = CustomMetrics(self._ready_client, self._resource_of, namespace, selector)
        values = await asyncio.gather(*(custom.measure(metric, samples) for metric in metrics))
        problems = [measured.problem for measured in found if measured.problem]
        return Measurements(
            [sample for measured in found for sample in measured.samples],
            {place: value for place, value in enumerate(values) if value is not None},
            "; ".join(dict.fromkeys([*problems, *custom.problems])),
            is_complete=all(measured.is_complete for measured in found),
        )

    async def _measure_in(self, cluster: str, namespace: str, selector: str, pods_of: PodsOf) -> Measurements:
        try:
            pods = await pods_of(cluster, namespace)
        except (ApiError, ClusterError) as error:
            problem = f"the pods of cluster {cluster} are not known: {error}"
            return Measurements((), problem=problem, is_complete=False)
        if pods is None:
            return Measurements((), problem=f"the pods of cluster {cluster} are not known", is_complete=False)
        if not pods:
            return Measurements(())
        if not self._is_ready(cluster):
            return Measurements([Sample(pod) for pod in pods], problem=f"cluster {cluster} is not ready")
        try:
            metrics = await self._metrics(cluster, namespace, selector)
        except (ApiError, ClusterError) as error:
            problem = f"cluster {cluster} has no metrics: {error}"
            return Measurements([Sample(pod) for pod in pods], problem=problem)
        return Measurements([Sample(pod, metrics.get(pod["metadata"]["name"])) for pod in pods])

    def _ready_client(self, cluster: str) -> Client | None:
        return self._members.client(cluster) if self._is_ready(cluster) else None

    def _resource_of(self, group: str, kind: str) -> Resource | None:
        type_ = self._objects.types.for_group_kind(group, kind)
        return type_.resource if type_ is not None else None

    async def _cached_pods(self, cluster: str, namespace: str, wanted: Selector) -> list[Object] | None:
        """Return the pods of a UnitedDeployment; None while the cache of the cluster is incomplete."""
        informer = self._members.ensure_selected_informer(
            cluster, PODS, names.SUBSET_NAME_LABEL, transform=drop_managed_fields
        )
        if informer is None or not informer.has_synced:
            return None
        return [pod for pod in informer.list(namespace) if wanted.matches(pod["metadata"].get("labels") or {})]

    async def _requested_pods(self, cluster: str, namespace: str, selector: str) -> list[Object] | None:
        """Request the pods of another workload; None from a cluster that is not ready."""
        if not self._is_ready(cluster):
            return None
        listed = self._members.client(cluster).list_all(PODS, namespace, label_selector=selector, limit=_PODS_PER_PAGE)
        return [pod async for pod in listed]

    def _is_divided(self, autoscaler: Object) -> bool:
        group, kind, namespace, name = target_of(autoscaler)
        federated = self._federated(group, kind, namespace, name)
        type_ = self._objects.types.for_group_kind(group, kind)
        if federated is None or type_ is None:
            return False
        replicas = current_clusters(federated, type_).values()
        return bool(replicas) and None not in replicas

    def _clusters_of(self, scale: Scale) -> list[str]:
        metadata = scale.target["metadata"]
        resource = scale.resource
        federated = self._federated(resource.group, resource.kind, metadata["namespace"], metadata["name"])
        return sorted(effective_placement(federated)) if federated is not None else []

    def _federated(self, group: str, kind: str, namespace: str, name: str) -> Object | None:
        type_ = self._objects.types.for_group_kind(group, kind)
        return None if type_ is None else self._objects.get(self._objects.key_for(type_, namespace, name))

    async def _metrics(self, cluster: str, namespace: str, selector: str) -> dict[str, PodMetric | None]:
        client = self._members.client(cluster)
        listed: Sequence[Object] = (await client.list(POD_METRICS, namespace, label_selector=selector)).items
        return {each["metadata"]["name"]: to_metric(each) for each in listed}

    def _is_ready(self, cluster: str) -> bool:
        found = self._clusters.get("", cluster) or {}
        return is_true((found.get("status") or {}).get("conditions"), names.CLUSTER_READY)


def _is_united(autoscaler: Object) -> bool:
    return target_of(autoscaler)[:2] == (UNITED_DEPLOYMENTS.group, UNITED_DEPLOYMENTS.kind)


def _selector_of(scale: Scale) -> str:
    """Return the selector of the target's pods as text, "" while there is none."""
    if scale.resource == UNITED_DEPLOYMENTS:
        return str((scale.target.get("status") or {}).get("labelSelector") or "")
    return format_label_selector(scale.target["spec"].get("selector") or {})
