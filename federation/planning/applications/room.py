"""What the quotas and limit ranges of a namespace in a cluster leave for an application. Pure.

Requests are compared as the API server of the cluster does when it admits a pod: with `hard` less `used` of each
ResourceQuota without scopes, and with `max` of each LimitRange for containers.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from federation.apimachinery.quantity import NANOS, ZERO, Quantity, parse
from federation.apimachinery.resources import GroupKind
from federation.planning.clusters.clusterresources import spec_requests

RESOURCE_QUOTA, LIMIT_RANGE = GroupKind("", "ResourceQuota"), GroupKind("", "LimitRange")
_REQUESTS = "requests."
_ONE = Quantity(NANOS)


def lacking_room(
    pod: Mapping[str, Any], count: int, quotas: Iterable[Mapping[str, Any]], ranges: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Return a sentence for each quota and limit range that so many pods of this spec exceed."""
    return [*_exceeded(pod, count, quotas), *_too_large(pod, ranges)]


def _exceeded(pod: Mapping[str, Any], count: int, quotas: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    amounts = {"pods": _ONE, **spec_requests(pod)}
    for quota in quotas:
        spec, used = quota.get("spec") or {}, (quota.get("status") or {}).get("used") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue
        for key, hard in sorted((spec.get("hard") or {}).items()):
            each = amounts.get(key.removeprefix(_REQUESTS), ZERO)
            wanted, free = Quantity(each.nanos * count, each.notation), _amount(hard) - _amount(used.get(key))
            if free < wanted:
                left = max(ZERO, free)
                yield f"ResourceQuota {quota['metadata']['name']} leaves {left} {key}, and {wanted} are needed"


def _too_large(pod: Mapping[str, Any], ranges: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for limits in ranges:
        for entry in (limits.get("spec") or {}).get("limits") or ():
            if entry.get("type") != "Container":
                continue
            for key, most in sorted((entry.get("max") or {}).items()):
                for container in pod.get("containers") or ():
                    resources = container.get("resources") or {}
                    given = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}.get(key)
                    if _amount(most) < _amount(given):
                        name, title = limits["metadata"]["name"], container.get("name")
                        yield f"LimitRange {name} allows {most} {key}, and container {title} has {given}"


def _amount(value: Any) -> Quantity:
    """Return a quantity of an object; none for what is absent or malformed, which the cluster judges itself."""
    try:
        return parse(value)
    except (TypeError, ValueError):
        return ZERO
