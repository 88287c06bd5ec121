"""The simulated EndpointSlice controller: the addresses of the pods that a Service selects.

As in Kubernetes a slice holds up to 100 endpoints with the same ports; an endpoint stays in its slice, a new one fills
a slice with room, and a Service with a selector has at least one slice. Legacy Endpoints are not written.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.errors import NotFound
from federation.apimachinery.ownerreferences import controller_reference, controller_uids
from federation.apimachinery.resources import ENDPOINT_SLICES, NODES, PODS, SERVICES, Object
from federation.apimachinery.selectors import Selector, compile_label_map
from federation.runtime.controller import Controller, Key, Result, key_of
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.claiming import BY_OWNER
from federation.simulator.controllers.memberparts import Member
from federation.simulator.controllers.selections import Selections

_DONE = Result()
_ENDPOINTS_MAX = 100
_SERVICE_LABEL = "kubernetes.io/service-name"
_MANAGED_LABEL = "endpointslice.kubernetes.io/managed-by"
_HEADLESS_LABEL = "service.kubernetes.io/headless"
_MANAGER = "endpointslice-controller.k8s.io"
_ZONE_LABEL = "topology.kubernetes.io/zone"

Ports = list[dict[str, Any]]


class EndpointSliceController:
    """Reconciles the EndpointSlices of one member; its keys are Services."""

    def __init__(self, member: Member) -> None:
        self._client = member.client
        self._services = services = member.cache(SERVICES)
        self._nodes = member.cache(NODES)
        self._slices = slices = member.cache(ENDPOINT_SLICES)
        pods = member.cache(PODS)
        self._selections = Selections(services, pods, _required_labels, _selector_of)
        self.controller = Controller("sim-endpointslice", self._reconcile, workers=2, clock=member.clock)
        slices.add_index(BY_OWNER, controller_uids)
        services.add_handler(self._service_changed)
        pods.add_handler(self._pod_changed)
        slices.add_handler(self._slice_changed)

    def _service_changed(self, old: Object | None, new: Object | None) -> None:
        if (
            old
            and new
            and old["spec"] == new["spec"]
            and old["metadata"].get("labels") == new["metadata"].get("labels")
        ):
            return
        self.controller.enqueue(key_of(new or old or {}))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if old and new and _endpoint_facts(old) == _endpoint_facts(new):
            return
        for pod in (old, new):
            for service in self._selections.selecting(pod) if pod is not None else ():
                self.controller.enqueue(key_of(service))

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None and (key := podsof.owner_key(old, "Service")) is not None:
            self.controller.enqueue(key)

    async def _reconcile(self, key: Key) -> Result:
        service = self._services.get(key.namespace, key.name)
        if service is None or podsof.is_terminating(service):
            return _DONE  # the garbage collector deletes the slices of a deleted Service
        live = sorted(
            self._slices.by_index(BY_OWNER, service["metadata"]["uid"]), key=lambda s: str(s["metadata"]["name"])
        )
        groups = self._group_endpoints(service)
        labels = _labels_of(service)
        revision = ""
        for wanted, existing in plan_slices(groups, live):
            revision = await self._write(service, labels, wanted, existing) or revision
        if revision:
            await self._slices.wait_for(revision)
        return _DONE

    def _group_endpoints(self, service: Object) -> list[tuple[Ports, dict[str, Object]]]:
        """Return the endpoints by uid of their pods, in groups with the same ports; one empty group without any."""
        if _required_labels(service) is None:
            return []
        groups: list[tuple[Ports, dict[str, Object]]] = []
        for pod in self._selections.pods_of(service):
            if podsof.is_finished(pod) or not (pod.get("status") or {}).get("podIP"):
                continue
            ports = to_ports(service, pod)
            endpoints = next((known for each, known in groups if each == ports), None)
            if endpoints is None:
                groups.append((ports, endpoints := {}))
            endpoints[pod["metadata"]["uid"]] = self._to_endpoint(service, pod)
        return groups or [([], {})]

    def _to_endpoint(self, service: Object, pod: Object) -> Object:
        meta, spec = pod["metadata"], pod["spec"]
        is_serving, is_terminating = podsof.is_ready(pod), podsof.is_terminating(pod)
        is_published = bool(service["spec"].get("publishNotReadyAddresses"))
        endpoint: Object = {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {
                "ready": is_published or (is_serving and not is_terminating),
                "serving": is_serving,
                "terminating": is_terminating,
            },
            "targetRef": {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]},
        }
        if spec.get("hostname") and spec.get("subdomain") == service["metadata"]["name"]:
            endpoint["hostname"] = spec["hostname"]
        if spec.get("nodeName"):
            endpoint["nodeName"] = spec["nodeName"]
            node = self._nodes.get("", spec["nodeName"])
            if zone := ((node or {}).get("metadata", {}).get("labels") or {}).get(_ZONE_LABEL):
                endpoint["zone"] = zone
        return endpoint

    async def _write(self, service: Object, labels: Object, wanted: Object | None, live: Object | None) -> str:
        """Create, update or delete one slice; return the revision of the write, "" when there was none."""
        meta = service["metadata"]
        if wanted is None:
            if live is not None:
                name = live["metadata"]["name"]
                try:
                    await self._client.delete(ENDPOINT_SLICES, name, meta["namespace"], uid=live["metadata"]["uid"])
                except NotFound:
                    return ""
            return ""
        if live is None:
            created = await self._client.create(
                ENDPOINT_SLICES,
                {
                    "apiVersion": ENDPOINT_SLICES.api_version,
                    "kind": ENDPOINT_SLICES.kind,
                    "metadata": {
                        "generateName": f"{meta['name']}-",
                        "namespace": meta["namespace"],
                        "labels": labels,
                        "ownerReferences": [controller_reference(service, SERVICES.api_version, SERVICES.kind)],
                    },
                    "addressType": "IPv4",
                    **wanted,
                },
            )
            return str(created["metadata"]["resourceVersion"])
        if all(live.get(key) == value for key, value in wanted.items()) and live["metadata"].get("labels") == labels:
            return ""
        updated = await self._client.update(
            ENDPOINT_SLICES, {**live, "metadata": {**live["metadata"], "labels": labels}, **wanted}
        )
        return str(updated["metadata"]["resourceVersion"])


def plan_slices(
    groups: Sequence[tuple[Ports, Mapping[str, Object]]], live: Sequence[Object]
) -> list[tuple[Object | None, Object | None]]:
    """Return the wanted content and the live slice that gets it; None is to be created or deleted."""
    free = list(live)
    planned: list[tuple[Object | None, Object | None]] = []
    for ports, endpoints in groups:
        own = [each for each in free if (each.get("ports") or []) == ports] or free[:1]
        free = [each for each in free if each not in own]
        left = dict(endpoints)
        contents: list[tuple[list[Object], Object | None]] = []
        for each in own:
            uids = [endpoint.get("targetRef", {}).get("uid") for endpoint in each.get("endpoints") or ()]
            contents.append(([left.pop(uid) for uid in uids if uid in left], each))
        for endpoint in left.values():
            room = next((kept for kept, _ in contents if len(kept) < _ENDPOINTS_MAX), None)
            if room is None:
                contents.append((room := [], None))
            room.append(endpoint)
        filled = [content for content in contents if content[0]] or contents[:1] or [([], None)]
        planned += [({"endpoints": kept, "ports": ports}, slice_) for kept, slice_ in filled]
        planned += [(None, slice_) for kept, slice_ in contents if not any(slice_ is used for _, used in filled)]
    return [*planned, *((None, each) for each in free)]


def to_ports(service: Object, pod: Object) -> Ports:
    """Return the Service's ports as numbers of this pod; a name that no container has is left out."""
    ports: Ports = []
    for port in service["spec"].get("ports") or ():
        target = port.get("targetPort", port["port"])
        protocol = port.get("protocol", "TCP")
        if isinstance(target, str):
            target = next(
                (
                    each["containerPort"]
                    for container in pod["spec"].get("containers", ())
                    for each in container.get("ports") or ()
                    if each.get("name") == target and each.get("protocol", "TCP") == protocol
                ),
                None,
            )
        if target is not None:
            app = {"appProtocol": port["appProtocol"]} if "appProtocol" in port else {}
            ports.append({"name": port.get("name", ""), "protocol": protocol, "port": target or port["port"], **app})
    return ports


def _required_labels(service: Object) -> Mapping[str, str] | None:
    """Return the selector; None when somebody else writes the endpoints, or there are none."""
    if service["spec"].get("type") == "ExternalName":
        return None
    selector: Mapping[str, str] | None = service["spec"].get("selector")
    return selector or None


def _selector_of(service: Object) -> Selector:
    return compile_label_map(service["spec"].get("selector"))


def _labels_of(service: Object) -> Object:
    labels = {k: v for k, v in (service["metadata"].get("labels") or {}).items() if k != _HEADLESS_LABEL}
    if service["spec"].get("clusterIP") in (None, "", "None"):
        labels[_HEADLESS_LABEL] = ""
    return {**labels, _SERVICE_LABEL: service["metadata"]["name"], _MANAGED_LABEL: _MANAGER}


def _endpoint_facts(pod: Object) -> tuple[Any, ...]:
    return (
        pod["metadata"].get("labels"),
        podsof.is_terminating(pod),
        podsof.is_finished(pod),
        podsof.is_ready(pod),
        (pod.get("status") or {}).get("podIP"),
    )
