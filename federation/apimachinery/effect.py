"""Whether a stored configuration of an API server acts on its own requests or is only data.

Webhook configurations, admission policies, APIServices, flow control objects and conversion webhooks act on the server
that stores them. A server that holds objects for other servers passes a function which tells the two apart
(`Registry.set_effect`); without one everything acts, as in Kubernetes.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from federation.apimachinery.resources import Object, Resource


class Effect(StrEnum):
    """The effect of an object on this server."""

    NONE = "None"
    """It is data."""
    REACHABLE = "Reachable"
    """It acts, except for webhooks that name a service: this server has no network to services."""
    ALL = "All"
    """It acts as in Kubernetes."""


EffectOf = Callable[[Resource, Object], Effect]
"""Returns the effect of an object; called whenever it is loaded or written."""


def acts_fully(resource: Resource, obj: Object) -> Effect:
    """Return Effect.ALL, for a server that holds objects of its own only."""
    del resource, obj
    return Effect.ALL


def is_called(client_config: Mapping[str, Any], effect: Effect) -> bool:
    """Return whether this server calls the webhook with this `clientConfig`."""
    return effect is Effect.ALL or (effect is Effect.REACHABLE and not client_config.get("service"))
