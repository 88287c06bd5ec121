"""Kubernetes' CEL library: lists, sets, regular expressions, URLs, IP addresses, quantities, versions. Pure.

A quantity, URL, IP, CIDR or version value is a mapping with one entry: the type name and the canonical text, so that
equality works. `format.*` is missing; an expression that uses it does not compile. `authorizer.py` has the functions of
`authorizer`, `semanticversions.py` the order of versions.
"""

import ipaddress
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import re2

from federation.apimachinery import quantity
from federation.apimachinery.textcache import cache_short
from federation.apiserver.semantics.cel import authorizer, semanticversions
from federation.apiserver.semantics.cel.arguments import collecting

_QUANTITY, _URL, _IP, _CIDR, _SEMVER = "quantity", "url", "ip", "cidr", "semver"
_RE2_OPTIONS = re2.Options()
_RE2_OPTIONS.log_errors = False
_RE2_OPTIONS.max_mem = 1024 * 1024
_Value = dict[str, Any]
_Table = Iterable[tuple[str, Any, Callable[..., Any]]]
_Add = Callable[..., None]
"""Declares one function: (name, result, parameters, implementation, member=)."""
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def library(cel: Any) -> Any:
    """Return the CEL extension with all functions; `cel` is the module of the CEL runtime."""
    types = cel.Type
    declared: dict[str, list[Any]] = {}

    def add(name: str, result: Any, parameters: list[Any], impl: Callable[..., Any], *, member: bool = True) -> None:
        overloads = declared.setdefault(name, [])
        identity = f"federation_{name.replace('.', '_')}_{len(overloads)}"
        overloads.append(cel.Overload(identity, result, parameters, member, impl=collecting(impl)))

    _add_lists(add, types)
    _add_parsers(add, types)
    _add_members(add, types)
    _add_pairs(add, types)
    authorizer.declare(add, types)
    return cel.CelExtension("kubernetes", [cel.FunctionDecl(name, found) for name, found in declared.items()])


def _add_lists(add: _Add, types: Any) -> None:
    dyn, integer, boolean, values = types.DYN, types.INT, types.BOOL, types.List(types.DYN)
    table: _Table = (
        ("isSorted", boolean, lambda items: all(a <= b for a, b in pairwise(items))),
        ("sum", dyn, sum),
        ("min", dyn, min),
        ("max", dyn, max),
    )
    for name, result, impl in table:
        add(name, result, [values], impl)
    add("indexOf", integer, [values, dyn], _index)
    add("lastIndexOf", integer, [values, dyn], _last_index)
    add("sets.contains", boolean, [values, values], _contains_all, member=False)
    add("sets.intersects", boolean, [values, values], lambda a, b: any(item in a for item in b), member=False)
    add("sets.equivalent", boolean, [values, values], _are_equivalent, member=False)


def _add_parsers(add: _Add, types: Any) -> None:
    text, integer, boolean = types.STRING, types.INT, types.BOOL
    own = types.Map(text, types.DYN)
    add("find", text, [text, text], _find)
    add("findAll", types.List(text), [text, text], _find_all)
    add("findAll", types.List(text), [text, text, integer], _find_all)
    table: _Table = (
        ("isQuantity", boolean, _succeeds(_quantity)),
        ("quantity", own, _quantity),
        ("isURL", boolean, _succeeds(_url)),
        ("url", own, _url),
        ("isIP", boolean, _succeeds(_ip)),
        ("ip", own, _ip),
        ("ip.isCanonical", boolean, lambda value: _ip(value)[_IP] == value),
        ("isCIDR", boolean, _succeeds(_cidr)),
        ("cidr", own, _cidr),
        ("isSemver", boolean, _succeeds(_semver)),
        ("semver", own, _semver),
        ("jsonpatch.escapeKey", text, lambda key: key.replace("~", "~0").replace("/", "~1")),
    )
    for name, result, impl in table:
        add(name, result, [text], impl, member=False)
    add("isSemver", boolean, [text, boolean], _succeeds(_semver), member=False)
    add("semver", own, [text, boolean], _semver, member=False)


def _add_members(add: _Add, types: Any) -> None:
    text, integer, boolean = types.STRING, types.INT, types.BOOL
    values, own = types.List(types.DYN), types.Map(text, types.DYN)
    table: _Table = (
        ("major", integer, lambda v: semanticversions.order(v[_SEMVER])[0]),
        ("minor", integer, lambda v: semanticversions.order(v[_SEMVER])[1]),
        ("patch", integer, lambda v: semanticversions.order(v[_SEMVER])[2]),
        ("sign", integer, lambda q: _compare(q, {_QUANTITY: "0"})),
        ("isInteger", boolean, lambda q: _milli(q) % 1000 == 0),
        ("asInteger", integer, _as_integer),
        ("asApproximateFloat", types.DOUBLE, lambda q: _milli(q) / 1000),
        ("getScheme", text, lambda u: urlsplit(u[_URL]).scheme),
        ("getHost", text, lambda u: urlsplit(u[_URL]).netloc.rpartition("@")[2]),
        ("getHostname", text, lambda u: urlsplit(u[_URL]).hostname or ""),
        ("getPort", text, lambda u: str(urlsplit(u[_URL]).port or "")),
        ("getEscapedPath", text, lambda u: urlsplit(u[_URL]).path),
        ("getQuery", types.Map(text, values), lambda u: parse_qs(urlsplit(u[_URL]).query, keep_blank_values=True)),
        ("family", integer, lambda a: _address(a).version),
        ("isUnspecified", boolean, lambda a: _address(a).is_unspecified),
        ("isLoopback", boolean, lambda a: _address(a).is_loopback),
        ("isLinkLocalMulticast", boolean, _is_link_local_multicast),
        ("isLinkLocalUnicast", boolean, lambda a: _address(a).is_link_local),
        ("isGlobalUnicast", boolean, _is_global_unicast),
        ("ip", own, lambda c: {_IP: c[_CIDR].partition("/")[0]}),
        ("prefixLength", integer, lambda c: _network(c).prefixlen),
        ("masked", own, lambda c: {_CIDR: str(_network(c))}),
    )
    for name, result, impl in table:
        add(name, result, [own], impl)


def _add_pairs(add: _Add, types: Any) -> None:
    text, integer, boolean = types.STRING, types.INT, types.BOOL
    own = types.Map(text, types.DYN)
    add("isGreaterThan", boolean, [own, own], lambda a, b: _compare(a, b) > 0)
    add("isLessThan", boolean, [own, own], lambda a, b: _compare(a, b) < 0)
    add("compareTo", integer, [own, own], _compare)
    add("add", own, [own, own], lambda a, b: _sum(a, b, 1))
    add("sub", own, [own, own], lambda a, b: _sum(a, b, -1))
    add("add", own, [own, integer], lambda a, b: _sum(a, {_QUANTITY: str(b)}, 1))
    add("sub", own, [own, integer], lambda a, b: _sum(a, {_QUANTITY: str(b)}, -1))
    for inner in (text, own):
        add("containsIP", boolean, [own, inner], lambda c, a: _address(a) in _network(c))
        add("containsCIDR", boolean, [own, inner], _contains_network)


def _succeeds(parse: Callable[..., object]) -> Callable[..., bool]:
    def succeeds(*arguments: Any) -> bool:
        try:
            parse(*arguments)
        except ValueError:
            return False
        return True

    return succeeds


def _index(items: list[Any], wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if item == wanted), -1)


def _last_index(items: list[Any], wanted: Any) -> int:
    return max((index for index, item in enumerate(items) if item == wanted), default=-1)


def _contains_all(items: list[Any], wanted: list[Any]) -> bool:
    return all(item in items for item in wanted)


def _are_equivalent(left: list[Any], right: list[Any]) -> bool:
    return _contains_all(left, right) and _contains_all(right, left)


@cache_short(256)
def _pattern(pattern: str) -> Any:
    """Return the compiled pattern. As in Go, RE2: Python's engine takes exponential time for some patterns."""
    try:
        return re2.compile(pattern, _RE2_OPTIONS)
    except re2.error as error:
        raise ValueError(f"invalid regular expression: {error}") from error


def _find(value: str, pattern: str) -> str:
    found = _pattern(pattern).search(value)
    return found.group() if found else ""


def _find_all(value: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match.group() for match in _pattern(pattern).finditer(value)]
    return found if limit < 0 else found[:limit]


def _quantity(value: str) -> _Value:
    return {_QUANTITY: str(quantity.parse(value))}


def _milli(value: _Value) -> int:
    return quantity.to_milli(value[_QUANTITY])


def _as_integer(value: _Value) -> int:
    whole, rest = divmod(_milli(value), 1000)
    if rest:
        raise ValueError("cannot convert value to integer")
    return whole


def _compare(a: _Value, b: _Value) -> int:
    """Compare two quantities or two versions."""
    if _SEMVER in a:
        older, newer = semanticversions.order(a[_SEMVER]), semanticversions.order(b[_SEMVER])
        return (newer < older) - (older < newer)
    left, right = quantity.parse(a[_QUANTITY]), quantity.parse(b[_QUANTITY])
    return (right < left) - (left < right)


def _semver(value: str, is_lenient: bool = False) -> _Value:  # CEL passes it by position
    return {_SEMVER: semanticversions.parse(semanticversions.normalize(value) if is_lenient else value)}


def _sum(a: _Value, b: _Value, sign: int) -> _Value:
    left, right = quantity.parse(a[_QUANTITY]), quantity.parse(b[_QUANTITY])
    return {_QUANTITY: str(left + right if sign > 0 else left - right)}


def _url(value: str) -> _Value:
    parts = urlsplit(value)
    if not (parts.scheme or value.startswith("/")) or " " in value:
        raise ValueError(f"URL parse error during conversion from string: {value}")
    return {_URL: value}


def _ip(value: str) -> _Value:
    return {_IP: str(ipaddress.ip_address(value))}


def _address(value: _Value | str) -> _Address:
    return ipaddress.ip_address(value if isinstance(value, str) else value[_IP])


def _is_link_local_multicast(value: _Value) -> bool:
    address = _address(value)
    prefix = "224.0.0.0/24" if address.version == 4 else "ff02::/16"
    return address in ipaddress.ip_network(prefix)


def _is_global_unicast(value: _Value) -> bool:
    address = _address(value)
    is_special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not is_special and str(address) != "255.255.255.255"


def _cidr(value: str) -> _Value:
    if "/" not in value:
        raise ValueError(f"network address parse error during conversion from string: {value}")
    return {_CIDR: str(ipaddress.ip_interface(value))}


def _network(value: _Value | str) -> _Network:
    return ipaddress.ip_network(value if isinstance(value, str) else value[_CIDR], strict=False)


def _contains_network(outer: _Value, inner: _Value | str) -> bool:
    large, small = _network(outer), _network(inner)
    return large.version == small.version and large.prefixlen <= small.prefixlen and small.network_address in large
