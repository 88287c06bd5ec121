"""Admission of PlacementHolds: users approve what the guard holds, and nothing else.

Users who may update PlacementHolds may approve; by default only cluster administrators may. The API server records who
approved and when, so that no user can approve in the name of another, or for moves that are held later.
"""

from federation.admission.federatedobjects import forbidden
from federation.api.resources import PLACEMENT_HOLDS
from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.errors import cause, invalid
from federation.apimachinery.resources import Object
from federation.apiserver.admission.requests import CREATE, UPDATE, AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide

_REASON = "spec.approval.reason"


class PlacementHoldAdmission:
    """An `AdmissionPlugin`. It lives as long as the API server."""

    resources = frozenset({PLACEMENT_HOLDS.group_resource})

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def mutate(self, request: AdmissionRequest) -> Object:
        """Record the user and the time of a new approval; a given approval stays as it is."""
        obj = request.obj or {}
        approval = _approval(obj)
        if request.operation != UPDATE or approval is None:
            return obj
        given = _approval(request.old or {})
        stamp = {"by": str(request.user.get("username", "")), "at": to_rfc3339(self._clock.now())}
        if given is not None and given.get("reason") == approval.get("reason"):
            stamp = {field: given[field] for field in ("by", "at") if field in given}
        return {**obj, "spec": {**obj["spec"], "approval": {**approval, **stamp}}}

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:  # noqa: ARG002  # a plugin's signature
        """Raise Forbidden for any other change of the spec, Invalid for an approval without a reason."""
        if request.operation == CREATE:
            raise forbidden(request, "only the control plane creates it", field="")
        if request.operation != UPDATE:
            return
        obj, old = request.obj or {}, request.old or {}
        if _without_approval(obj) != _without_approval(old):
            raise forbidden(request, "only spec.approval can be changed", field="spec")
        given, approval = _approval(old), _approval(obj)
        if given is not None and approval != given:
            raise forbidden(request, "it is approved already", field="spec.approval")
        if approval is not None and not str(approval.get("reason") or "").strip():
            causes = [cause("FieldValueRequired", "Required value: say why the moves may go on", _REASON)]
            raise invalid(PLACEMENT_HOLDS.kind, PLACEMENT_HOLDS.group, request.name, causes)


def _approval(obj: Object) -> Object | None:
    approval = (obj.get("spec") or {}).get("approval")
    return approval if isinstance(approval, dict) else None


def _without_approval(obj: Object) -> Object:
    return {field: value for field, value in (obj.get("spec") or {}).items() if field != "approval"}
