"""What the control plane says about the delivery of an object: what each cluster should have, has and runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from federation.apimachinery.errors import ConfigurationError, Forbidden
from federation.apimachinery.resources import Resource
from federation.terminal.kubeconfigcontext import get_json

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

Delivery = Mapping[str, Any]
"""The answer of `/federation/v1/delivery`."""
_PATH = "/federation/v1/delivery"


async def read_delivery(host: "HTTPClient", resource: Resource, namespace: str, name: str) -> Delivery:
    """Return where the object is; without clusters when it is not federated, or when the server does not tell."""
    parameters = {"group": resource.group, "kind": resource.kind, "name": name}
    if resource.namespaced:
        parameters["namespace"] = namespace
    try:
        answer = await get_json(host, _PATH, parameters)
    except (ConfigurationError, Forbidden):
        # An earlier version has no such path, and a user may be allowed to read the journal only.
        return {"conditions": [], "clusters": []}
    assert isinstance(answer, dict)
    return answer
