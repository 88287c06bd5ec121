"""Transforms for informers: they remove the fields of cached objects that no decision reads, to save memory.

Members hold many pods, and the federation only sums their requests. Managed fields are often the larger half of an
object, and no reader of a cache needs them. Results keep Kubernetes' shape, so that planners read full and slim objects
alike. `members.py` uses them.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import Object

_NAME_MAX = 317
"""The longest label key: a prefix of 253 characters, a slash and a name of 63."""
_LABELS_MAX = 512
_TAINTS_MAX = 128
_RESOURCES_MAX = 128
_ALLOCATED = ("f:clusterIP", "f:clusterIPs", "f:healthCheckNodePort", "f:ipFamilies", "f:ipFamilyPolicy")
_ADMITTED = (
    "f:storageClassName",
    "f:ingressClassName",
    "f:imagePullSecrets",
    "f:overhead",
    "f:priorityClassName",
    "f:serviceAccount",
    "f:serviceAccountName",
)
_OF_ADMITTED = ("f:accessModes", "f:rules", "f:defaultBackend", "f:containers")
"""Fields that a user always writes where admission may fill in another one: they show that there is a record."""

_KEPT = (*_ALLOCATED, *_ADMITTED, *_OF_ADMITTED)
_CONTAINERS = ("f:containers", "f:initContainers")


def drop_managed_fields(obj: Object) -> Object:
    """Return the object without metadata.managedFields, except what decisions read of them.

    A manager of the subresource `scale` owns the replicas; `planning/rendering/retention.py` reads that. Who wrote an
    address or port that API servers also allocate is read by `planning/federatedobject/allocations.py`, and who wrote a
    class that admission fills in by `admitted.py` beside it.
    """
    managed = obj["metadata"].pop("managedFields", None)
    if isinstance(managed, list):
        kept = [read for entry in managed if isinstance(entry, dict) and (read := _read_part(entry))]
        if kept:
            obj["metadata"]["managedFields"] = kept
    return obj


def _read_part(entry: Object) -> Object | None:
    """Return the part of an entry that decisions read, None without one; the order of keys is always the same."""
    if subresource := entry.get("subresource"):
        return {"manager": entry.get("manager"), "subresource": "scale"} if subresource == "scale" else None
    fields = entry.get("fieldsV1")
    spec = fields.get("f:spec") if isinstance(fields, dict) else None
    if not isinstance(spec, dict):
        return None
    kept: Object = {field: {} for field in _KEPT if field in spec}
    for field in _CONTAINERS:
        if field in spec and (amounts := _amounts_of(spec[field])):
            kept[field] = amounts
    ports = spec.get("f:ports")
    if isinstance(ports, dict):
        numbered = [key for key, port in ports.items() if isinstance(port, dict) and "f:nodePort" in port]
        if numbered:
            kept["f:ports"] = {key: {"f:nodePort": {}} for key in numbered}
    return {"fieldsV1": {"f:spec": kept}} if kept else None


def _amounts_of(containers: Any) -> Object:
    """Return who wrote requests and limits of a Pod's containers: a LimitRange may have filled in others."""
    kept: Object = {}
    for key, container in containers.items() if isinstance(containers, dict) else ():
        resources = container.get("f:resources") if isinstance(container, dict) else None
        if isinstance(resources, dict):
            parts = {
                part: resources[part] for part in ("f:limits", "f:requests") if isinstance(resources.get(part), dict)
            }
            if parts:
                kept[key] = {"f:resources": parts}
    return kept


def slim_node(node: Object) -> Object:
    """Return what capacity needs of a Node: labels, taints, allocatable, readiness, whether it takes pods.

    ValueError for more of them than a node can have: the sums are made on the event loop.
    """
    spec, status = node.get("spec") or {}, node.get("status") or {}
    labels, amounts = node["metadata"].get("labels") or {}, status.get("allocatable") or {}
    if (
        len(labels) > _LABELS_MAX
        or any(len(key) > _NAME_MAX or len(value) > _NAME_MAX for key, value in labels.items())
        or len(spec.get("taints") or ()) > _TAINTS_MAX
        or len(amounts) > _RESOURCES_MAX
    ):
        raise ValueError("the node has too many labels, taints or resources, or too long ones")
    slim_spec = {key: spec[key] for key in ("unschedulable", "taints") if spec.get(key)}
    conditions = [
        {"type": condition["type"], "status": condition.get("status")}
        for condition in status.get("conditions") or ()
        if condition.get("type") == "Ready"
    ]
    slim_status = {"allocatable": status.get("allocatable") or {}, "conditions": conditions}
    return {"metadata": _metadata(node, labels=True), "spec": slim_spec, "status": slim_status}


def slim_claim(claim: Object) -> Object:
    """Return what decisions need of a PersistentVolumeClaim: its name, its age, and whether it has a volume."""
    metadata, volume = _metadata(claim), (claim.get("spec") or {}).get("volumeName")
    metadata |= {key: at for key in ("creationTimestamp", "deletionTimestamp") if (at := claim["metadata"].get(key))}
    return {"metadata": metadata, "spec": {"volumeName": str(volume)} if volume else {}}


def slim_pod(pod: Object) -> Object:
    """Return what capacity and auto-migration need of a Pod: its requests, its node, its phase and its controller.

    Only a pod without a node keeps its PodScheduled condition, which adds nothing for others.
    """
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    slim_spec: Object = {"containers": _requests_of(spec.get("containers"))}
    if spec.get("initContainers"):
        slim_spec["initContainers"] = _requests_of(spec["initContainers"])
    _check_resources(spec.get("overhead"))
    for key in ("overhead", "nodeName", "resources"):
        if spec.get(key):
            slim_spec[key] = spec[key]
    slim_status: Object = {"phase": status.get("phase", "")}
    if not spec.get("nodeName") and status.get("conditions"):
        slim_status["conditions"] = [c for c in status["conditions"] if c.get("type") == "PodScheduled"]
    metadata = _metadata(pod)
    if (controller := controller_of(pod)) is not None:
        parts = (controller.get("kind"), controller.get("name"), controller.get("uid"))
        metadata["ownerReferences"] = _shared_reference(*map(str, parts))
    if deleted := pod["metadata"].get("deletionTimestamp"):
        metadata["deletionTimestamp"] = deleted
    return {"metadata": metadata, "spec": slim_spec, "status": slim_status}


def slim_definition(definition: Object) -> Object:
    """Return a CustomResourceDefinition of which each schema has only the types of the fields of the status.

    A host with many operators has tens of megabytes of schemas.
    """
    definition["metadata"].pop("annotations", None)
    definition["metadata"].pop("managedFields", None)
    for version in definition["spec"].get("versions") or ():
        schema: Any = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        for name in ("properties", "status", "properties"):
            schema = schema.get(name) or {}
        types = {field: {"type": value["type"]} for field, value in schema.items() if "type" in value}
        version["schema"] = {"openAPIV3Schema": {"properties": {"status": {"properties": types}}}}
    return definition


@lru_cache(maxsize=65536)
def _shared_reference(kind: str, name: str, uid: str) -> list[Object]:
    """Return one list for all pods of a ReplicaSet: thousands of them would repeat it."""
    return [{"kind": kind, "name": name, "uid": uid, "controller": True}]


def _requests_of(containers: Any) -> list[Object]:
    slim: list[Object] = []
    for container in containers or ():
        kept: Object = {}
        requests: Mapping[str, str] = (container.get("resources") or {}).get("requests") or {}
        _check_resources(requests)
        if requests:
            kept["resources"] = {"requests": requests}
        if container.get("restartPolicy"):
            kept["restartPolicy"] = container["restartPolicy"]
        slim.append(kept)
    return slim


def _check_resources(amounts: Any) -> None:
    """Raise ValueError for more resources than a pod can use."""
    if len(amounts or ()) > _RESOURCES_MAX:
        raise ValueError("a pod requests too many resources")


def _metadata(obj: Object, *, labels: bool = False) -> Object:
    metadata = obj["metadata"]
    slim = {key: metadata[key] for key in ("name", "namespace", "resourceVersion") if key in metadata}
    if labels:
        slim["labels"] = metadata.get("labels") or {}
    return slim
