"""Validate probes and lifecycle hooks of containers, and the ports that they name."""

import re
from collections.abc import Mapping
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, forbidden, invalid, non_negative, one_of, problems_of, required

Fields = Mapping[str, Any]

_PORT_TEXT = "must be between 1 and 65535, inclusive"
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_HEADER_TEXT = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for"
    " validation is '[-A-Za-z0-9]+')"
)
_ONE_HANDLER = "may not specify more than 1 handler type"


def validate_port(number: Any, field: str) -> Causes:
    """Validate a port number."""
    if isinstance(number, int) and not 0 < number < 65536:
        return [invalid(field, number, _PORT_TEXT)]
    return []


def validate_port_or_name(port: Any, field: str) -> Causes:
    """Validate a port's number or name; an absent one is 0."""
    if isinstance(port, str):
        return problems_of(field, port, nameformats.port_name(port))
    return validate_port(port or 0, field)


def validate_probe(probe: Fields, field: str, *, is_readiness: bool) -> Causes:
    """Validate a probe; only one of readiness may need several successes."""
    causes = validate_handler(probe, field, None)
    for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        causes += non_negative(f"{field}.{name}", probe.get(name))
    at, grace_period_s = f"{field}.terminationGracePeriodSeconds", probe.get("terminationGracePeriodSeconds")
    if grace_period_s is not None and grace_period_s <= 0:
        causes.append(invalid(at, grace_period_s, "must be greater than 0"))
    if is_readiness:
        if grace_period_s is not None:
            causes.append(invalid(at, grace_period_s, "must not be set for readinessProbes"))
    elif probe.get("successThreshold", 1) not in {0, 1}:
        causes.append(invalid(f"{field}.successThreshold", probe["successThreshold"], "must be 1"))
    return causes


def validate_handler(handler: Fields, field: str, grace_period_s: int | None) -> Causes:
    """Validate the handler of a probe or hook; a sleep is not longer than the pod's grace period."""
    names = [name for name in ("exec", "httpGet", "tcpSocket", "grpc", "sleep") if handler.get(name) is not None]
    if not names:
        return [required(field, "must specify a handler type")]
    first, at = handler[names[0]], f"{field}.{names[0]}"
    causes: Causes = []
    if names[0] == "exec":
        causes += [] if first.get("command") else [required(f"{at}.command")]
    elif names[0] == "httpGet":
        causes += _validate_http(first, at)
    elif names[0] in {"tcpSocket", "grpc"}:
        causes += validate_port_or_name(first.get("port"), f"{at}.port")
    elif grace_period_s is not None and not 0 <= (first.get("seconds") or 0) <= grace_period_s:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period_s})"
        causes.append(invalid(at, first.get("seconds") or 0, text))
    return causes + [forbidden(f"{field}.{name}", _ONE_HANDLER) for name in names[1:]]


def _validate_http(action: Fields, field: str) -> Causes:
    causes = validate_port_or_name(action.get("port"), f"{field}.port")
    causes += one_of(f"{field}.scheme", action.get("scheme"), ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        name = header.get("name") or ""
        if not _HEADER.fullmatch(name):
            causes.append(invalid(f"{field}.httpHeaders", name, _HEADER_TEXT))
    return causes
