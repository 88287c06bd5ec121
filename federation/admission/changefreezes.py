"""Admission of ChangeFreezes: windows whose schedule, duration or time zone cannot be read are refused."""

from federation.api.resources import CHANGE_FREEZES
from federation.apimachinery.errors import cause, invalid
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide
from federation.planning.freezes.changefreeze import window_problems


class ChangeFreezeAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server."""

    resources = frozenset({CHANGE_FREEZES.group_resource})

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:  # noqa: ARG002  # a plugin's signature
        """Raise Invalid for a window that cannot be read."""
        problems = list(window_problems((request.obj or {}).get("spec") or {}))
        if problems:
            causes = [cause("FieldValueInvalid", f"Invalid value: {text}", field) for field, text in problems]
            raise invalid(CHANGE_FREEZES.kind, CHANGE_FREEZES.group, request.name, causes)
