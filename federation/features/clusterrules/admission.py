"""Admission of rules for clusters: amounts, selectors and taints that their schema cannot check."""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.api.resources import CLUSTER_TAINT_POLICIES, REMEDIES
from federation.apimachinery.errors import cause, invalid
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide
from federation.features.clusterrules.rules.matching import problems_of
from federation.features.clusterrules.rules.taints import taint_problems


class ClusterRuleAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state."""

    resources = frozenset({CLUSTER_TAINT_POLICIES.group_resource, REMEDIES.group_resource})

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:  # noqa: ARG002  # a plugin's signature
        """Raise Invalid for a rule that cannot be read, or that sets a taint of the control plane."""
        if request.subresource:
            return
        obj = request.obj or {}
        problems = [*problems_of(obj.get("spec") or {}), *_taint_problems(obj.get("spec") or {})]
        if problems:
            resource = REMEDIES if obj.get("kind") == REMEDIES.kind else CLUSTER_TAINT_POLICIES
            causes = [cause("FieldValueInvalid", f"Invalid value: {text}", field) for field, text in problems]
            raise invalid(resource.kind, resource.group, request.shown_name, causes)


def _taint_problems(spec: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for index, text in taint_problems(spec.get("taints") or ()):
        yield f"spec.taints[{index}].key", text
    for index, text in taint_problems(action.get("taint") or {} for action in spec.get("actions") or ()):
        yield f"spec.actions[{index}].taint.key", text
