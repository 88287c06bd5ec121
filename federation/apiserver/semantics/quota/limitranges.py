"""Checks of Pods and PersistentVolumeClaims against a LimitRange, with the texts of Kubernetes' LimitRanger. Pure.

A LimitRange is parsed once, when it is stored. `admission/limitranges.py` keeps the parsed ones and applies them;
`strategies/limits.py` defaults and validates the kind itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from federation.apimachinery.quantity import Quantity, parse
from federation.apimachinery.resources import Object
from federation.apimachinery.wellknown import LIMIT_RANGER
from federation.apiserver.semantics.quota.podusage import Usage, parse_usage, pod_amounts

CONTAINER: Final = "Container"
POD: Final = "Pod"
CLAIM: Final = "PersistentVolumeClaim"


@dataclass(frozen=True, slots=True)
class Limit:
    """One entry of `spec.limits`: the type that it concerns, and amounts by resource name."""

    type: str
    least: Usage
    most: Usage
    ratio: Usage
    """The largest ratio of limit to request."""


@dataclass(frozen=True, slots=True)
class LimitRange:
    """The limits of one LimitRange, and what containers get that do not specify it, as texts of the manifest."""

    limits: tuple[Limit, ...]
    default_limits: Mapping[str, Any]
    default_requests: Mapping[str, Any]


def parse_limit_range(obj: Object) -> LimitRange:
    """Return the parsed form of a stored LimitRange."""
    entries = (obj.get("spec") or {}).get("limits") or []
    default_limits: dict[str, Any] = {}
    default_requests: dict[str, Any] = {}
    for entry in entries:
        if entry.get("type") == CONTAINER:
            default_limits |= entry.get("default") or {}
            default_requests |= entry.get("defaultRequest") or {}
    limits = tuple(
        Limit(
            entry.get("type") or "",
            *(_sorted(entry.get(field)) for field in ("min", "max", "maxLimitRequestRatio")),
        )
        for entry in entries
    )
    return LimitRange(limits, default_limits, default_requests)


def apply_defaults(pod: Object, limit_range: LimitRange) -> None:
    """Give containers the requests and limits that they do not specify, in place, and note it in the annotation."""
    if not limit_range.default_limits and not limit_range.default_requests:
        return
    notes = []
    for field, word in (("containers", "container"), ("initContainers", "init container")):
        for container in (pod.get("spec") or {}).get(field) or ():
            resources = container.get("resources")
            if not isinstance(resources, dict):
                resources = container["resources"] = {}
            for part, defaults in (("requests", limit_range.default_requests), ("limits", limit_range.default_limits)):
                given = resources.get(part) or {}
                missing = {name: amount for name, amount in defaults.items() if name not in given}
                if missing:
                    resources[part] = {**given, **missing}
                    notes.append(f"{', '.join(sorted(missing))} {part[:-1]} for {word} {container.get('name', '')}")
    if notes:
        metadata = pod["metadata"]
        metadata["annotations"] = {
            **(metadata.get("annotations") or {}),
            LIMIT_RANGER: f"LimitRanger plugin set: {'; '.join(notes)}",
        }


def pod_violations(pod: Object, limit_range: LimitRange) -> Iterator[str]:
    """Yield what a pod does not keep."""
    spec = pod.get("spec") or {}
    for limit in limit_range.limits:
        if limit.type == CONTAINER:
            for field in ("containers", "initContainers"):
                for container in spec.get(field) or ():
                    resources = container.get("resources") or {}
                    requests, limits = (parse_usage(resources.get(part)) for part in ("requests", "limits"))
                    yield from _violations(limit, requests, limits)
        elif limit.type == POD:
            yield from _violations(limit, pod_amounts(spec, "requests"), pod_amounts(spec, "limits"))


def claim_violations(claim: Object, limit_range: LimitRange) -> Iterator[str]:
    """Yield what a PersistentVolumeClaim does not keep. Only its requests count."""
    resources = (claim.get("spec") or {}).get("resources") or {}
    requests = parse_usage(resources.get("requests"))
    for limit in limit_range.limits:
        if limit.type == CLAIM:
            for name, least in limit.least.items():
                yield from _below(f"minimum {name} usage per {CLAIM} is {least}", least, requests.get(name), None)
            for name, most in limit.most.items():
                prefix = f"maximum {name} usage per {CLAIM} is {most}"
                amount = requests.get(name)
                if amount is None:
                    yield f"{prefix}.  No request is specified"
                elif most < amount:
                    yield f"{prefix}, but request is {amount}"


def _violations(limit: Limit, requests: Usage, limits: Usage) -> Iterator[str]:
    for name, least in limit.least.items():
        prefix = f"minimum {name} usage per {limit.type} is {least}"
        yield from _below(prefix, least, requests.get(name), limits.get(name))
    for name, most in limit.most.items():
        prefix = f"maximum {name} usage per {limit.type} is {most}"
        yield from _above(prefix, most, requests.get(name), limits.get(name))
    for name, ratio in limit.ratio.items():
        prefix = f"{name} max limit to request ratio per {limit.type} is {ratio}"
        yield from _apart(prefix, ratio, requests.get(name), limits.get(name))


def _below(prefix: str, least: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    if request is None:
        yield f"{prefix}.  No request is specified"
    elif request < least:
        yield f"{prefix}, but request is {request}"
    elif limit is not None and limit < least:
        yield f"{prefix}, but limit is {limit}"


def _above(prefix: str, most: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    if limit is None:
        yield f"{prefix}.  No limit is specified"
    elif most < limit:
        yield f"{prefix}, but limit is {limit}"
    elif request is not None and most < request:
        yield f"{prefix}, but request is {request}"


def _apart(prefix: str, ratio: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    if request is None or not request.nanos:
        yield f"{prefix}, but no request is specified or request is 0"
    elif limit is None or not limit.nanos:
        yield f"{prefix}, but no limit is specified or limit is 0"
    elif limit.nanos * 10**9 > ratio.nanos * request.nanos:
        yield f"{prefix}, but provided ratio is {limit.nanos / request.nanos:f}"


def _sorted(amounts: Mapping[str, Any] | None) -> Usage:
    """Return the amounts in the order of their names, so that messages do not depend on the manifest's order."""
    return dict(sorted(parse_usage(amounts).items()))


def complete_entry(entry: dict[str, Any]) -> None:
    """Fill the defaults of one entry of `spec.limits`, in place: from max to default to defaultRequest, then from min.

    As SetDefaults_LimitRangeItem (pkg/apis/core/v1/defaults.go).
    """
    if entry.get("type") != CONTAINER:
        return
    limits = {**(entry.get("max") or {}), **(entry.get("default") or {})}
    requests = {**(entry.get("min") or {}), **limits, **(entry.get("defaultRequest") or {})}
    if limits:
        entry["default"] = limits
    if requests:
        entry["defaultRequest"] = requests


def contradictions(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield field, resource name, value and problem of amounts in one entry that contradict each other."""
    amounts = {field: parse_usage(entry.get(field)) for field in _FIELDS}
    for name in sorted({name for found in amounts.values() for name in found}):
        least, most, limit, request, ratio = (amounts[field].get(name) for field in _FIELDS)
        for field, low, high, text in (
            ("min", least, most, "min value {} is greater than max value {}"),
            ("defaultRequest", least, request, "min value {} is greater than default request value {}"),
            ("defaultRequest", request, most, "default request value {} is greater than max value {}"),
            ("defaultRequest", request, limit, "default request value {} is greater than default limit value {}"),
            ("default", least, limit, "min value {} is greater than default value {}"),
            ("default", limit, most, "default value {} is greater than max value {}"),
        ):
            if low is not None and high is not None and high < low:
                shown = request if field == "defaultRequest" else low if field == "min" or high is limit else high
                yield field, name, str(shown), text.format(low, high)
        if ratio is not None and ratio < _ONE:
            yield "maxLimitRequestRatio", name, str(ratio), f"ratio {ratio} is less than 1"
        if ratio is None or least is None or most is None or not least.nanos:
            continue
        if ratio.nanos * least.nanos > most.nanos * 10**9:
            text = f"ratio {ratio} is greater than max/min = {most.nanos / least.nanos:f}"
            yield "maxLimitRequestRatio", name, str(ratio), text


_FIELDS = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
_ONE = parse("1")
