"""A Pod's usage of a ResourceQuota, as Kubernetes' pod evaluator computes it (pkg/quota/v1/evaluator/core/pods.go).

Finished pods count only as stored objects. Requests and limits are those of the pod as a whole: the sum of containers
and sidecars or the peak during initialization, whichever is larger, plus overhead. `usage.py` covers the other kinds.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery.quantity import ZERO, Quantity, parse
from federation.apimachinery.resources import Object

Usage = dict[str, Quantity]
"""Amounts by the resource names of a ResourceQuota's `spec.hard`."""

ONE = Quantity(10**9)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_EXPLICIT = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_FINISHED = frozenset({"Succeeded", "Failed"})


def parse_usage(amounts: Mapping[str, Any] | None) -> Usage:
    """Return the usage that a field such as `status.used` or `resources.requests` contains; null is 0, as in Go."""
    return {name: ZERO if amount is None else parse(amount) for name, amount in (amounts or {}).items()}


def pod_usage(pod: Object) -> Usage:
    """Return the usage of a pod."""
    if (pod.get("status") or {}).get("phase") in _FINISHED:
        return {"count/pods": ONE}
    spec = pod.get("spec") or {}
    usage = _compute_usage(_with_overhead(spec, "requests"), _with_overhead(spec, "limits"))
    return {"count/pods": ONE, "pods": ONE, **usage}


def missing_resources(pod: Object, tracked: Iterable[str]) -> str:
    """Return the text about containers that do not specify a tracked cpu or memory resource, "" if all do."""
    required = _EXPLICIT.intersection(tracked)
    missing: dict[str, set[str]] = {}
    for container in _containers(pod.get("spec") or {}, "initContainers", "containers"):
        given = _compute_usage(_amounts(container, "requests"), _amounts(container, "limits"))
        for name in required - given.keys():
            missing.setdefault(name, set()).add(str(container.get("name")))
    if not missing:
        return ""
    return "must specify " + "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def is_best_effort(pod: Object) -> bool:
    """Return True if no container requests or limits cpu or memory."""
    for container in _containers(pod.get("spec") or {}, "initContainers", "containers"):
        for part in ("requests", "limits"):
            amounts = _amounts(container, part)
            if any(amounts.get(name, ZERO).nanos for name in ("cpu", "memory")):
                return False
    return True


def _compute_usage(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> Usage:
    usage: Usage = {}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            usage[name] = amount
            usage[f"requests.{name}"] = amount
        elif "/" in name:
            usage[f"requests.{name}"] = amount
    for name in _COMPUTE:
        if name in limits:
            usage[f"limits.{name}"] = limits[name]
    return usage


def _with_overhead(spec: Mapping[str, Any], part: str) -> Usage:
    total = pod_amounts(spec, part)
    for name, amount in parse_usage(spec.get("overhead")).items():
        if part == "requests" or name in total:
            total[name] = total.get(name, ZERO) + amount
    return total


def pod_amounts(spec: Mapping[str, Any], part: str) -> Usage:
    """Return the requests or limits (`part`) of a pod as a whole, without overhead."""
    total: Usage = {}
    for container in _containers(spec, "containers"):
        _add(total, _amounts(container, part))
    sidecars: Usage = {}
    peak: Usage = {}
    for container in _containers(spec, "initContainers"):
        amounts = _amounts(container, part)
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            amounts = sidecars
        else:
            amounts = _sum(amounts, sidecars)
        _raise_to(peak, amounts)
    _raise_to(total, peak)
    # Pod-level resources replace the sum of the containers.
    total.update(_amounts(spec, part))
    return total


def _containers(spec: Mapping[str, Any], *fields: str) -> list[Mapping[str, Any]]:
    return [container for field in fields for container in spec.get(field) or ()]


def _amounts(owner: Mapping[str, Any], part: str) -> Usage:
    return parse_usage((owner.get("resources") or {}).get(part))


def _sum(left: Usage, right: Usage) -> Usage:
    total = dict(left)
    _add(total, right)
    return total


def _add(total: Usage, amounts: Usage) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, ZERO) + amount


def _raise_to(total: Usage, amounts: Usage) -> None:
    for name, amount in amounts.items():
        if name not in total or total[name] < amount:
            total[name] = amount
