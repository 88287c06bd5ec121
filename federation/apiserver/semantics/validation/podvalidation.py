"""Validate Pods, pod templates and taints, with the common errors of kubernetes/pkg/apis/core/validation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery import quantity as quantities
from federation.apimachinery.fielderrors import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    non_negative,
    not_found,
    not_supported,
    one_of,
    required,
)
from federation.apimachinery.objectmeta import validate_labels
from federation.apiserver.semantics.schema.formats import QUANTITY_ERROR

Fields = Mapping[str, Any]
_COMPUTE = frozenset({"cpu", "memory", "ephemeral-storage"})

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PORT_TEXT = "must be between 1 and 65535, inclusive"


def validate_template(template: Fields, field: str, *, claims: Iterable[str] = ()) -> Causes:
    """Validate a pod template. `claims` names the volumes that a StatefulSet adds to each pod."""
    metadata = template.get("metadata") or {}
    causes = validate_labels(metadata.get("labels"), f"{field}.labels")
    return causes + validate_pod_spec(template.get("spec") or {}, f"{field}.spec", claims=claims)


def validate_pod_spec(spec: Fields, field: str, *, claims: Iterable[str] = ()) -> Causes:
    """Validate the spec of a pod, whose containers may also mount the volumes in `claims`."""
    volumes, causes = _validate_volumes(spec.get("volumes") or (), f"{field}.volumes")
    volumes.update(claims)
    containers = spec.get("containers") or ()
    if not containers:
        causes.append(required(f"{field}.containers"))
    seen: set[str] = set()
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            causes += _validate_container(container, f"{field}.{kind}[{index}]", seen, volumes)
    causes += one_of(f"{field}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES)
    causes += one_of(f"{field}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    causes += non_negative(f"{field}.terminationGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"))
    if (deadline := spec.get("activeDeadlineSeconds")) is not None and deadline < 1:
        causes.append(
            invalid(f"{field}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
        )
    causes += validate_labels(spec.get("nodeSelector"), f"{field}.nodeSelector")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        causes += _validate_toleration(toleration, f"{field}.tolerations[{index}]")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        causes += _validate_spread(constraint, f"{field}.topologySpreadConstraints[{index}]")
    return causes


def _validate_container(container: Fields, field: str, seen: set[str], volumes: set[str]) -> Causes:
    causes: Causes = []
    name = container.get("name") or ""
    if not name:
        causes.append(required(f"{field}.name"))
    else:
        causes += validate_unique(f"{field}.name", name, nameformats.dns1123_label(name), seen)
    image = container.get("image") or ""
    if not image:
        causes.append(required(f"{field}.image"))
    elif image != image.strip():
        causes.append(invalid(f"{field}.image", image, "must not have leading or trailing whitespace"))
    causes += one_of(f"{field}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    if ports := container.get("ports"):
        causes += _validate_ports(ports, f"{field}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        causes += _validate_variable(variable, f"{field}.env[{index}]")
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        causes += _validate_mount(mount, f"{field}.volumeMounts[{index}]", volumes)
    if resources := container.get("resources"):
        causes += _validate_resources(resources, f"{field}.resources")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (found := container.get(probe)) is not None:
            causes += _validate_probe(found, f"{field}.{probe}", may_repeat=probe == "readinessProbe")
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


def validate_unique(field: str, name: str, problems: Sequence[str], seen: set[str]) -> Causes:
    """Return the causes of a name's problems and of a name that is in `seen`; add it to `seen`."""
    causes = [invalid(field, name, text) for text in problems]
    if name in seen:
        causes.append(duplicate(field, name))
    seen.add(name)
    return causes


def validate_port(number: Any, field: str) -> Causes:
    """Validate a port number."""
    if isinstance(number, int) and not 0 < number < 65536:
        return [invalid(field, number, _PORT_TEXT)]
    return []


def _validate_variable(variable: Fields, field: str) -> Causes:
    name = variable.get("name") or ""
    if not name:
        return [required(f"{field}.name")]
    if "=" in name:
        return [
            invalid(
                f"{field}.name",
                name,
                "a valid environment variable name must consist only of printable ASCII characters other than '='",
            )
        ]
    source = variable.get("valueFrom")
    if source is not None and variable.get("value"):
        return [invalid(f"{field}.valueFrom", "", "may not be specified when `value` is not empty")]
    if source is not None and len(source) != 1:
        return [
            invalid(
                f"{field}.valueFrom",
                "",
                "must specify exactly one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
            )
        ]
    return []


def _validate_mount(mount: Fields, field: str, volumes: set[str]) -> Causes:
    causes: Causes = []
    name = mount.get("name") or ""
    if not name:
        causes.append(required(f"{field}.name"))
    elif name not in volumes:
        causes.append(not_found(f"{field}.name", name))
    if not mount.get("mountPath"):
        causes.append(required(f"{field}.mountPath"))
    return causes


def _validate_volumes(volumes: Sequence[Fields], field: str) -> tuple[set[str], Causes]:
    seen: set[str] = set()
    causes: Causes = []
    for index, volume in enumerate(volumes):
        at = f"{field}[{index}]"
        name = volume.get("name") or ""
        if not name:
            causes.append(required(f"{at}.name"))
            continue
        causes += validate_unique(f"{at}.name", name, nameformats.dns1123_label(name), seen)
        sources = [source for source in volume if source != "name"]
        if len(sources) > 1:
            causes.append(forbidden(f"{at}.{sources[1]}", "may not specify more than 1 volume type"))
    return seen, causes


def _validate_resources(resources: Fields, field: str) -> Causes:
    causes: Causes = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            if name not in _COMPUTE:
                causes += _validate_resource_name(name, f"{field}.{kind}[{name}]")
            causes += validate_quantity(quantity, f"{field}.{kind}[{name}]")
    if causes:
        return causes
    for name, quantity in requests.items():
        if name in limits and _exceeds(quantity, limits[name]):
            causes.append(
                invalid(
                    f"{field}.requests",
                    quantity,
                    f"must be less than or equal to {name} limit of {limits[name]}",
                )
            )
    return causes


def _validate_resource_name(name: str, field: str) -> Causes:
    """Require a qualified name with a domain, or a standard resource of containers."""
    if problems := nameformats.qualified_name(name):
        return [invalid(field, name, text) for text in problems]
    if "/" in name or name.startswith("hugepages-"):
        return []
    return [invalid(field, name, "must be a standard resource for containers")]


def validate_quantity(quantity: Any, field: str) -> Causes:
    """Validate a quantity of 0 or more."""
    try:
        found = quantities.parse(quantity)
    except ValueError:
        return [invalid(field, quantity, QUANTITY_ERROR)]
    return [invalid(field, quantity, "must be greater than or equal to 0")] if found.nanos < 0 else []


def _exceeds(request: Any, limit: Any) -> bool:
    return request != limit and quantities.parse(limit) < quantities.parse(request)


def _validate_probe(probe: Fields, field: str, *, may_repeat: bool) -> Causes:
    causes: Causes = []
    handlers = [name for name in ("exec", "httpGet", "tcpSocket", "grpc") if probe.get(name) is not None]
    if not handlers:
        causes.append(required(field, "must specify a handler type"))
    for name in handlers[1:]:
        causes.append(forbidden(f"{field}.{name}", "may not specify more than 1 handler type"))
    for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        causes += non_negative(f"{field}.{name}", probe.get(name))
    if not may_repeat and probe.get("successThreshold", 1) not in {0, 1}:
        causes.append(invalid(f"{field}.successThreshold", probe["successThreshold"], "must be 1"))
    return causes


def _validate_toleration(toleration: Fields, field: str) -> Causes:
    causes: Causes = []
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if key:
        causes += [invalid(f"{field}.key", key, text) for text in nameformats.qualified_name(key)]
    elif operator != "Exists":
        causes.append(
            invalid(
                f"{field}.operator",
                operator,
                'operator must be Exists when `key` is empty, which means "match all values and all keys"',
            )
        )
    if operator not in {"Equal", "Exists"}:
        causes.append(not_supported(f"{field}.operator", operator, ("Equal", "Exists")))
    if operator == "Exists" and toleration.get("value"):
        causes.append(
            invalid(f"{field}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
        )
    effect = toleration.get("effect")
    if effect:
        causes += one_of(f"{field}.effect", effect, _EFFECTS)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        causes.append(
            invalid(f"{field}.effect", effect or "", "effect must be 'NoExecute' when `tolerationSeconds` is set")
        )
    return causes


def validate_taints(taints: Sequence[Fields], field: str) -> Causes:
    """Validate taints, which must be unique by key and effect."""
    causes: Causes = []
    seen: set[tuple[Any, Any]] = set()
    for index, taint in enumerate(taints):
        at, key, effect = f"{field}[{index}]", taint.get("key") or "", taint.get("effect") or ""
        causes += [invalid(f"{at}.key", key, text) for text in nameformats.qualified_name(key)]
        causes += [required(f"{at}.effect")] if not effect else one_of(f"{at}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            found = duplicate(at, dict(taint))
            causes.append({**found, "message": f"{found['message']}: taints must be unique by key and effect pair"})
        seen.add((key, effect))
    return causes


def _validate_spread(constraint: Fields, field: str) -> Causes:
    causes: Causes = []
    skew = constraint.get("maxSkew")
    if not isinstance(skew, int) or skew <= 0:
        causes.append(invalid(f"{field}.maxSkew", skew or 0, "must be greater than zero"))
    if not constraint.get("topologyKey"):
        causes.append(required(f"{field}.topologyKey", "can not be empty"))
    supported = ("DoNotSchedule", "ScheduleAnyway")
    action = constraint.get("whenUnsatisfiable")
    if action not in supported:
        causes.append(not_supported(f"{field}.whenUnsatisfiable", action or "", supported))
    return causes
