"""The rights to approve and sign CertificateSigningRequests, as kube-apiserver's three admission plugins for them.

RBAC alone lets a user with the subresource approve the requests of every signer. These checks ask in addition for the
verb `approve` or `sign` on the signer, and refuse client certificates for the group system:masters.
"""

from federation.apimachinery.errors import Forbidden
from federation.apimachinery.resources import Object
from federation.apiserver.admission.requests import CREATE, AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, Decide
from federation.apiserver.semantics.validation.certificatevalidation import (
    KUBE_API_CLIENT_SIGNER,
    parse_request,
    subject_organizations,
)

_GROUP = "certificates.k8s.io"
_MASTERS = "system:masters"


class CertificateRequests:
    """An `AdmissionPlugin`; it has no state."""

    resources = frozenset({f"certificatesigningrequests.{_GROUP}"})

    def mutate(self, request: AdmissionRequest) -> Object:
        """Return the object unchanged."""
        assert request.obj is not None
        return request.obj

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Refuse an approval or signature without the permission for the signer; Forbidden."""
        obj, old = request.obj, request.old
        assert obj is not None
        if request.operation == CREATE:
            self._check_subject(request, obj)
        elif old is not None:
            signer = str((old.get("spec") or {}).get("signerName") or "")
            if request.subresource == "approval":
                _check_signer(request, access, "approve", signer)
            elif request.subresource == "status" and _decision(obj) != _decision(old):
                _check_signer(request, access, "sign", signer)

    def _check_subject(self, request: AdmissionRequest, obj: Object) -> None:
        spec = obj.get("spec") or {}
        if spec.get("signerName") != KUBE_API_CLIENT_SIGNER:
            return
        if _MASTERS in subject_organizations(parse_request(spec.get("request") or "")):
            raise _forbidden(request, f"use of {KUBE_API_CLIENT_SIGNER} signer with {_MASTERS} group is not allowed")


def _check_signer(request: AdmissionRequest, access: Decide, verb: str, signer: str) -> None:
    """Require the verb on the signer or on all signers of its domain."""
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        if access(AccessCheck(verb, _GROUP, "signers", "", "", name)).is_allowed:
            return
    raise _forbidden(request, f'user not permitted to {verb} requests with signerName "{signer}"')


def _decision(obj: Object) -> tuple[object, object]:
    status = obj.get("status") or {}
    return status.get("certificate") or "", status.get("conditions") or []


def _forbidden(request: AdmissionRequest, text: str) -> Forbidden:
    details = {"name": request.name, "group": _GROUP, "kind": request.resource.plural}
    return Forbidden(f'{request.resource.group_resource} "{request.name}" is forbidden: {text}', details=details)
