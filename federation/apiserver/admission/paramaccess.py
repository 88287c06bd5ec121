"""The right to use objects as parameters of policies: only a user who may read them, as in kube-apiserver.

A policy copies its parameters into objects and messages. Without this check, a user who may write policies but not read
Secrets could read them that way. Unchanged references are not checked again, so that another user may change the rest.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.errors import NotFound, invalid
from federation.apimachinery.fielderrors import forbidden
from federation.apiserver.admission.configurations import GROUP
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, Decide
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.verbs.context import VerbContext

_POLICIES = {
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicies",
}
_ANY = "*"


class ParamAccess(ValidatingPlugin):
    """The admission plugin of policies and bindings."""

    resources = frozenset(
        f"{plural}.{GROUP}" for plural in (*_POLICIES.values(), *(f"{kind.lower()}s" for kind in _POLICIES))
    )

    def __init__(self, context: VerbContext) -> None:
        self._context = context

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Raise Invalid unless the user may read the parameters."""
        obj = request.obj
        assert obj is not None
        spec, old = obj.get("spec") or {}, (request.old or {}).get("spec") or {}
        if request.resource.kind in _POLICIES:
            field, problem = "spec.paramRef", await self._check_reference(request, spec, old, access)
        else:
            field, problem = "spec.paramKind", self._check_kind(request, spec, old, access)
        if problem:
            raise invalid(request.resource.kind, GROUP, request.shown_name, [forbidden(field, problem)])

    def _check_kind(
        self, request: AdmissionRequest, spec: Mapping[str, Any], old: Mapping[str, Any], access: Decide
    ) -> str:
        kind = spec.get("paramKind")
        if not kind or kind == old.get("paramKind"):
            return ""
        group, plural = self._resource(kind)
        if access(AccessCheck("get", group, plural, namespace=_ANY, name=_ANY)).is_allowed:
            return ""
        return (
            f'user {_shown(request.user)} must have "get" permission on all objects of the referenced paramKind'
            f" (kind={kind.get('kind')}, apiVersion={kind.get('apiVersion')})"
        )

    async def _check_reference(
        self, request: AdmissionRequest, spec: Mapping[str, Any], old: Mapping[str, Any], access: Decide
    ) -> str:
        reference, name = spec.get("paramRef"), spec.get("policyName")
        if not reference or (reference == old.get("paramRef") and name == old.get("policyName")):
            return ""
        entry = await self._context.store.get(f"/{GROUP}/{_POLICIES[request.resource.kind]}/{name}")
        kind = None if entry is None else (encoding.decode(entry.value).get("spec") or {}).get("paramKind")
        group, plural = self._resource(kind) if kind else (_ANY, _ANY)
        verb = "get" if reference.get("name") else "list"
        namespace = reference.get("namespace") or ""
        check = AccessCheck(verb, group, plural, namespace=namespace, name=reference.get("name") or "")
        if access(check).is_allowed:
            return ""
        user = _shown(request.user)
        if entry is None:
            return (
                f"unable to get policy {name} to determine minimum required permissions and user {user} does not have"
                f' "{verb}" permission for all groups, versions and resources'
            )
        return f'user {user} does not have "{verb}" permission on the object referenced by paramRef'

    def _resource(self, kind: Mapping[str, Any]) -> tuple[str, str]:
        """Return group and plural of a kind, all plurals of the group for a kind that is not served."""
        group, _, version = str(kind.get("apiVersion")).rpartition("/")
        try:
            return group, self._context.kinds.by_kind(group, version, str(kind.get("kind"))).resource.plural
        except NotFound:
            return group, _ANY


def _shown(user: Mapping[str, Any]) -> str:
    """Return a user in the format of kube-apiserver's message."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted((user.get("extra") or {}).items()))
    groups = " ".join(user.get("groups") or ())
    return f"&{{{user.get('username', '')} {user.get('uid', '')} [{groups}] map[{extra}]}}"
