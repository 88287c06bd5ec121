"""The addresses that a request may reach when a user of a namespace chose its URL. Pure.

Allowed are global unicast addresses and the networks that the administrator lists. An address of IPv6 that carries one
of IPv4 (mapped, NAT64, 6to4) is judged by that, because the network sends the packet there.
"""

import ipaddress
from collections.abc import Iterable
from typing import Final

from federation.apimachinery.errors import ConfigurationError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_networks(texts: Iterable[str], *, setting: str = "networks") -> tuple[Network, ...]:
    """Return networks such as 10.20.0.0/16, or single addresses; ConfigurationError, which names the setting."""
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise ConfigurationError(f"{setting}: {error}") from error


_GLOBAL: Final = ipaddress.ip_network("2000::/3")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_SPECIAL: Final = parse_networks(("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20"))
"""Azure's metadata service, whose address looks global, and networks that older versions of Python count as global."""

_METADATA: Final = parse_networks(
    ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "168.63.129.16/32", "100.100.100.200/32")
)
"""Link-local addresses, and those of clouds' metadata services elsewhere: they give credentials of the machine."""


def is_metadata(address: str) -> bool:
    """Return whether an address is link-local or that of a metadata service; ValueError."""
    return is_listed(address, _METADATA)


def is_listed(address: str, networks: Iterable[Network]) -> bool:
    """Return whether an address is in one of the networks; ValueError for a text that is no address."""
    found = _parse(address)
    return any(candidate in network for candidate in {found, _carried(found)} for network in networks)


def is_public(address: str) -> bool:
    """Return whether an address is global unicast, and no service of a cloud; ValueError."""
    found = _parse(address)
    if (carried := _carried(found)) != found:
        found = carried
    elif isinstance(found, ipaddress.IPv6Address) and found not in _GLOBAL:
        return False
    return found.is_global and not found.is_multicast and not any(found in network for network in _SPECIAL)


def _parse(address: str) -> _Address:
    return ipaddress.ip_address(address.partition("%")[0])


def _carried(address: _Address) -> _Address:
    """Return the IPv4 address that an IPv6 address carries, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
