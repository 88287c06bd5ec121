"""Admission of the policies that namespace users write: which kinds they may steer.

Override and propagation policies change objects in members with the federation's rights. `resourceSelectors` reach
every object of a kind in the namespace, so their author needs the verb `update` or `patch` on that kind. An object that
names the policy in a label needs no such check: whoever wrote the label may update the object.
"""

from typing import Any

from federation.admission.federatedobjects import FindResource, forbidden
from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import Object
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, Decide

_VERBS = ("update", "patch")


class PolicyAdmission:
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state."""

    resources = frozenset(resource.group_resource for resource in (OVERRIDE_POLICIES, PROPAGATION_POLICIES))

    def __init__(self, find: FindResource) -> None:
        self._find = find

    def mutate(self, request: AdmissionRequest) -> Object:
        """Change nothing."""
        return request.obj or {}

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Raise Forbidden unless the requester may update every kind that the policy selects."""
        spec = (request.obj or {}).get("spec") or {}
        if request.old is not None and request.old.get("spec") == spec:
            return
        for index, entry in enumerate(spec.get("resourceSelectors") or ()):
            resource = self._check(entry, request.namespace)
            if resource is None or any(access(resource._replace(verb=verb)).is_allowed for verb in _VERBS):
                continue
            qualified = f"{resource.resource}.{resource.group}" if resource.group else resource.resource
            text = (
                f'User "{request.user.get("username", "")}" cannot update {qualified} in the namespace'
                f' "{request.namespace}"; get that permission, or select only kinds that you may update'
            )
            raise forbidden(request, text, field=f"spec.resourceSelectors[{index}]")

    def _check(self, selector: Any, namespace: str) -> AccessCheck | None:
        """Return the permission for a selector; None for a kind without namespace, which no such policy selects."""
        api_version, kind = str(selector.get("apiVersion") or ""), str(selector.get("kind") or "")
        resource = self._find(api_version, kind)
        if resource is not None and not resource.namespaced:
            return None
        # A kind may be served later, under any plural.
        group, plural = (resource.group, resource.plural) if resource else (api_version.rpartition("/")[0], "*")
        return AccessCheck("", group, plural, namespace=namespace, name=str(selector.get("name") or ""))
