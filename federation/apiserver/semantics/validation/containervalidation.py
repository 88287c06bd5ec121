"""Validate containers: names, ports, variables, mounts, resources, probes, hooks and security contexts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery import quantity as quantities
from federation.apimachinery.fielderrors import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    one_of,
    problems_of,
    required,
)
from federation.apiserver.semantics.validation.podplatform import validate_huge_pages
from federation.apiserver.semantics.validation.probevalidation import validate_handler, validate_port, validate_probe
from federation.apiserver.semantics.validation.quantityvalidation import is_overcommittable, validate_amount
from federation.apiserver.semantics.validation.securityvalidation import validate_security_context
from federation.apiserver.semantics.validation.volumevalidation import (
    validate_relative_path,
    validate_resource_reference,
    validate_variable_field,
)

Fields = Mapping[str, Any]

_COMPUTE = frozenset({"cpu", "memory", "ephemeral-storage"})
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
_RESIZED = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_VARIABLE_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or"
    " 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_NOT_EPHEMERAL = ("ports", "resources", *_PROBES, "lifecycle", "resizePolicy")
_INIT_TEXT = "may not be set for init containers without restartPolicy=Always"


@dataclass(frozen=True, slots=True)
class PodContext:
    """Facts about a pod that the validation of its containers needs."""

    volumes: Mapping[str, Fields]
    """The valid volumes by name."""
    restart_policy: str = ""
    grace_period_s: int | None = None
    host_users: bool = True


def validate_containers(containers: Sequence[Fields], field: str, pod: PodContext, names: set[str]) -> Causes:
    """Validate the containers of a pod and add their names to `names`."""
    causes: Causes = []
    host_ports: set[str] = set()
    for index, container in enumerate(containers):
        at = f"{field}[{index}]"
        causes += validate_container(container, at, pod)
        causes += _validate_unique_name(container, at, names)
        causes += _validate_running(container, at, pod)
        causes += _validate_restart(container, at)
        causes += _validate_host_ports(container, at, host_ports)
    return causes


def validate_init_containers(containers: Sequence[Fields], field: str, pod: PodContext, names: set[str]) -> Causes:
    """Validate the init containers of a pod, whose names differ from those in `names`."""
    causes: Causes = []
    for index, container in enumerate(containers):
        at = f"{field}[{index}]"
        causes += validate_container(container, at, pod)
        causes += _validate_restart(container, at)
        causes += _validate_unique_name(container, at, names)
        causes += _validate_host_ports(container, at, set())
        if container.get("restartPolicy") == "Always":
            causes += _validate_running(container, at, pod)
            continue
        unfit = (name for name in ("lifecycle", *_PROBES) if container.get(name) is not None)
        causes += [forbidden(f"{at}.{name}", _INIT_TEXT) for name in unfit]
    return causes


def validate_ephemeral_containers(containers: Sequence[Fields], field: str, pod: PodContext, names: set[str]) -> Causes:
    """Validate the ephemeral containers of a pod, which may target the other containers, whose names are `names`."""
    causes: Causes = []
    others = frozenset(names)
    text = "cannot be set for an Ephemeral Container"
    for index, container in enumerate(containers):
        at = f"{field}[{index}]"
        causes += validate_container(container, at, pod)
        causes += _validate_unique_name(container, at, names)
        target = container.get("targetContainerName")
        if target and target not in others:
            causes.append(not_found(f"{at}.targetContainerName", target))
        causes += [forbidden(f"{at}.{name}", text) for name in _NOT_EPHEMERAL if container.get(name)]
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            paths = (name for name in ("subPath", "subPathExpr") if mount.get(name))
            causes += [forbidden(f"{at}.volumeMounts[{number}].{name}", text) for name in paths]
    return causes


def _validate_unique_name(container: Fields, field: str, names: set[str]) -> Causes:
    name = container.get("name") or ""
    if name in names:
        return [duplicate(f"{field}.name", name)]
    if name:
        names.add(name)
    return []


def validate_container(container: Fields, field: str, pod: PodContext) -> Causes:
    """Validate what all kinds of containers have."""
    name = container.get("name") or ""
    causes = (
        problems_of(f"{field}.name", name, nameformats.dns1123_label(name)) if name else [required(f"{field}.name")]
    )
    if not container.get("image"):
        causes.append(required(f"{field}.image"))
    causes += one_of(f"{field}.terminationMessagePolicy", container.get("terminationMessagePolicy"), _MESSAGE_POLICIES)
    if ports := container.get("ports"):
        causes += _validate_ports(ports, f"{field}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        causes += _validate_variable(variable, f"{field}.env[{index}]")
    for index, source in enumerate(container.get("envFrom") or ()):
        causes += _validate_variables(source, f"{field}.envFrom", index)
    if mounts := container.get("volumeMounts"):
        causes += _validate_mounts(container, mounts, f"{field}.volumeMounts", pod.volumes)
    if devices := container.get("volumeDevices"):
        causes += _validate_devices(devices, f"{field}.volumeDevices", pod.volumes)
    causes += one_of(f"{field}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    if resources := container.get("resources"):
        causes += validate_resources(resources, f"{field}.resources")
    if policies := container.get("resizePolicy"):
        causes += _validate_resize(policies, f"{field}.resizePolicy", pod.restart_policy)
    if context := container.get("securityContext"):
        causes += validate_security_context(context, f"{field}.securityContext", host_users=pod.host_users)
    return causes


def _validate_running(container: Fields, field: str, pod: PodContext) -> Causes:
    """Validate the hooks and probes of a container that keeps running."""
    causes: Causes = []
    for hook in ("postStart", "preStop"):
        if (handler := (container.get("lifecycle") or {}).get(hook)) is not None:
            causes += validate_handler(handler, f"{field}.lifecycle.{hook}", pod.grace_period_s)
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            causes += validate_probe(probe, f"{field}.{name}", is_readiness=name == "readinessProbe")
    return causes


def _validate_restart(container: Fields, field: str) -> Causes:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules")
    if policy is None and rules:
        causes = [required(f"{field}.restartPolicy", "must specify restartPolicy when restart rules are used")]
    else:
        causes = one_of(f"{field}.restartPolicy", policy, _RESTART_POLICIES)
    for index, rule in enumerate(rules or ()):
        at = f"{field}.restartPolicyRules[{index}]"
        causes += one_of(f"{at}.action", rule.get("action") or "", _RESTART_ACTIONS)
        if rule.get("exitCodes") is None:
            causes.append(required(f"{at}.exitCodes", "must be specified"))
    return causes


def _validate_host_ports(container: Fields, field: str, seen: set[str]) -> Causes:
    causes: Causes = []
    for index, port in enumerate(container.get("ports") or ()):
        if not port.get("hostPort"):
            continue
        text = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
        if text in seen:
            causes.append(duplicate(f"{field}.ports[{index}].hostPort", text))
        seen.add(text)
    return causes


def _validate_ports(ports: Sequence[Fields], field: str) -> Causes:
    causes: Causes = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{field}[{index}]"
        if name := port.get("name"):
            causes += validate_unique(f"{at}.name", name, nameformats.port_name(name), seen)
        number = port.get("containerPort")
        if number in {None, 0}:
            causes.append(required(f"{at}.containerPort"))
        else:
            causes += validate_port(number, f"{at}.containerPort")
        if port.get("hostPort"):
            causes += validate_port(port["hostPort"], f"{at}.hostPort")
        causes += one_of(f"{at}.protocol", port.get("protocol"), _PROTOCOLS)
    return causes


def validate_unique(field: str, name: str, problems: Iterable[str], seen: set[str]) -> Causes:
    """Return the causes of a name's problems and of a name that is in `seen`; add it to `seen`."""
    causes = problems_of(field, name, problems)
    if name in seen:
        causes.append(duplicate(field, name))
    seen.add(name)
    return causes


def _validate_variable(variable: Fields, field: str) -> Causes:
    name = variable.get("name") or ""
    causes = [] if name else [required(f"{field}.name")]
    if "=" in name:
        causes.append(invalid(f"{field}.name", name, _VARIABLE_TEXT))
    source = variable.get("valueFrom")
    if source is None:
        return causes
    at = f"{field}.valueFrom"
    if (found := source.get("fieldRef")) is not None:
        causes += validate_variable_field(found, f"{at}.fieldRef")
    if (found := source.get("resourceFieldRef")) is not None:
        causes += validate_resource_reference(found, f"{at}.resourceFieldRef", is_volume=False)
    for part in ("configMapKeyRef", "secretKeyRef"):
        if (found := source.get(part)) is not None:
            causes += _validate_key(found, f"{at}.{part}")
    if not source:
        text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        causes.append(invalid(at, "", text))
    elif variable.get("value"):
        causes.append(invalid(at, "", "may not be specified when `value` is not empty"))
    elif len(source) > 1:
        causes.append(invalid(at, "", "may not have more than one field specified at a time"))
    return causes


def _validate_key(reference: Fields, field: str) -> Causes:
    name, key = reference.get("name") or "", reference.get("key") or ""
    causes = problems_of(f"{field}.name", name, nameformats.dns1123_subdomain(name))
    if not key:
        causes.append(required(f"{field}.key"))
    elif len(key) > 253:
        causes.append(invalid(f"{field}.key", key, "must be no more than 253 characters"))
    elif not _KEY.fullmatch(key):
        causes.append(invalid(f"{field}.key", key, _KEY_TEXT))
    elif key.startswith("..") or key == ".":
        shown = f"'{key}'" if key in {".", ".."} else "'..'"
        causes.append(invalid(f"{field}.key", key, f"must not {'be' if key in {'.', '..'} else 'start with'} {shown}"))
    return causes


def _validate_variables(source: Fields, field: str, index: int) -> Causes:
    """Validate a source of variables; that it has none or several is an error of the whole list."""
    at, prefix = f"{field}[{index}]", source.get("prefix") or ""
    causes = [invalid(f"{at}.prefix", prefix, _VARIABLE_TEXT)] if "=" in prefix else []
    found = [part for part in ("configMapRef", "secretRef") if source.get(part) is not None]
    for part in found:
        name = source[part].get("name") or ""
        problems = nameformats.dns1123_subdomain(name) if name else ()
        causes += problems_of(f"{at}.{part}.name", name, problems) if name else [required(f"{at}.{part}.name")]
    if not found:
        causes.append(invalid(field, "", "must specify one of: `configMapRef` or `secretRef`"))
    elif len(found) > 1:
        causes.append(invalid(field, "", "may not have more than one field specified at a time"))
    return causes


def _validate_mounts(container: Fields, mounts: Sequence[Fields], field: str, volumes: Mapping[str, Fields]) -> Causes:
    causes: Causes = []
    paths: set[str] = set()
    devices = container.get("volumeDevices") or ()
    for index, mount in enumerate(mounts):
        at, name, path = f"{field}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            causes.append(required(f"{at}.name"))
        if name not in volumes:
            causes.append(not_found(f"{at}.name", name))
        if not path:
            causes.append(required(f"{at}.mountPath"))
        if path in paths:
            causes.append(invalid(f"{at}.mountPath", path, "must be unique"))
        paths.add(path)
        if any(device.get("name") == name for device in devices):
            causes.append(invalid(f"{at}.name", name, "must not already exist in volumeDevices"))
        if any(device.get("devicePath") == path for device in devices):
            causes.append(invalid(f"{at}.mountPath", path, "must not already exist as a path in volumeDevices"))
        causes += _validate_mount_options(container, mount, field, at)
    return causes


def _validate_mount_options(container: Fields, mount: Fields, field: str, at: str) -> Causes:
    """Validate the options of a mount. Some paths have no index, as in kube-apiserver."""
    causes: Causes = []
    sub_path, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
    if sub_path:
        causes += validate_relative_path(sub_path, f"{field}.subPath")
    if expression:
        if sub_path:
            text = "subPathExpr and subPath are mutually exclusive"
            causes.append(invalid(f"{at}.subPathExpr", expression, text))
        causes += validate_relative_path(expression, f"{field}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is None:
        return causes
    causes += one_of(f"{field}.mountPropagation", propagation, _PROPAGATIONS)
    if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        text = "Bidirectional mount propagation is available only to privileged containers"
        causes.append(forbidden(f"{field}.mountPropagation", text))
    return causes


def _validate_devices(devices: Sequence[Fields], field: str, volumes: Mapping[str, Fields]) -> Causes:
    causes: Causes = []
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        at, name, path = f"{field}[{index}]", device.get("name") or "", device.get("devicePath") or ""
        volume = volumes.get(name)
        if not name:
            causes.append(required(f"{at}.name"))
        if name in names:
            causes.append(invalid(f"{at}.name", name, "must be unique"))
        if volume is None:
            causes.append(not_found(f"{at}.name", name))
        elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            causes.append(invalid(f"{at}.name", name, text))
        if not path:
            causes.append(required(f"{at}.devicePath"))
        if path in paths:
            causes.append(invalid(f"{at}.devicePath", path, "must be unique"))
        if ".." in path.split("/"):
            causes.append(invalid(f"{at}.devicePath", path, "can not contain backsteps ('..')"))
        names.add(name)
        paths.add(path)
    return causes


def validate_resources(resources: Fields, field: str) -> Causes:
    """Validate the limits and requests of a container."""
    causes: Causes = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            if name not in _COMPUTE:
                causes += _validate_resource_name(name, f"{field}.{kind}[{name}]")
            causes += validate_amount(name, quantity, f"{field}.{kind}[{name}]")
    causes += validate_huge_pages(resources, field)
    for name, quantity in requests.items():
        causes += _validate_request(name, quantity, limits.get(name), field)
    return causes


def _validate_request(name: str, quantity: Any, limit: Any, field: str) -> Causes:
    is_exact = not is_overcommittable(name)
    if limit is None:
        return [required(f"{field}.limits", "Limit must be set for non overcommitable resources")] if is_exact else []
    if quantity == limit:
        return []
    try:
        wanted, most = quantities.parse(quantity), quantities.parse(limit)
    except ValueError:
        return []  # reported where it is
    at = f"{field}.requests"
    if is_exact and wanted.nanos != most.nanos:
        return [invalid(at, quantity, f"must be equal to {name} limit of {limit}")]
    return [invalid(at, quantity, f"must be less than or equal to {name} limit of {limit}")] if most < wanted else []


def _validate_resource_name(name: str, field: str) -> Causes:
    """Require a qualified name with a domain, or a standard resource of containers."""
    if problems := nameformats.qualified_name(name):
        return problems_of(field, name, problems)
    if "/" in name or name.startswith("hugepages-"):
        return []
    return [invalid(field, name, "must be a standard resource for containers")]


def _validate_resize(policies: Sequence[Fields], field: str, restart_policy: str) -> Causes:
    """Validate resize policies. Most paths have no index, as in kube-apiserver."""
    causes: Causes = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in seen:
            causes.append(duplicate(f"{field}[{index}]", name))
        seen.add(name)
        for value, supported in ((name, _RESIZED), (restart, _RESIZE_POLICIES)):
            if not value:
                causes.append(required(field))
            elif value not in supported:
                causes.append(not_supported(field, value, supported))
        if restart_policy == "Never" and restart != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            causes.append(invalid(field, restart, text))
    return causes
