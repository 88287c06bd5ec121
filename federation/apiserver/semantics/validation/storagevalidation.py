"""Validate StorageClasses, CSIDrivers, CSINodes and VolumeAttachments: checks of the rules of their strategies."""

from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, duplicate, not_supported, problems_of, required

_LIFECYCLE_MODES = ("Ephemeral", "Persistent")


def has_lifecycle_modes(modes: Any, field: str) -> Causes:
    """Check the lifecycle modes of a CSIDriver. The path has no index, as in kube-apiserver."""
    return [not_supported(field, mode or "", _LIFECYCLE_MODES) for mode in modes or () if mode not in _LIFECYCLE_MODES]


def has_topology_keys(driver: Any, field: str) -> Causes:
    """Check the topology keys of a driver on a node. The path is that of the driver, as in kube-apiserver."""
    causes: Causes = []
    seen: set[str] = set()
    for key in (driver or {}).get("topologyKeys") or ():
        text = key or ""
        if text in seen:
            causes.append(duplicate(field, text))
        seen.add(text)
        causes += [] if text else [required(field)]
        causes += problems_of(field, text, nameformats.qualified_name(text))
    return causes


def has_attached_source(source: Any, field: str) -> Causes:
    """Check what a VolumeAttachment attaches."""
    volume, inline = (source or {}).get("persistentVolumeName"), (source or {}).get("inlineVolumeSpec")
    if (volume is None) is (inline is None):
        return [required(field, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")]
    if volume is None:
        return []
    at = f"{field}.persistentVolumeName"
    causes = [] if volume else [required(at, "must specify non empty persistentVolumeName")]
    return causes + problems_of(at, volume, nameformats.dns1123_subdomain(volume))


def has_topologies(terms: Any, field: str) -> Causes:
    """Check the allowed topologies of a StorageClass."""
    causes: Causes = []
    seen: list[Any] = []
    for index, term in enumerate(terms or ()):
        at = f"{field}[{index}].matchLabelExpressions"
        values: dict[str, set[str]] = {}
        for number, requirement in enumerate((term or {}).get("matchLabelExpressions") or ()):
            causes += _validate_topology(requirement or {}, f"{at}[{number}]", values)
        if values in seen or not values:
            causes.append(duplicate(at, ""))
        seen.append(values)
    return causes


def _validate_topology(requirement: dict[str, Any], field: str, found: dict[str, set[str]]) -> Causes:
    key, values = requirement.get("key") or "", requirement.get("values") or ()
    causes: Causes = []
    if not values:
        causes.append(required(f"{field}.values"))
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            causes.append(duplicate(f"{field}.values[{index}]", value))
        seen.add(value)
    causes += problems_of(f"{field}.key", key, nameformats.qualified_name(key))
    if key in found:
        causes.append(duplicate(f"{field}.key", key))
    found[key] = seen
    return causes
