"""Keep the member's value in some fields of an existing member object (docs/reference/sync.md). Pure.

`retain_for_apply` returns the applied configuration for server-side apply: fields that were never sent need no
protection there, so only fields of the template itself take the member's value (`memberowned.py`). Arguments are not
changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api import names
from federation.api.federatedtype import RetentionRule
from federation.apimachinery import dotpaths
from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.resources import Object
from federation.planning.aggregation.rules import RuleError
from federation.planning.federatedobject.finished import is_finished, kind_of
from federation.planning.rendering.memberowned import keep_by_rules, keep_member_values

_NEVER_APPLIED = frozenset({"apiVersion", "kind", "metadata", "status"})


class RetentionError(InvalidInput):
    """A field of the member object has the wrong type; the message names the field."""


def is_replicas_retained(federated: Mapping[str, Any]) -> bool:
    """Return True if the annotation leaves the replicas to an autoscaler in the member."""
    annotations = (federated.get("metadata") or {}).get("annotations") or {}
    return annotations.get(names.RETAIN_REPLICAS) == "true"


def is_scaled(live: Mapping[str, Any]) -> bool:
    """Return whether somebody has set the object's replicas through its subresource `scale`, and owns them since."""
    managed = (live.get("metadata") or {}).get("managedFields")
    return isinstance(managed, list) and any(
        isinstance(entry, Mapping) and entry.get("subresource") == "scale" for entry in managed
    )


def retain_replicas(desired: Object, live: Mapping[str, Any], path: dotpaths.Path) -> Object:
    """Return `desired` with the member's replicas, unchanged when there is no value or the type has no replicas."""
    value = dotpaths.get(live, path) if path else None
    return desired if value is None else _set(desired, path, value)


def retain_replicas_for_apply(desired: Object, live: Mapping[str, Any], path: dotpaths.Path) -> Object:
    """Return the applied configuration with the member's replicas, or without any once a scaler owns them.

    A field that leaves the configuration of its only owner gets its default. So the live value is sent until a manager
    of the subresource `scale` owns the field; from then on it is left out and the scaler is its only owner.
    """
    if is_scaled(live):
        return leave_to_scaler(desired, live, path)
    return retain_replicas(desired, live, path)


def leave_to_scaler(desired: Object, live: Mapping[str, Any], path: dotpaths.Path) -> Object:
    """Return `desired` without its replicas if somebody has set them through the subresource `scale`."""
    return _without(desired, path) if path and is_scaled(live) else desired


def retain_for_apply(
    desired: Object, live: Mapping[str, Any], *, has_written_ports: bool = False, rules: Sequence[RetentionRule] = ()
) -> Object:
    """Return the applied configuration for an existing object; fields that the member allocates keep its values.

    With `has_written_ports` the node ports of a Service are those that a user wrote, and win. An object that has
    finished keeps everything but its metadata: most of it cannot change any more, and nothing would act on it. `rules`
    are those of its kind.
    """
    if is_finished(kind_of(desired), live):
        kept = {key: value for key, value in live.items() if key not in _NEVER_APPLIED}
        return {**kept, **{key: desired[key] for key in ("apiVersion", "kind", "metadata") if key in desired}}
    if desired.get("kind") == "Service":
        desired = _keep_service(desired, live, has_written_ports=has_written_ports)
    else:
        desired = keep_member_values(desired, live)
    try:
        return keep_by_rules(desired, live, rules) if rules else desired
    except RuleError as error:
        raise RetentionError(f"a retention rule of its FederatedTypeConfig fails: {error}") from error


def _set(obj: Object, path: dotpaths.Path, value: Any) -> Object:
    """Return a copy with the value at the path, sharing everything else."""
    head, rest = path[0], path[1:]
    inner = obj.get(head)
    return {**obj, head: _set(inner if isinstance(inner, dict) else {}, rest, value) if rest else value}


def _without(obj: Object, path: dotpaths.Path) -> Object:
    """Return a copy without the value at the path, sharing everything else."""
    head, rest = path[0], path[1:]
    inner = obj.get(head)
    if not rest:
        return {key: value for key, value in obj.items() if key != head}
    return {**obj, head: _without(inner, rest)} if isinstance(inner, dict) else obj


def _spec(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = obj.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _typed(spec: Mapping[str, Any], key: str, expected: type) -> Any:
    """Return the member's value, None when absent; RetentionError when it has another type."""
    value = spec.get(key)
    if value is not None and (not isinstance(value, expected) or isinstance(value, bool)):
        raise RetentionError(f"spec.{key} of the member's object is {value!r}, not {expected.__name__}")
    return value


def service_fields(live: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec fields of a Service that the member allocated: addresses and the health check's port."""
    spec = _spec(live)
    values = {
        "clusterIP": _typed(spec, "clusterIP", str),
        "clusterIPs": _typed(spec, "clusterIPs", list),
        "healthCheckNodePort": _typed(spec, "healthCheckNodePort", int),
    }
    return {key: value for key, value in values.items() if value}


def _with_node_ports(spec: dict[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    present = {_port_key(port): port["nodePort"] for port in _spec(live).get("ports") or () if port.get("nodePort")}
    if present and spec.get("ports"):
        spec["ports"] = [
            {**port, "nodePort": present[_port_key(port)]} if _port_key(port) in present else port
            for port in spec["ports"]
        ]
    return spec


def _port_key(port: Mapping[str, Any]) -> tuple[Any, ...]:
    return port.get("name") or "", port.get("protocol") or "TCP", port.get("port")


def _keep_service(desired: Object, live: Mapping[str, Any], *, has_written_ports: bool) -> Object:
    spec = dict(_spec(desired))
    present = service_fields(live)
    if spec.get("clusterIP") != "None":
        spec.update({key: present[key] for key in ("clusterIP", "clusterIPs") if key in present and key in spec})
    if "healthCheckNodePort" in spec and "healthCheckNodePort" in present:
        spec["healthCheckNodePort"] = present["healthCheckNodePort"]
    if not has_written_ports and any(port.get("nodePort") for port in spec.get("ports") or ()):
        spec = _with_node_ports(spec, live)
    return {**desired, "spec": spec}
