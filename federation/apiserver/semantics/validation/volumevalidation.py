"""Validate the volumes of pods, the fields that volumes and variables refer to, and the specs of claims."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery import quantity as quantities
from federation.apimachinery.fielderrors import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    one_of,
    problems_of,
    required,
    too_long,
)
from federation.apimachinery.objectmeta import validate_labels
from federation.apiserver.semantics.validation.quantityvalidation import is_negative, validate_positive_quantity
from federation.apiserver.semantics.validation.selectorvalidation import validate_label_selector

Fields = Mapping[str, Any]

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_MODE_TEXT = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
)
_INITIATOR = re.compile(
    r"(?s:.*)iqn\.\d{4}-\d{2}\.([a-zA-Z0-9.-]+)(:[^,;*&$|\s]+)|eui.[a-zA-Z0-9]{16}|naa.[a-zA-Z0-9]{32}"
)
_VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_VARIABLE_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
_POD_FIELDS = frozenset(
    {*_VOLUME_FIELDS, *_VARIABLE_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"}
)
_RESOURCES = tuple(
    f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_SIZES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_TOKEN_SECONDS_MIN, _TOKEN_SECONDS_MAX = 600, 1 << 32


def validate_volumes(volumes: Sequence[Fields], field: str) -> tuple[dict[str, Fields], Causes]:
    """Return the valid volumes by name, which containers may mount, and the causes of the others."""
    valid: dict[str, Fields] = {}
    causes: Causes = []
    for index, volume in enumerate(volumes):
        at, name = f"{field}[{index}]", volume.get("name") or ""
        found = _validate_volume(volume, at, name)
        found += problems_of(f"{at}.name", name, nameformats.dns1123_label(name)) if name else [required(f"{at}.name")]
        if name in valid:
            found.append(duplicate(f"{at}.name", name))
        if found:
            causes += found
        else:
            valid[name] = volume
    return valid, causes


def _validate_volume(volume: Fields, field: str, name: str) -> Causes:
    sources = [source for source in volume if source != "name"]
    if not sources:
        return [required(field, "must specify a volume type")]
    causes: Causes = []
    first, *others = sorted(sources, key=lambda source: _ORDER.get(source, len(_ORDER)))
    if first in _SOURCES:
        causes += _SOURCES[first](volume[first], f"{field}.{first}")
    causes += [forbidden(f"{field}.{other}", "may not specify more than 1 volume type") for other in others]
    if first == "iscsi" and volume[first].get("initiatorName") is not None:
        portal = volume[first].get("targetPortal") or ""
        if len(f"{name}:{portal}") > 64:
            text = (
                "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName"
            )
            causes.append(invalid(f"{field}.name", name, f"{text} is specified."))
    return causes


def _validate_empty_dir(source: Fields, field: str) -> Causes:
    limit = source.get("sizeLimit")
    if limit is None or not is_negative(limit):
        return []
    return [forbidden(f"{field}.sizeLimit", "SizeLimit field must be a valid resource quantity")]


def validate_host_path(source: Fields, field: str) -> Causes:
    """Validate a path on a node."""
    path = source.get("path") or ""
    if not path:
        return [required(f"{field}.path")]
    return _without_backsteps(path, f"{field}.path") + one_of(f"{field}.type", source.get("type"), _HOST_PATH_TYPES)


def _validate_config_map(source: Fields, field: str) -> Causes:
    return _validate_files(source, field, "name")


def _validate_secret(source: Fields, field: str) -> Causes:
    return _validate_files(source, field, "secretName")


def _validate_files(source: Fields, field: str, name: str) -> Causes:
    causes = [] if source.get(name) else [required(f"{field}.{name}")]
    causes += _validate_mode(source.get("defaultMode"), f"{field}.defaultMode")
    for index, item in enumerate(source.get("items") or ()):
        causes += _validate_item(item, f"{field}.items[{index}]")
    return causes


def _validate_item(item: Fields, field: str) -> Causes:
    causes = [required(f"{field}.{name}") for name in ("key", "path") if not item.get(name)]
    causes += validate_local_path(item.get("path") or "", f"{field}.path")
    return causes + _validate_mode(item.get("mode"), f"{field}.mode")


def _validate_mode(mode: int | None, field: str) -> Causes:
    return [] if mode is None or 0 <= mode <= 0o777 else [invalid(field, mode, _MODE_TEXT)]


def validate_relative_path(path: str, field: str) -> Causes:
    """Require a relative path that does not leave its folder."""
    causes = [invalid(field, path, "must be a relative path")] if path.startswith("/") else []
    return causes + _without_backsteps(path, field)


def validate_local_path(path: str, field: str) -> Causes:
    """Require a relative path that does not start with two dots, which are the kubelet's own files."""
    causes = validate_relative_path(path, field)
    if path.startswith("..") and not path.startswith("../"):
        causes.append(invalid(field, path, "must not start with '..'"))
    return causes


def _without_backsteps(path: str, field: str) -> Causes:
    return [invalid(field, path, "must not contain '..'")] if ".." in path.split("/") else []


def _validate_nfs(source: Fields, field: str) -> Causes:
    causes = [required(f"{field}.{name}") for name in ("server", "path") if not source.get(name)]
    path = source.get("path") or ""
    return causes if path.startswith("/") else [*causes, invalid(f"{field}.path", path, "must be an absolute path")]


def _validate_iscsi(source: Fields, field: str) -> Causes:
    causes = [] if source.get("targetPortal") else [required(f"{field}.targetPortal")]
    name, lun = source.get("iqn") or "", source.get("lun") or 0
    causes += _validate_initiator(name, f"{field}.iqn") if name else [required(f"{field}.iqn")]
    if not 0 <= lun <= 255:
        causes.append(invalid(f"{field}.lun", lun, "must be between 0 and 255, inclusive"))
    uses_chap = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if uses_chap and source.get("secretRef") is None:
        causes.append(required(f"{field}.secretRef"))
    initiator = source.get("initiatorName")
    return causes if initiator is None else causes + _validate_initiator(initiator, f"{field}.initiatorname")


def _validate_initiator(name: str, field: str) -> Causes:
    if not name.startswith(("iqn", "eui", "naa")):
        return [invalid(field, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if _INITIATOR.fullmatch(name) else [invalid(field, name, "must be valid format")]


def _validate_claim_reference(source: Fields, field: str) -> Causes:
    return [] if source.get("claimName") else [required(f"{field}.claimName")]


def validate_driver_name(name: str, field: str) -> Causes:
    """Validate the name of a CSI driver."""
    if not name:
        return [required(field)]
    causes = [too_long(field, 63)] if len(name) > 63 else []
    return causes + problems_of(field, name, nameformats.dns1123_subdomain(name.lower()))


def _validate_csi(source: Fields, field: str) -> Causes:
    causes = validate_driver_name(source.get("driver") or "", f"{field}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is None:
        return causes
    name = secret.get("name") or ""
    if not name:
        return [*causes, required(f"{field}.nodePublishSecretRef.name")]
    return causes + problems_of(f"{field}.name", name, nameformats.dns1123_subdomain(name))


def _validate_downward_api(source: Fields, field: str) -> Causes:
    causes = _validate_mode(source.get("defaultMode"), f"{field}.defaultMode")
    for item in source.get("items") or ():
        causes += _validate_downward_file(item, field)
    return causes


def _validate_downward_file(item: Fields, field: str) -> Causes:
    path = item.get("path") or ""
    causes = [] if path else [required(f"{field}.path")]
    causes += validate_local_path(path, f"{field}.path")
    reference, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if reference is not None:
        causes += _validate_field_reference(reference, f"{field}.fieldRef", _VOLUME_FIELDS)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            causes.append(invalid(field, "resource", text))
    elif resource is not None:
        causes += validate_resource_reference(resource, f"{field}.resourceFieldRef", is_volume=True)
    else:
        causes.append(required(field, "one of fieldRef and resourceFieldRef is required"))
    return causes + _validate_mode(item.get("mode"), f"{field}.mode")


def validate_variable_field(reference: Fields, field: str) -> Causes:
    """Validate a reference of an environment variable to a field of its pod."""
    return _validate_field_reference(reference, field, _VARIABLE_FIELDS)


def _validate_field_reference(reference: Fields, field: str, supported: Sequence[str]) -> Causes:
    for name in ("apiVersion", "fieldPath"):
        if not reference.get(name):
            return [required(f"{field}.{name}")]
    at, version, path = f"{field}.fieldPath", reference["apiVersion"], reference["fieldPath"]
    failed = "error converting fieldPath: "
    if version != "v1":
        return [invalid(at, path, f"{failed}unsupported pod version: {version}")]
    parent, _, rest = path.partition("['")
    if rest.endswith("']"):
        if parent not in {"metadata.annotations", "metadata.labels"}:
            return [invalid(at, path, f"{failed}field label does not support subscript: {path}")]
        key = rest[:-2] if parent == "metadata.labels" else rest[:-2].lower()
        return problems_of(field, key, nameformats.qualified_name(key))
    if path not in _POD_FIELDS:
        return [invalid(at, path, f"{failed}field label not supported: {path}")]
    return [] if path in supported else [not_supported(at, path, supported)]


def validate_resource_reference(reference: Fields, field: str, *, is_volume: bool) -> Causes:
    """Validate a reference to the requests or limits of a container."""
    name = reference.get("resource") or ""
    is_huge = name.startswith(_HUGE_PAGES)
    causes: Causes = []
    if is_volume and not reference.get("containerName"):
        causes.append(required(f"{field}.containerName"))
    elif not name:
        causes.append(required(f"{field}.resource"))
    elif name not in _RESOURCES and not is_huge:
        causes.append(not_supported(f"{field}.resource", name, _RESOURCES))
    divisor = reference.get("divisor")
    if divisor is None or quantities.to_canonical(divisor) == "0" or not (is_huge or name in _RESOURCES):
        return causes
    is_cpu = name.endswith(".cpu")
    allowed = ("1m", "1") if is_cpu else _SIZES
    if quantities.to_canonical(divisor) not in allowed:
        kind = (
            "hugepages" if is_huge else name.partition(".")[2].replace("ephemeral-storage", "local ephemeral storage")
        )
        listed = "1m and 1" if is_cpu else ", ".join(allowed)
        text = f"only divisor's values {listed} are supported with the {kind} resource"
        causes.append(invalid(f"{field}.divisor", name, text))
    return causes


def _validate_projected(source: Fields, field: str) -> Causes:
    causes = _validate_mode(source.get("defaultMode"), f"{field}.defaultMode")
    paths: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        at = f"{field}.sources[{index}]"
        for name in ("secret", "configMap"):
            if (found := projection.get(name)) is not None:
                causes += _validate_files(found, f"{at}.{name}", "name")
                items = ((item.get("path") or "", found.get("name") or "") for item in found.get("items") or ())
                causes += _validate_paths(items, paths, field)
        if (found := projection.get("downwardAPI")) is not None:
            for item in found.get("items") or ():
                path = item.get("path") or ""
                causes += _validate_downward_file(item, f"{at}.downwardAPI")
                causes += _validate_paths([(path, path)], paths, field)
        if (found := projection.get("serviceAccountToken")) is not None:
            causes += _validate_token(found, f"{at}.serviceAccountToken", field)
        if len(projection) > 1:
            causes.append(forbidden(at, "may not specify more than 1 volume type per source"))
    return causes


def _validate_paths(items: Iterable[tuple[str, str]], paths: set[str], field: str) -> Causes:
    """Require paths that no other source has, and add them to `paths`; the second text is what the error shows."""
    causes: Causes = []
    for path, shown in items:
        if path in paths:
            causes.append(invalid(field, shown, "conflicting duplicate paths"))
        if path:
            paths.add(path)
    return causes


def _validate_token(token: Fields, field: str, volume: str) -> Causes:
    causes: Causes = []
    seconds, at = token.get("expirationSeconds") or 0, f"{field}.expirationSeconds"
    if seconds < _TOKEN_SECONDS_MIN:
        causes.append(invalid(at, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _TOKEN_SECONDS_MAX:
        causes.append(invalid(at, seconds, "may not specify a duration larger than 2^32 seconds"))
    path = token.get("path") or ""
    return causes + (validate_local_path(path, f"{volume}.path") if path else [required(f"{volume}.path")])


def _validate_ephemeral(source: Fields, field: str) -> Causes:
    template = source.get("volumeClaimTemplate")
    at = f"{field}.volumeClaimTemplate"
    if template is None:
        return [required(at)]
    causes = validate_labels((template.get("metadata") or {}).get("labels"), f"{at}.metadata.labels")
    return causes + validate_claim_spec(template.get("spec") or {}, f"{at}.spec")


def validate_claim_spec(spec: Fields, field: str) -> Causes:
    """Validate the spec of a PersistentVolumeClaim or of a template of one."""
    causes = validate_access_modes(spec.get("accessModes") or (), f"{field}.accessModes")
    causes += validate_label_selector(spec.get("selector") or {}, f"{field}.selector")
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    at = f"{field}.resources[storage]"
    if storage is None:
        causes.append(required(at))
    else:
        causes += validate_positive_quantity(storage, at)
    for name in ("storageClassName", "volumeAttributesClassName"):
        if class_name := spec.get(name):
            causes += problems_of(f"{field}.{name}", class_name, nameformats.dns1123_subdomain(class_name))
    causes += one_of(f"{field}.volumeMode", spec.get("volumeMode"), ("Block", "Filesystem"))
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for name, found in (("dataSource", source), ("dataSourceRef", reference)):
        if found is not None:
            causes += _validate_data_source(found, f"{field}.{name}")
    if source is None or reference is None:
        return causes
    shown = {"field": f"{field}.dataSource"}
    if reference.get("namespace"):
        return [*causes, invalid(field, shown, "may not be specified when dataSourceRef.namespace is specified")]
    same = all((source.get(name) or "") == (reference.get(name) or "") for name in ("apiGroup", "kind", "name"))
    return causes if same else [*causes, invalid(field, shown, "must match dataSourceRef")]


def validate_access_modes(modes: Sequence[str], field: str) -> Causes:
    """Require known access modes, of which ReadWriteOncePod stands alone."""
    if not modes:
        return [required(field, "at least 1 access mode is required")]
    causes = [not_supported(field, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        causes.append(forbidden(field, "may not use ReadWriteOncePod with other access modes"))
    return causes


def _validate_data_source(source: Fields, field: str) -> Causes:
    causes = [required(f"{field}.{name}") for name in ("name", "kind") if not source.get(name)]
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    if group:
        causes += problems_of(f"{field}.apiGroup", group, nameformats.dns1123_subdomain(group))
    elif kind != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        causes.append(invalid(field, kind, text))
    if namespace := source.get("namespace"):
        causes += problems_of(f"{field}.namespace", namespace, nameformats.dns1123_label(namespace))
    return causes


_SOURCES = {
    "emptyDir": _validate_empty_dir,
    "hostPath": validate_host_path,
    "secret": _validate_secret,
    "nfs": _validate_nfs,
    "iscsi": _validate_iscsi,
    "persistentVolumeClaim": _validate_claim_reference,
    "downwardAPI": _validate_downward_api,
    "configMap": _validate_config_map,
    "projected": _validate_projected,
    "csi": _validate_csi,
    "ephemeral": _validate_ephemeral,
}
"""The checks of each source of a volume; the drivers of other sources are in members, which check them."""
_ORDER = {name: index for index, name in enumerate(_SOURCES)}
