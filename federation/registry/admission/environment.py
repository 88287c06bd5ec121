"""What expressions of admission may use (`object`, `request`, `params`, …) and what it is for one request. Pure.

`environment` declares the names for compiling, `Facts` holds the values. The request and the namespace are typed in
Kubernetes, so that a misspelled field of theirs is found when the expression is written; objects and parameters are
not. Read `policies.py` next.
"""

from collections.abc import Mapping
from typing import Any

from federation.api.resources import Object
from federation.registry import encoding
from federation.registry.admission.requests import AdmissionRequest
from federation.registry.cel.authorizer import authorizer
from federation.registry.cel.composition import Environment, Fields

_VARIABLES = ("object", "oldObject", "request", "namespaceObject")


def _fields(names: str, **nested: Fields) -> Fields:
    return {**dict.fromkeys(names.split()), **nested}


_KIND, _RESOURCE = _fields("group version kind"), _fields("group version resource")
_TYPED: Mapping[str, Fields] = {
    "request": _fields(
        "subResource requestSubResource name namespace operation dryRun options",
        kind=_KIND,
        resource=_RESOURCE,
        requestKind=_KIND,
        requestResource=_RESOURCE,
        userInfo=_fields("username uid groups extra"),
    ),
    "namespaceObject": _fields(
        "",
        metadata=_fields(
            "name generateName namespace labels annotations UID creationTimestamp deletionGracePeriodSeconds"
            " deletionTimestamp generation resourceVersion finalizers"
        ),
        spec=_fields("finalizers"),
        status=_fields("conditions phase"),
    ),
}
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
"""Parts of an AdmissionReview's request that are variables of their own, or of no use in process."""


def environment(*, has_params: bool = False, has_authorizer: bool = True) -> Environment:
    """Return an environment without variables of a policy."""
    names = (*_VARIABLES, *(("params",) if has_params else ()), *(("authorizer",) if has_authorizer else ()))
    return Environment(names, _TYPED)


class Facts:
    """The values of the variables for one request, in one version of its object."""

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
        """Return the values for an evaluation with these parameters."""
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
