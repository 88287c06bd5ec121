"""The services that a member's API server calls for an object, and whether pods behind them are ready. Pure.

A webhook configuration that arrives before its pods refuses what it matches, their own Deployment among it. So it is
created after they are ready; `host/servicewait.py` limits the time.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from federation.api.federatedtype import FederatedType
from federation.apimachinery import dotpaths
from federation.apimachinery.resources import API_SERVICES, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS

_WEBHOOKS = frozenset((each.group, each.kind) for each in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS))
_API_SERVICE = (API_SERVICES.group, API_SERVICES.kind)
_POD_LABELS = ("spec", "template", "metadata", "labels")
_READY_ON_NODES = ("status", "numberReady")
_READY = ("status", "readyReplicas")


class ServiceName(NamedTuple):
    """A service of a cluster."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"Service {self.namespace}/{self.name}"


def called_services(obj: Mapping[str, Any]) -> list[ServiceName]:
    """Return the services without which the object makes requests of the cluster fail, sorted."""
    kind = (str(obj.get("apiVersion", "")).rpartition("/")[0], obj.get("kind"))
    found: list[Any] = []
    if kind in _WEBHOOKS:
        failing = (each for each in obj.get("webhooks") or () if each.get("failurePolicy") != "Ignore")
        found = [(each.get("clientConfig") or {}).get("service") for each in failing]
    elif kind == _API_SERVICE:
        found = [(obj.get("spec") or {}).get("service")]
    named = (each for each in found if isinstance(each, Mapping))
    return sorted({ServiceName(str(each.get("namespace") or ""), str(each.get("name") or "")) for each in named})


def is_behind(service: Mapping[str, Any], workload: Mapping[str, Any]) -> bool:
    """Return whether pods of a workload belong to a service; both are templates in one namespace."""
    selector, labels = dotpaths.get(service, ("spec", "selector")), dotpaths.get(workload, _POD_LABELS)
    return (
        isinstance(selector, Mapping)
        and bool(selector)
        and isinstance(labels, Mapping)
        and selector.items() <= labels.items()
    )


def has_ready_pods(type_: FederatedType, live: Mapping[str, Any]) -> bool:
    """Return whether the member object of a workload reports a ready pod."""
    paths = (type_.paths.ready_replicas_status or _READY, _READY_ON_NODES)
    return any(isinstance(count := dotpaths.get(live, path), int) and count > 0 for path in paths)
