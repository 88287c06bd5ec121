"""The services of a simulated member as its API server calls them: webhooks whose pods run allow everything.

Simulated pods hold no program. A Service with a ready endpoint answers an AdmissionReview with `allowed` and converts
an object by a new `apiVersion`; one without makes the call fail, as in a cluster. `apimachinery/webhooks.py` calls it.
"""

from typing import Any

from federation.apimachinery.errors import BadRequest, NotFound, ServiceUnavailable
from federation.apimachinery.resources import ENDPOINT_SLICES, SERVICES, Object
from federation.client.client import Client

_SERVICE_LABEL = "kubernetes.io/service-name"


class PodWebhooks:
    """Answers for all services of one member."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def answer(self, namespace: str, name: str, review: Object) -> Any:
        """Return the answer of a ready pod behind the service; ServiceUnavailable when there is none."""
        try:
            await self._client.get(SERVICES, name, namespace)
        except NotFound as error:
            raise ServiceUnavailable(f'service "{name}" not found') from error
        found = await self._client.list(ENDPOINT_SLICES, namespace, label_selector=f"{_SERVICE_LABEL}={name}")
        if not any(_has_ready_endpoint(each) for each in found.items):
            raise ServiceUnavailable(f'no endpoints available for service "{name}"')
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": _respond(review)}


def _has_ready_endpoint(slice_: Object) -> bool:
    return any((each.get("conditions") or {}).get("ready") is not False for each in slice_.get("endpoints") or ())


def _respond(review: Object) -> Object:
    request = review["request"]
    match review["kind"]:
        case "AdmissionReview":
            return {"uid": request["uid"], "allowed": True}
        case "ConversionReview":
            version = request["desiredAPIVersion"]
            objects = [{**each, "apiVersion": version} for each in request["objects"]]
            return {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        case _:
            raise BadRequest(f"a simulated webhook does not answer {review['kind']}")
