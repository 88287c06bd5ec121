"""The syntax of quantities, times and the string formats of structural schemas. Pure.

Quantities and times have the syntax of Go's parsers. An unknown format is accepted, as in Kubernetes.
"""

import base64
import binascii
import ipaddress
import re
import uuid
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

QUANTITY_ERROR: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

_QUANTITY = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[KMGTPE]i|[numkMGTPE]?|[eE][+-]?\d+)", re.ASCII)
_TIME = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?"
    r"(?:Z|[+-](?:[01]\d|2[0-4]):[0-5]\d)",
    re.ASCII,
)
_MICROSECONDS = re.compile(r"[.,]\d{6}(?!\d)", re.ASCII)
_DURATION = re.compile(
    r"[+-]?(?:0|(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h)(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))*)"
)
_HOSTNAME = re.compile(
    r"(?=.{1,255}$)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*\.?"
)
_EMAIL = re.compile(r"[^@\s<>()\[\],;:\\\"]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*")
_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}")
_UUID = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_HEX_COLOR = re.compile(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")

is_quantity: Final[Callable[[str], object]] = _QUANTITY.fullmatch
is_time: Final[Callable[[str], object]] = _TIME.fullmatch


def is_micro_time(value: str) -> bool:
    """Return True for the text of a Go MicroTime: an RFC 3339 time with exactly six digits after the second."""
    return _TIME.fullmatch(value) is not None and _MICROSECONDS.search(value) is not None


def _is_date(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return len(value) == len("2006-01-02")


def _is_ip(value: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(value).version == version
    except ValueError:
        return False


def _is_cidr(value: str) -> bool:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return "/" in value


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme) or value.startswith("/")


def _is_uuid(value: str, version: int) -> bool:
    return _UUID.fullmatch(value) is not None and uuid.UUID(value).version == version


@lru_cache(maxsize=4096)
def _is_date_time(value: str) -> bool:
    """Return True for a date-time. Cached, because objects repeat times: statuses in each write, many of one second."""
    return _TIME.fullmatch(value.replace(" ", "T", 1).upper()) is not None


_FORMATS: Final[dict[str, Callable[[str], object]]] = {
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "date": _is_date,
    "duration": _DURATION.fullmatch,
    "byte": _is_base64,
    "ipv4": lambda value: _is_ip(value, 4),
    "ipv6": lambda value: _is_ip(value, 6),
    "cidr": _is_cidr,
    "mac": _MAC.fullmatch,
    "hostname": _HOSTNAME.fullmatch,
    "email": _EMAIL.fullmatch,
    "uri": _is_uri,
    "uuid": _UUID.fullmatch,
    "uuid3": lambda value: _is_uuid(value, 3),
    "uuid4": lambda value: _is_uuid(value, 4),
    "uuid5": lambda value: _is_uuid(value, 5),
    "hexcolor": _HEX_COLOR.fullmatch,
    "k8s-short-name": lambda value: len(value) <= 63 and _LABEL.fullmatch(value),
    "k8s-long-name": lambda value: len(value) <= 253 and all(_LABEL.fullmatch(part) for part in value.split(".")),
}


def has_format(value: str, name: str) -> bool:
    """Return True if a string has the named format, or if the format is unknown."""
    check = _FORMATS.get(name)
    return check is None or bool(check(value))
