"""Validate Endpoints, EndpointSlices, and the peers and ports of NetworkPolicies."""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    one_of,
    problems_of,
    required,
    too_many,
)
from federation.apiserver.semantics.validation.addressvalidation import ip_problems, validate_address, validate_network
from federation.apiserver.semantics.validation.containervalidation import validate_unique
from federation.apiserver.semantics.validation.probevalidation import validate_port, validate_port_or_name
from federation.apiserver.semantics.validation.selectorvalidation import validate_label_selector

Fields = Mapping[str, Any]

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_ENDPOINTS_MAX, _ADDRESSES_MAX, _PORTS_MAX = 1000, 100, 20000


def validate_endpoints(obj: Fields) -> Causes:
    """Validate an Endpoints object."""
    causes: Causes = []
    for index, subset in enumerate(obj.get("subsets") or ()):
        at = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            causes.append(required(at, "must specify `addresses` or `notReadyAddresses`"))
        for part in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(part) or ()):
                causes += _validate_endpoint_address(address, f"{at}.{part}[{number}]")
        ports = subset.get("ports") or ()
        for number, port in enumerate(ports):
            causes += _validate_endpoint_port(port, f"{at}.ports[{number}]", needs_name=len(ports) > 1)
    return causes


def _validate_endpoint_address(address: Fields, field: str) -> Causes:
    text = address.get("ip") or ""
    causes = validate_address(text, f"{field}.ip") or _validate_use(text, f"{field}.ip")
    if hostname := address.get("hostname"):
        causes += problems_of(f"{field}.hostname", hostname, nameformats.dns1123_label(hostname))
    if (node := address.get("nodeName")) is not None:
        causes += problems_of(f"{field}.nodeName", node, nameformats.dns1123_subdomain(node))
    return causes


def _validate_use(text: str, field: str) -> Causes:
    """Refuse valid addresses that no endpoint has."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # with leading zeros
        return []
    if address.is_unspecified:
        return [invalid(field, text, f"may not be unspecified ({text})")]
    if address.is_loopback:
        return [invalid(field, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")]
    if address.is_link_local:
        return [invalid(field, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")]
    if address in _MULTICAST[address.version]:
        return [invalid(field, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")]
    return []


_MULTICAST: dict[int, Any] = {4: ipaddress.ip_network("224.0.0.0/24"), 6: ipaddress.ip_network("ff02::/16")}


def _validate_endpoint_port(port: Fields, field: str, *, needs_name: bool) -> Causes:
    causes: Causes = []
    if name := port.get("name"):
        causes += problems_of(f"{field}.name", name, nameformats.dns1123_label(name))
    elif needs_name:
        causes.append(required(f"{field}.name"))
    causes += validate_port(port.get("port") or 0, f"{field}.port")
    return causes + _validate_protocols(port, field)


def _validate_protocols(port: Fields, field: str) -> Causes:
    protocol = port.get("protocol")
    causes = one_of(f"{field}.protocol", protocol, _PROTOCOLS) if protocol else [required(f"{field}.protocol")]
    if (application := port.get("appProtocol")) is not None:
        causes += problems_of(f"{field}.appProtocol", application, nameformats.qualified_name(application))
    return causes


def validate_slice_content(obj: Fields) -> Causes:
    """Validate the ports and endpoints of an EndpointSlice."""
    ports, endpoints = obj.get("ports") or (), obj.get("endpoints") or ()
    causes = too_many("ports", ports, _PORTS_MAX) or _validate_slice_ports(ports)
    if found := too_many("endpoints", endpoints, _ENDPOINTS_MAX):
        return causes + found
    for index, endpoint in enumerate(endpoints):
        causes += _validate_slice_endpoint(endpoint, f"endpoints[{index}]", obj.get("addressType") or "")
    return causes


def _validate_slice_ports(ports: Sequence[Fields]) -> Causes:
    causes: Causes = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        at, name = f"ports[{index}]", port.get("name") or ""
        causes += problems_of(f"{at}.name", name, nameformats.dns1123_label(name) if name else ())
        if name in names:
            causes.append(duplicate(f"{at}.name", name))
        names.add(name)
        causes += _validate_protocols(port, at)
    return causes


def _validate_slice_endpoint(endpoint: Fields, field: str, kind: str) -> Causes:
    addresses = endpoint.get("addresses") or ()
    causes = too_many(f"{field}.addresses", addresses, _ADDRESSES_MAX)
    if not addresses:
        causes.append(required(f"{field}.addresses", "must contain at least 1 address"))
    for index, address in enumerate(addresses):
        at = f"{field}.addresses[{index}]"
        if kind == "FQDN":
            causes += problems_of(at, address, nameformats.dns1123_subdomain(address.removesuffix(".")))
        elif problems := ip_problems(address):
            causes += problems_of(at, address, problems)
        elif (":" in address) is not (kind == "IPv6"):
            causes.append(invalid(f"{field}.addresses", address, f"must be an {kind} address"))
        else:
            causes += _validate_use(address, at)
    if (node := endpoint.get("nodeName")) is not None:
        causes += problems_of(f"{field}.nodeName", node, nameformats.dns1123_subdomain(node))
    zones: set[str] = set()
    for index, zone in enumerate((endpoint.get("hints") or {}).get("forZones") or ()):
        name = zone.get("name") or ""
        causes += validate_unique(f"{field}.hints.forZones[{index}].name", name, nameformats.label_value(name), zones)
    if (hostname := endpoint.get("hostname")) is not None:
        causes += problems_of(f"{field}.hostname", hostname, nameformats.dns1123_label(hostname))
    return causes


def validate_policy_rules(spec: Fields, field: str) -> Causes:
    """Validate the ingress and egress rules of a NetworkPolicy."""
    causes: Causes = []
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            at = f"{field}.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                causes += _validate_policy_port(port, f"{at}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                causes += _validate_peer(peer, f"{at}.{peers}[{number}]")
    return causes


def _validate_policy_port(port: Fields, field: str) -> Causes:
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    causes: Causes = []
    if protocol is not None and protocol not in _PROTOCOLS:
        causes.append(not_supported(f"{field}.protocol", protocol, _PROTOCOLS))
    if number is not None:
        causes += validate_port_or_name(number, f"{field}.port")
    if end is None:
        return causes
    at = f"{field}.endPort"
    if not isinstance(number, int):
        what = "not specified" if number is None else "non-numeric"
        return [*causes, invalid(at, end, f"may not be specified when `port` is {what}")]
    if end < number:
        causes.append(invalid(at, number, "must be greater than or equal to `port`"))
    return causes + validate_port(end, at)


def _validate_peer(peer: Fields, field: str) -> Causes:
    causes: Causes = []
    kinds = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
    for name in kinds:
        at = f"{field}.{name}"
        causes += _validate_block(peer[name], at) if name == "ipBlock" else validate_label_selector(peer[name], at)
    if not kinds:
        causes.append(required(field, "must specify a peer"))
    elif len(kinds) > 1 and "ipBlock" in kinds:
        causes.append(forbidden(field, "may not specify both ipBlock and another peer"))
    return causes


def _validate_block(block: Fields, field: str) -> Causes:
    text = block.get("cidr") or ""
    if not text:
        return [required(f"{field}.cidr")]
    whole = _network(text)
    causes = validate_network(text, f"{field}.cidr")
    if whole is None:
        return causes
    for index, excepted in enumerate(block.get("except") or ()):
        part = _network(excepted)
        causes += validate_network(excepted, f"{field}.except[{index}]")
        if part is not None and (part.version != whole.version or part == whole or not part.subnet_of(whole)):
            causes.append(invalid(f"{field}.except[{index}]", excepted, "must be a strict subset of `cidr`"))
    return causes


def _network(text: str) -> Any:
    """Return a network, None if the text is none; bits of the host are ignored."""
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None
