"""The objects that act on the host's API server, and those that only act in members. Pure.

Kinds such as webhook configurations act on the API server that stores them. The objects that policies deliver are
meant for members, where their services run, so they are data on the host unless a label says otherwise
(docs/decisions/0091). Our finalizer tells that an object was selected: it is in the object, so a restart, another
process and the end of a policy change nothing. The embedded API server asks for every such object; another API server
as host does not ask anybody.
"""

from collections.abc import Mapping
from typing import Any, Final

from federation.api import names
from federation.apimachinery import dotpaths
from federation.apimachinery.effect import Effect, is_called
from federation.apimachinery.finalizers import has_finalizer
from federation.apimachinery.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    API_SERVICES,
    CRDS,
    FLOW_SCHEMAS,
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    MUTATING_WEBHOOKS,
    PRIORITY_LEVELS,
    VALIDATING_WEBHOOKS,
    Object,
    Resource,
)

ACTING: Final = (
    VALIDATING_WEBHOOKS,
    MUTATING_WEBHOOKS,
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    API_SERVICES,
    FLOW_SCHEMAS,
    PRIORITY_LEVELS,
)
"""Kinds whose objects are data on the host once a policy selects them."""
_WEBHOOKS = frozenset((VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS))
_CONVERSION = ("spec", "conversion", "webhook", "clientConfig")
_CHOICES = {"true": Effect.ALL, "false": Effect.NONE}


def effect_on_host(resource: Resource, obj: Object, *, is_selected: bool) -> Effect:
    """Return what an object of the host does there. `is_selected`: whether a policy selects it.

    A definition serves its objects in any case; its effect is that of its conversion webhook.
    """
    chosen = _CHOICES.get(str((obj["metadata"].get("labels") or {}).get(names.ACTS_ON_HOST)))
    if chosen is not None:
        return chosen
    is_data = resource != CRDS and (is_selected or has_finalizer(obj, names.FEDERATE_FINALIZER))
    return Effect.NONE if is_data else Effect.REACHABLE


def webhooks_of(resource: Resource, obj: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return names and `clientConfig` of the webhooks of an object; that of a definition has no name."""
    if resource in _WEBHOOKS:
        found = ((str(each.get("name")), each.get("clientConfig") or {}) for each in obj.get("webhooks") or ())
        return list(found)
    config = dotpaths.get(obj, _CONVERSION) if resource == CRDS else None
    return [("", config)] if isinstance(config, Mapping) and config else []


def has_effect(resource: Resource, obj: Mapping[str, Any], effect: Effect) -> bool:
    """Return whether an object with this effect does anything on the host."""
    if resource in _WEBHOOKS or resource == CRDS:
        return any(is_called(config, effect) for _, config in webhooks_of(resource, obj))
    return effect is not Effect.NONE


def is_servers_own(group: str, kind: str, obj: Mapping[str, Any]) -> bool:
    """Return whether an API server made the object for itself; every cluster makes its own."""
    metadata = obj["metadata"]
    match group, kind:
        case "apiregistration.k8s.io", "APIService":
            return not (obj.get("spec") or {}).get("service")
        case "flowcontrol.apiserver.k8s.io", _:
            is_mandatory = metadata.get("name") in ("exempt", "catch-all")
            return is_mandatory or "apf.kubernetes.io/autoupdate-spec" in (metadata.get("annotations") or {})
        case "admissionregistration.k8s.io", _:
            return bool(metadata.get("name") == names.HOST_WEBHOOKS)
        case _:
            return False
