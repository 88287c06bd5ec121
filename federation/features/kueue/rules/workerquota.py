"""The quota that a worker's Kueue has left for a queue: what its ClusterQueue has and reserves. Pure.

A Workload is given one flavour for each resource, so a queue has as much of a resource as its best flavour has. What a
queue may borrow counts: whether others of its cohort have lent it out, the worker decides.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery.quantity import to_int_ceil, to_milli
from federation.scheduling.framework.gangfit import amount_number, amount_text
from federation.scheduling.framework.types import CPU, Resources

_ENTRIES_MAX = 256


def lacking(needed: Resources, local_queue: Mapping[str, Any] | None, cluster_queue: Mapping[str, Any] | None) -> str:
    """Return what the queue of a worker lacks for a Workload, "" if it has it."""
    if local_queue is None:
        return "it has no LocalQueue of that name in the namespace"
    if cluster_queue is None:
        return "its LocalQueue names no ClusterQueue that exists"
    free = free_quota(cluster_queue)
    for name, amount in needed.items():
        if name in free and amount > free[name]:
            return f"its queue has {amount_number(name, max(0, free[name]))} of {amount_text(name, amount)} free"
        if name not in free and amount and _is_limited(free):
            return f"its queue has no quota of {name}"
    return ""


def free_quota(cluster_queue: Mapping[str, Any]) -> dict[str, int]:
    """Return what a ClusterQueue has free of each resource, the most of any flavour; cpu in thousandths."""
    reserved = {
        (str(flavor.get("name")), str(entry.get("name"))): _amount(str(entry.get("name")), entry.get("total"))
        for flavor in _mappings(_mapping(cluster_queue.get("status")).get("flavorsReservation"))
        for entry in _mappings(flavor.get("resources"))
    }
    spec, free = _mapping(cluster_queue.get("spec")), dict[str, int]()
    borrows = bool(spec.get("cohortName") or spec.get("cohort"))
    for group in _mappings(spec.get("resourceGroups")):
        for flavor in _mappings(group.get("flavors")):
            for entry in _mappings(flavor.get("resources")):
                name = str(entry.get("name"))
                amount = _amount(name, entry.get("nominalQuota"))
                if borrows:
                    limit = entry.get("borrowingLimit")
                    amount = amount + _amount(name, limit) if limit is not None else _UNLIMITED
                left = amount - reserved.get((str(flavor.get("name")), name), 0)
                free[name] = max(free.get(name, left), left)
    return free


_UNLIMITED = 2**62


def _is_limited(free: Resources) -> bool:
    return bool(free)


def _amount(name: str, value: Any) -> int:
    """Return an amount, 0 for a malformed one."""
    try:
        return to_milli(str(value)) if name == CPU else to_int_ceil(str(value))
    except ValueError:
        return 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> Iterable[Mapping[str, Any]]:
    return [each for each in value[:_ENTRIES_MAX] if isinstance(each, Mapping)] if isinstance(value, list) else ()
