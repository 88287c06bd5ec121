"""Admission of DeliverySuspensions: their users hold only what they may update themselves."""

from federation.admission.federatedobjects import FindResource
from federation.admission.selectedkinds import check_all_kinds, check_selected
from federation.api.resources import DELIVERY_SUSPENSIONS
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide

_FIELD = "spec.objects"


class SuspensionAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state."""

    resources = frozenset({DELIVERY_SUSPENSIONS.group_resource})

    def __init__(self, find: FindResource) -> None:
        self._find = find

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Raise Forbidden unless the requester may update every kind that the suspension selects."""
        if not request.changes_spec:
            return
        objects = ((request.obj or {}).get("spec") or {}).get("objects")
        if objects:
            check_selected(request, access, self._find, objects, _FIELD)
        else:
            check_all_kinds(request, access, _FIELD)
