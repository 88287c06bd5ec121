"""Rights to use devices as an administrator, to allocate them and to report their status, as in kube-apiserver.

The right to write the status of a claim is not enough. Allocation needs the same verb on `resourceclaims/binding`, the
status of a driver's devices needs `arbitrary-node:VERB` on `resourceclaims/driver`, or `associated-node:VERB` for a
service account on the node of the allocation. Administrative access needs a label on the namespace.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.errors import invalid
from federation.apimachinery.fielderrors import Causes, forbidden
from federation.apimachinery.resources import Object
from federation.apiserver.admission.requests import CREATE, AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, Decide
from federation.apiserver.semantics.validation.devicevalidation import identity

_GROUP, _CLAIMS, _TEMPLATES = "resource.k8s.io", "resourceclaims", "resourceclaimtemplates"
_ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_NODE_NAME = "authentication.kubernetes.io/node-name"
Fields = Mapping[str, Any]


class ResourceClaims:
    """An `AdmissionPlugin`; it has no state."""

    resources = frozenset({f"{_CLAIMS}.{_GROUP}", f"{_TEMPLATES}.{_GROUP}"})

    def mutate(self, request: AdmissionRequest) -> Object:
        """Return the object unchanged."""
        assert request.obj is not None
        return request.obj

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Refuse what the requester may not do with devices; Invalid."""
        obj = request.obj or {}
        if request.operation == CREATE:
            spec = obj.get("spec") or {}
            spec = spec.get("spec") or {} if request.resource.plural == _TEMPLATES else spec
            causes = _check_admin_requests(request, spec)
        elif request.subresource == "status":
            causes = _check_status(request, access, obj.get("status") or {}, (request.old or {}).get("status") or {})
        else:
            return
        if causes:
            raise invalid(request.resource.kind, _GROUP, request.name, causes)


def _check_admin_requests(request: AdmissionRequest, spec: Fields) -> Causes:
    for index, found in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (found.get("exactly") or {}).get("adminAccess"):
            return _check_label(request, f"spec.devices.requests[{index}].adminAccess")
    return []


def _check_label(request: AdmissionRequest, field: str) -> Causes:
    if (request.namespace_labels or {}).get(_ADMIN_LABEL) == "true":
        return []
    text = f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing namespace"
    return [forbidden(field, text)]


def _check_status(request: AdmissionRequest, access: Decide, new: Fields, old: Fields) -> Causes:
    causes: Causes = []
    if _admin_result(old) is None and (index := _admin_result(new)) is not None:
        causes += _check_label(request, f"status.allocation.devices.results[{index}].adminAccess")
    # The request's own verb is update or patch. Roles for schedulers and drivers grant both.
    if any(new.get(name) != old.get(name) for name in ("allocation", "reservedFor")) and not _may_bind(access):
        text = (
            "changing status.allocation or status.reservedFor requires"
            ' resource="resourceclaims/binding", verb="update" permission'
        )
        causes.append(forbidden("status.allocation", text))
    if new.get("allocation") is None:
        return causes
    verbs = ["arbitrary-node:update"]
    if _is_on_node(request.user, new["allocation"]):
        verbs.insert(0, "associated-node:update")
    for driver in sorted(_changed_drivers(new, old)):
        if not any(
            access(AccessCheck(verb, _GROUP, _CLAIMS, "driver", request.namespace, driver)).is_allowed for verb in verbs
        ):
            text = f'changing status.devices requires resource="resourceclaims/driver", verb="[{" ".join(verbs)}]"'
            causes.append(forbidden("status.devices", f"{text} permission"))
    return causes


def _may_bind(access: Decide) -> bool:
    return access(AccessCheck("update", _GROUP, _CLAIMS, "binding")).is_allowed


def _admin_result(status: Fields) -> int | None:
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return next((index for index, found in enumerate(results) if found.get("adminAccess")), None)


def _changed_drivers(new: Fields, old: Fields) -> set[str]:
    """Return the drivers of devices whose status was added, changed or removed."""
    before = {identity(device): device for device in old.get("devices") or ()}
    after = {identity(device): device for device in new.get("devices") or ()}
    return {key[0] for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def _is_on_node(user: Fields, allocation: Fields) -> bool:
    """Return True for a service account of a pod on the one node that the allocation names."""
    nodes = (user.get("extra") or {}).get(_NODE_NAME) or ()
    if not str(user.get("username") or "").startswith("system:serviceaccount:") or len(nodes) != 1:
        return False
    terms: list[Fields] = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if len(terms) != 1 or terms[0].get("matchExpressions") or len(terms[0].get("matchFields") or ()) != 1:
        return False
    field: Fields = terms[0]["matchFields"][0]
    wanted = {"key": "metadata.name", "operator": "In", "values": list(nodes)}
    return dict(field) == wanted
