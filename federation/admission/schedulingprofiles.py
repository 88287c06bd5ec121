"""Admission of SchedulingProfiles: a profile with which no decision can be made is refused."""

from functools import cache

from federation.admission.policyselectors import ListObjects
from federation.api.resources import SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, SCHEDULING_PROFILES
from federation.apimachinery.errors import cause, invalid
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.policywarnings import missing_plugins, profile_problems

_installed = cache(load_plugins)


class SchedulingProfileAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state; `list_objects` reads the store."""

    resources = frozenset({SCHEDULING_PROFILES.group_resource})

    def __init__(self, list_objects: ListObjects) -> None:
        self._list = list_objects

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:  # noqa: ARG002  # a plugin's signature
        """Raise Invalid for a plugin that does not exist or rejects its arguments; warn about one to come."""
        profile = request.obj or {}
        if not request.changes_spec:
            return
        problems = list(profile_problems(profile, _installed()))
        if missing := list(missing_plugins(profile, _installed(), ())):
            configured = await self._list(SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, "")
            webhooks = {each["metadata"]["name"] for each in configured}
            missing = list(missing_plugins(profile, _installed(), webhooks))
        problems += [(field, text) for field, text, is_webhook in missing if not is_webhook]
        if problems:
            causes = [cause("FieldValueInvalid", f"Invalid value: {text}", field) for field, text in problems]
            raise invalid(SCHEDULING_PROFILES.kind, SCHEDULING_PROFILES.group, request.name, causes)
        request.warnings.extend(f"{field}: {text}" for field, text, _ in missing)
