"""The targets of the autoscalers on the host: UnitedDeployments, with pods and metrics in all members.

A stock HorizontalPodAutoscaler on the host that no policy delivers to members acts here. Pods are cached, and metrics
are requested from `metrics.k8s.io` of every member that has pods of the target. A member that is not ready, or whose
metrics cannot be read, has pods without metrics.
"""

import asyncio
from collections.abc import Sequence

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, UNITED_DEPLOYMENTS
from federation.apimachinery.conditions import is_true
from federation.apimachinery.errors import ApiError, BadRequest, ClusterError
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, POD_METRICS, PODS, Object
from federation.apimachinery.selectors import Selector, parse_label_selector
from federation.controllers.horizontalautoscaler.scaletargets import Measured, Scale
from federation.planning.autoscaling.podmetrics import PodMetric, Sample, to_metric
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.status.idleautoscaler import target_of
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.informers import Informers
from federation.runtime.members import Members
from federation.runtime.transforms import drop_managed_fields


class MemberScales:
    """The UnitedDeployments of the host and their pods in the members. Lives as long as the control plane."""

    def __init__(self, objects: FederatedObjects, informers: Informers, members: Members) -> None:
        self._objects = objects
        self._members = members
        self._uniteds = informers.for_resource(UNITED_DEPLOYMENTS)
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)

    async def wait_synced(self) -> None:
        """Wait until targets, clusters and placements are cached."""
        await asyncio.gather(self._uniteds.wait_synced(), self._clusters.wait_synced(), self._objects.wait_synced())

    def is_responsible(self, autoscaler: Object) -> bool:
        """Return True for an autoscaler of a UnitedDeployment that acts in no member."""
        if target_of(autoscaler)[:2] != (UNITED_DEPLOYMENTS.group, UNITED_DEPLOYMENTS.kind):
            return False
        resource, metadata = HORIZONTAL_POD_AUTOSCALERS, autoscaler["metadata"]
        type_ = self._objects.types.for_group_kind(resource.group, resource.kind)
        if type_ is None:
            return True
        federated = self._objects.get(self._objects.key_for(type_, metadata["namespace"], metadata["name"]))
        return federated is None or not effective_placement(federated)

    def find(self, autoscaler: Object) -> Scale | None:
        """Return the scale of the UnitedDeployment, None without one."""
        *_, namespace, name = target_of(autoscaler)
        united = self._uniteds.get(namespace, name)
        return None if united is None else Scale.of(UNITED_DEPLOYMENTS, united)

    async def measure(self, scale: Scale) -> Measured:
        """Return the pods of all members that the scale's selector matches, with their metrics."""
        namespace = scale.target["metadata"]["namespace"]
        selector = (scale.target.get("status") or {}).get("labelSelector") or ""
        if not selector:
            return Measured((), "the target has no selector yet", is_complete=False)
        try:
            wanted = parse_label_selector(selector)
        except BadRequest as error:
            return Measured((), error.message, is_complete=False)
        clusters = sorted(cluster["metadata"]["name"] for cluster in self._clusters.list())
        found = await asyncio.gather(*(self._measure_in(cluster, namespace, wanted, selector) for cluster in clusters))
        return Measured(
            [sample for measured in found for sample in measured.samples],
            "; ".join(measured.problem for measured in found if measured.problem),
            is_complete=all(measured.is_complete for measured in found),
        )

    async def _measure_in(self, cluster: str, namespace: str, wanted: Selector, selector: str) -> Measured:
        informer = self._members.ensure_selected_informer(
            cluster, PODS, names.SUBSET_NAME_LABEL, transform=drop_managed_fields
        )
        if informer is None or not informer.has_synced:
            return Measured((), f"the pods of cluster {cluster} are not known", is_complete=False)
        pods = [pod for pod in informer.list(namespace) if wanted.matches(pod["metadata"].get("labels") or {})]
        if not pods:
            return Measured(())
        if not self._is_ready(cluster):
            return Measured([Sample(pod) for pod in pods], f"cluster {cluster} is not ready")
        try:
            metrics = await self._metrics(cluster, namespace, selector)
        except (ApiError, ClusterError) as error:
            return Measured([Sample(pod) for pod in pods], f"cluster {cluster} has no metrics: {error}")
        return Measured([Sample(pod, metrics.get(pod["metadata"]["name"])) for pod in pods])

    async def _metrics(self, cluster: str, namespace: str, selector: str) -> dict[str, PodMetric | None]:
        client = self._members.client(cluster)
        listed: Sequence[Object] = (await client.list(POD_METRICS, namespace, label_selector=selector)).items
        return {each["metadata"]["name"]: to_metric(each) for each in listed}

    def _is_ready(self, cluster: str) -> bool:
        found = self._clusters.get("", cluster) or {}
        return is_true((found.get("status") or {}).get("conditions"), names.CLUSTER_READY)
