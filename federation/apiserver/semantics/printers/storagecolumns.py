"""Printers of volumes, claims, storage classes and the objects of storage drivers."""

from datetime import datetime
from typing import Any

from federation.apimachinery.resources import Object
from federation.apiserver.semantics.printers.table import NONE, Row, age, created, name_of, part, printers

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _volume(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        (spec.get("capacity") or {}).get("storage", ""),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        f"{claim.get('namespace')}/{claim.get('name')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _claim(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    is_bound = bool(spec.get("volumeName"))
    return [
        name_of(obj),
        "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "") if is_bound else "",
        _modes(status.get("accessModes")) if is_bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _modes(modes: Any) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes or ())


def _storage_class(obj: Object, now: datetime) -> list[Any]:
    is_default = (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return [
        name_of(obj) + (" (default)" if is_default else ""),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _driver(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    requests = spec.get("tokenRequests")
    return [
        name_of(obj),
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        "<unset>" if requests is None else ",".join(request.get("audience", "") for request in requests),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now),
    ]


def _storage_node(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), len(part(obj, "spec").get("drivers") or ()), age(obj, now)]


def _attachment(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    volume = (spec.get("source") or {}).get("persistentVolumeName") or ""
    attached = bool(part(obj, "status").get("attached"))
    return [name_of(obj), spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, age(obj, now)]


_DRIVER_COLUMNS = (
    "Name|AttachRequired:boolean|PodInfoOnMount:boolean|StorageCapacity:boolean|TokenRequests|"
    "RequiresRepublish:boolean|Modes|Age"
)
_TABLES: dict[str, tuple[str, str, Row]] = {
    "persistentvolumes": (
        "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age",
        "VolumeMode",
        _volume,
    ),
    "persistentvolumeclaims": (
        "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age",
        "VolumeMode",
        _claim,
    ),
    "storageclasses.storage.k8s.io": (
        "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age",
        "",
        _storage_class,
    ),
    "csidrivers.storage.k8s.io": (
        _DRIVER_COLUMNS,
        "",
        _driver,
    ),
    "csinodes.storage.k8s.io": ("Name|Drivers:integer|Age", "", _storage_node),
    "csistoragecapacities.storage.k8s.io": ("Name|Created At:date", "", created),
    "volumeattachments.storage.k8s.io": ("Name|Attacher|PV|Node|Attached:boolean|Age", "", _attachment),
}

PRINTERS = printers(_TABLES)
