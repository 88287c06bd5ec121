"""Warnings about IP addresses and networks that Kubernetes accepts and does not write itself. Pure.

Old fields accept leading zeros (`010.0.0.1`), IPv4 addresses in IPv6 form (`::ffff:1.2.3.4`), and IPv6 addresses in any
spelling. Some programs read such a text as another address than others do, so a warning names the usual form.
"""

import ipaddress

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def address_warnings(field: str, value: str) -> list[str]:
    """Return the warnings about an address; none for a text that is no address."""
    if (address := _lenient_address(value)) is None:
        return []
    if _is_non_standard(value, address):
        return [f'{field}: non-standard IP address "{value}" is invalid: use "{_plain(address)}"']
    if address.version == 6 and str(address) != value:
        return [f'{field}: IPv6 address "{value}" should be in RFC 5952 canonical format ("{address}")']
    return []


def network_warnings(field: str, value: str) -> list[str]:
    """Return the warnings about a network in CIDR notation; none for a text that is none."""
    text, _, length = value.partition("/")
    address = _lenient_address(text)
    if address is None or not length.isdecimal() or int(length) > address.max_prefixlen:
        return []
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None and int(length) >= 96:
        network = ipaddress.ip_network(f"{mapped}/{int(length) - 96}", strict=False)
    else:
        network = ipaddress.ip_network(f"{address}/{int(length)}", strict=False)
    plain = _plain(address)
    found = []
    if str(network.network_address) != plain:
        one = f"{plain}/{network.max_prefixlen}"
        found.append(f'{field}: CIDR value "{value}" is ambiguous in this context (should be "{network}" or "{one}"?)')
    if _is_non_standard(text, address) or str(int(length)) != length:
        found.append(f'{field}: non-standard CIDR value "{value}" is invalid: use "{network}"')
    if not found and address.version == 6 and f"{address}/{length}" != value:
        usual = f"{address}/{length}"
        found.append(f'{field}: IPv6 CIDR value "{value}" should be in RFC 5952 canonical format ("{usual}")')
    return found


def _lenient_address(value: str) -> _Address | None:
    parts = value.split(".")
    if len(parts) == 4 and all(part.isdecimal() for part in parts):
        value = ".".join(str(int(part)) for part in parts)
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        return None


def _is_non_standard(text: str, address: _Address) -> bool:
    """Return whether parsers disagree about the text: leading zeros, or IPv4 in IPv6."""
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped is not None
    return str(address) != text


def _plain(address: _Address) -> str:
    return str(getattr(address, "ipv4_mapped", None) or address)
