"""The variables of admission's CEL expressions (`object`, `request`, `params`, …) for one request. Pure.

`semantics/cel/admission.py` declares the names and types for compilation. Read `boundpolicies.py` next.
"""

from typing import Any

from federation.apimachinery.resources import Object
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import authorizer
from federation.apiserver.semantics.encoding import encoding

_NAMESPACE_METADATA = (
    "name",
    "generateName",
    "labels",
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "resourceVersion",
    "finalizers",
)
_NOT_SHOWN = frozenset({"uid", "object", "oldObject"})
"""Fields of an AdmissionReview's request that are variables of their own or have no use in process."""


class Activation:
    """The variables' values for one request, with its objects in one version."""

    def __init__(self, request: AdmissionRequest, version: str) -> None:
        review = request.to_review(version)
        self._values: dict[str, Any] = {
            "object": review["object"],
            "oldObject": review["oldObject"],
            "request": {key: value for key, value in review.items() if key not in _NOT_SHOWN},
            "namespaceObject": _namespace(request.namespace_object),
            "authorizer": authorizer(
                group=request.resource.group,
                resource=request.resource.plural,
                subresource=request.subresource,
                namespace=request.namespace,
                name=request.name,
            ),
        }

    def with_params(self, params: Object | None) -> dict[str, Any]:
        """Return the values with `params` set."""
        return {**self._values, "params": params}


def _namespace(stored: bytes) -> Object | None:
    if not stored:
        return None
    namespace = encoding.decode(stored)
    metadata = namespace["metadata"]
    shown = {key: metadata[key] for key in _NAMESPACE_METADATA if key in metadata}
    return {
        "metadata": {**shown, "UID": metadata.get("uid", "")},
        "spec": namespace.get("spec") or {},
        "status": namespace.get("status") or {},
    }
