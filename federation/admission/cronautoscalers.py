"""Admission of CronFederatedHPAs: schedules and time zones, which their schema cannot check."""

from federation.api.resources import CRON_AUTOSCALERS
from federation.apimachinery.errors import cause, invalid
from federation.apimachinery.resources import Object
from federation.apiserver.admission.requests import CREATE, UPDATE, AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide
from federation.planning.autoscaling.cronrules import schedule_problem


class CronAutoscalerAdmission:
    """An `AdmissionPlugin` without state."""

    resources = frozenset({CRON_AUTOSCALERS.group_resource})

    def mutate(self, request: AdmissionRequest) -> Object:
        """Change nothing."""
        return request.obj or {}

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:  # noqa: ARG002  # a plugin's signature
        """Refuse a malformed schedule and an unknown time zone; Invalid."""
        obj, old = request.obj or {}, request.old
        if request.subresource or request.operation not in (CREATE, UPDATE):
            return
        if old is not None and old.get("spec") == obj.get("spec"):
            return
        causes = []
        for index, rule in enumerate((obj.get("spec") or {}).get("rules") or ()):
            field, problem = schedule_problem(rule)
            if problem:
                text = f'Invalid value: "{rule.get(field)}": {problem}'
                causes.append(cause("FieldValueInvalid", text, f"spec.rules[{index}].{field}"))
        if causes:
            raise invalid(CRON_AUTOSCALERS.kind, CRON_AUTOSCALERS.group, request.shown_name, causes)
