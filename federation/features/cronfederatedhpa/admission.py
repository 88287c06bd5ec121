"""Admission of CronFederatedHPAs: schedules and time zones, which their schema cannot check, and the right to scale.

The control plane scales as the author, when he is gone; without the permission he learns it at once.
"""

from federation.admission.federatedobjects import FindResource, forbidden
from federation.api.resources import CRON_AUTOSCALERS
from federation.apimachinery.errors import cause, invalid
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, Object
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, Decide
from federation.features.cronfederatedhpa.rules import schedule_problem


class CronAutoscalerAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state."""

    resources = frozenset({CRON_AUTOSCALERS.group_resource})

    def __init__(self, find: FindResource) -> None:
        self._find = find

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Refuse a malformed schedule and an unknown time zone (Invalid), and a target that is not his (Forbidden)."""
        obj = request.obj or {}
        if not request.changes_spec:
            return
        causes = []
        for index, rule in enumerate((obj.get("spec") or {}).get("rules") or ()):
            field, problem = schedule_problem(rule)
            if problem:
                text = f'Invalid value: "{rule.get(field)}": {problem}'
                causes.append(cause("FieldValueInvalid", text, f"spec.rules[{index}].{field}"))
        if causes:
            raise invalid(CRON_AUTOSCALERS.kind, CRON_AUTOSCALERS.group, request.shown_name, causes)
        self._check_rights(request, obj, access)

    def _check_rights(self, request: AdmissionRequest, obj: Object, access: Decide) -> None:
        target = obj["spec"]["scaleTargetRef"]
        resource = self._find(str(target.get("apiVersion") or ""), str(target["kind"]))
        if resource is None:
            return  # the rules fail with a message; what the author may do then is decided at that time
        subresource = "" if resource == HORIZONTAL_POD_AUTOSCALERS else "scale"
        name, namespace = str(target["name"]), request.namespace
        if access(AccessCheck("patch", resource.group, resource.plural, subresource, namespace, name)).is_allowed:
            return
        what = f"{resource.plural}/{subresource}" if subresource else resource.plural
        text = (
            f'User "{request.user.get("username", "")}" cannot patch {what} "{name}" in the namespace "{namespace}",'
            " which the control plane would patch for the rules; get that permission"
        )
        raise forbidden(request, text, field="spec.scaleTargetRef")
