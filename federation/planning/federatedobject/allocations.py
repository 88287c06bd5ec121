"""Fields of a Service that the host's API server allocates: addresses, their families, and node ports. Pure.

A member has its own networks, so a value that the host allocated must not travel: a member with IPv6 only refuses the
family of a host with IPv4. One that a user wrote does. The managed fields of the source tell them apart: an API server
records what a request contains, not what it allocates. `runtime/transforms.py` keeps that part of them in caches.

Reference: docs/reference/federation.md.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from federation.apimachinery.resources import Object

CLUSTER_IP = "spec.clusterIP"
CLUSTER_IPS = "spec.clusterIPs"
HEALTH_CHECK_NODE_PORT = "spec.healthCheckNodePort"
IP_FAMILIES = "spec.ipFamilies"
IP_FAMILY_POLICY = "spec.ipFamilyPolicy"
_FIELDS = {
    "f:clusterIP": CLUSTER_IP,
    "f:clusterIPs": CLUSTER_IPS,
    "f:healthCheckNodePort": HEALTH_CHECK_NODE_PORT,
    "f:ipFamilies": IP_FAMILIES,
    "f:ipFamilyPolicy": IP_FAMILY_POLICY,
}
_HEADLESS = "None"


def is_allocating(obj: Mapping[str, Any]) -> bool:
    """Return whether API servers allocate fields of the object: it is a Service."""
    return obj.get("kind") == "Service" and obj.get("apiVersion") == "v1"


def written_allocations(obj: Mapping[str, Any]) -> frozenset[str]:
    """Return the allocatable fields that a user wrote: paths, and `spec.ports[PORT/PROTOCOL].nodePort`."""
    return frozenset(
        field
        for entry in obj["metadata"].get("managedFields") or ()
        if isinstance(entry, Mapping) and not entry.get("subresource")
        for field in _written(entry.get("fieldsV1"))
    )


def without_unwritten(spec: Mapping[str, Any], written: frozenset[str]) -> Object:
    """Return a Service's spec without the allocated fields that are not in `written`; headless Services stay so."""
    kept = dict(spec)
    if spec.get("clusterIP") != _HEADLESS and not written & {CLUSTER_IP, CLUSTER_IPS}:
        for key in ("clusterIP", "clusterIPs"):
            kept.pop(key, None)
    for path in (HEALTH_CHECK_NODE_PORT, IP_FAMILIES, IP_FAMILY_POLICY):
        if path not in written:
            kept.pop(path.removeprefix("spec."), None)
    ports = spec.get("ports")
    if isinstance(ports, list) and any(_is_unwritten(port, written) for port in ports):
        kept["ports"] = [
            {key: value for key, value in port.items() if key != "nodePort"} if _is_unwritten(port, written) else port
            for port in ports
        ]
    return kept


def _is_unwritten(port: Any, written: frozenset[str]) -> bool:
    return isinstance(port, Mapping) and "nodePort" in port and _node_port(port) not in written


def _node_port(port: Mapping[str, Any]) -> str:
    return f"spec.ports[{port.get('port')}/{port.get('protocol') or 'TCP'}].nodePort"


def _written(fields: Any) -> Iterator[str]:
    spec = fields.get("f:spec") if isinstance(fields, Mapping) else None
    if not isinstance(spec, Mapping):
        return
    yield from (path for key, path in _FIELDS.items() if key in spec)
    ports = spec.get("f:ports")
    for key, port in ports.items() if isinstance(ports, Mapping) else ():
        if isinstance(port, Mapping) and "f:nodePort" in port and key.startswith("k:"):
            try:
                identity = orjson.loads(key[2:])
            except orjson.JSONDecodeError:
                continue
            if isinstance(identity, Mapping):
                yield _node_port(identity)
