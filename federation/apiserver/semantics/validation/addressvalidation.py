"""Validate IP addresses and CIDRs in the canonical form that newer kinds require. Pure.

Each function returns the problems of one text, in the words of k8s.io/apimachinery's validation.
"""

import ipaddress
import re
from typing import Final

from federation.apimachinery.fielderrors import Causes, problems_of

_NOT_AN_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_A_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_NOT_AN_INTERFACE: Final = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
_CANONICAL: Final = "must be in canonical form"
_LEGACY: Final = (
    "must not have leading 0s",
    "must not be an IPv4-mapped IPv6 address",
    "must not have leading 0s in IP or prefix length",
    "must not have an IPv4-mapped IPv6 address",
    "must not have bits set beyond the prefix length",
)
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9])0+(?=[0-9])")
_Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface


def ip_problems(value: str) -> list[str]:
    """Return the problems of an IP address."""
    try:
        address = ipaddress.ip_address(_without_zeros(value))
    except ValueError:
        return [_NOT_AN_IP]
    if "%" in value:
        return [_NOT_AN_IP]
    if _without_zeros(value) != value:
        return ["must not have leading 0s"]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return _canonical_problems(value, str(address))


def cidr_problems(value: str) -> list[str]:
    """Return the problems of a network, such as 10.9.8.0/24."""
    interface = _parse(_without_zeros(value))
    if interface is None:
        return [_NOT_A_CIDR]
    if _without_zeros(value) != value:
        return ["must not have leading 0s in IP or prefix length"]
    if isinstance(interface.ip, ipaddress.IPv6Address) and interface.ip.ipv4_mapped is not None:
        return ["must not have an IPv4-mapped IPv6 address"]
    if interface.ip != interface.network.network_address:
        return ["must not have bits set beyond the prefix length"]
    return _canonical_problems(value, str(interface.network))


def interface_problems(value: str) -> list[str]:
    """Return the problems of an interface's address with the size of its network, such as 10.9.8.7/24."""
    interface = _parse(value)
    return [_NOT_AN_INTERFACE] if interface is None else _canonical_problems(value, interface.with_prefixlen)


def validate_address(address: str, field: str) -> Causes:
    """Validate an IP address of an older kind, which may be in another form than the canonical one."""
    return problems_of(field, address, _uncanonical(ip_problems(address)))


def validate_network(network: str, field: str) -> Causes:
    """Validate a network of an older kind, which may be in another form than the canonical one."""
    return problems_of(field, network, _uncanonical(cidr_problems(network)))


def is_legacy(message: str) -> bool:
    """Return True for a problem that a stored address may keep: it was valid once."""
    return message.endswith(_LEGACY)


def _uncanonical(problems: list[str]) -> list[str]:
    return [text for text in problems if not text.startswith(_CANONICAL)]


def cidr_family(value: str) -> int:
    """Return 4 or 6, or 0 for a text that is no CIDR."""
    interface = _parse(value)
    return 0 if interface is None else interface.version


def _parse(value: str) -> _Interface | None:
    _, _, prefix = value.partition("/")
    if not (prefix.isascii() and prefix.isdigit()) or "%" in value:
        return None  # the library also accepts network masks and scopes
    try:
        return ipaddress.ip_interface(value)
    except ValueError:
        return None


def _without_zeros(value: str) -> str:
    """Return an IPv4 address or network without leading zeros, which some programs read as octal numbers."""
    return value if ":" in value else _LEADING_ZEROS.sub("", value)


def _canonical_problems(value: str, canonical: str) -> list[str]:
    return [] if value == canonical else [f'{_CANONICAL} ("{canonical}")']
