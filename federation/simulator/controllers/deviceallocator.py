"""Devices in a simulated member: claims of pods are made from their templates, and allocated when a pod gets a node.

The part of kube-controller-manager and of kube-scheduler for resource.k8s.io in one. Devices are whole: partitions are
not simulated. A pod that has ended gives back what its templates made; what it claimed by name stays allocated.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from federation.admission.deviceselectors import selects
from federation.apimachinery.errors import AlreadyExists, NotFound
from federation.apimachinery.resources import (
    DEVICE_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Object,
)
from federation.client.client import Client
from federation.planning.clusters.deviceclaims import Alternative, requests_in
from federation.planning.clusters.deviceinventory import DeviceId, allocated_devices, read_kind
from federation.planning.clusters.devicekinds import Kind
from federation.runtime.informers import Informers

Plan = list[tuple[str, list[tuple[str, DeviceId]]]]
"""Claims with what they get: the name of the request, and the device."""


class DeviceAllocator:
    """The claims of one member's pods. Owned by its pod scheduler, which asks for one pod at a time."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self.slices = informers.for_resource(RESOURCE_SLICES)
        self.claims = informers.for_resource(RESOURCE_CLAIMS)
        self.templates = informers.for_resource(RESOURCE_CLAIM_TEMPLATES)
        self._classes = informers.for_resource(DEVICE_CLASSES)
        self._taken: dict[str, set[DeviceId]] = {}
        """Devices by claim that an informer may not show yet."""

    async def prepare(self, pod: Object) -> str:
        """Create the claims of a pod; return why it cannot be scheduled yet, "" if it can."""
        for entry in pod["spec"].get("resourceClaims") or ():
            name = claim_name(pod, entry)
            if self.claims.get(pod["metadata"]["namespace"], name) is not None:
                continue
            template = self.templates.get(pod["metadata"]["namespace"], entry.get("resourceClaimTemplateName") or "")
            if template is None:
                return f'waiting for resource claim "{name}" to be created'
            with contextlib.suppress(AlreadyExists):
                await self._client.create(RESOURCE_CLAIMS, _from_template(pod, name, entry["name"], template))
            return f'waiting for resource claim "{name}" to be created'
        return ""

    def plan(self, pod: Object, node: str) -> Plan | None:
        """Return what the claims of a pod get on a node, None if it does not have that."""
        used = {device for claim in self.claims.list() for device in allocated_devices(claim)}
        used |= {device for taken in self._taken.values() for device in taken}
        plan: Plan = []
        for entry in pod["spec"].get("resourceClaims") or ():
            claim = self.claims.get(pod["metadata"]["namespace"], claim_name(pod, entry))
            if claim is None:
                return None
            if (claim.get("status") or {}).get("allocation"):
                continue
            results = []
            for name, request in zip(_names(claim), requests_in(claim), strict=False):
                found = next((got for each in request.alternatives if (got := self._find(each, node, used))), None)
                if found is None:
                    return None
                used |= set(found)
                results += [(name, device) for device in found]
            plan.append((str(claim["metadata"]["name"]), results))
        return plan

    async def allocate(self, pod: Object, plan: Plan) -> None:
        """Write the allocations of a pod."""
        metadata = pod["metadata"]
        consumer = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
        for name, results in plan:
            self._taken[name] = {device for _, device in results}
            devices = [
                {"request": request, "driver": driver, "pool": pool, "device": device}
                for request, (driver, pool, device) in results
            ]
            body = {"status": {"allocation": {"devices": {"results": devices}}, "reservedFor": [consumer]}}
            await self._client.patch(RESOURCE_CLAIMS, name, body, namespace=metadata["namespace"], subresource="status")

    async def release(self, pod: Object) -> None:
        """Delete the claims that were made for a pod which has ended."""
        for entry in pod["spec"].get("resourceClaims") or ():
            name = claim_name(pod, entry)
            self._taken.pop(name, None)
            if entry.get("resourceClaimTemplateName"):
                try:
                    await self._client.delete(RESOURCE_CLAIMS, name, namespace=pod["metadata"]["namespace"])
                except NotFound:
                    continue

    def _find(self, each: Alternative, node: str, used: set[DeviceId]) -> list[DeviceId] | None:
        """Return free devices of a node for an alternative, None without enough."""
        source = self._classes.get("", each.device_class)
        if source is None:
            return None
        of_class = [entry["cel"]["expression"] for entry in source["spec"].get("selectors") or () if entry.get("cel")]
        matching = [
            device
            for device, kind in self._devices(node)
            if all(selects(text, kind) for text in (*of_class, *each.selectors))
        ]
        free = [device for device in matching if device not in used]
        if not each.count:
            return free if free and len(free) == len(matching) else None
        return free[: each.count] if len(free) >= each.count else None

    def _devices(self, node: str) -> Iterator[tuple[DeviceId, Kind]]:
        for source in self.slices.list():
            spec = source["spec"]
            if spec.get("nodeName") == node:
                for device in spec.get("devices") or ():
                    yield (spec["driver"], spec["pool"]["name"], device["name"]), read_kind(spec["driver"], device)


def claim_name(pod: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """Return the name of the claim that an entry of a pod's `resourceClaims` stands for."""
    own = entry.get("resourceClaimName")
    return str(own) if own else f"{pod['metadata']['name']}-{entry['name']}"


def _names(claim: Mapping[str, Any]) -> list[str]:
    requests = (claim["spec"].get("devices") or {}).get("requests") or ()
    return [str(request["name"]) for request in requests]


def _from_template(pod: Object, name: str, entry: str, template: Object) -> Object:
    metadata = pod["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "annotations": {"resource.kubernetes.io/pod-claim-name": entry},
            "ownerReferences": [owner],
        },
        "spec": template["spec"]["spec"],
    }
