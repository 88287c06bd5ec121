"""The privilege escalation check of roles and bindings: admission of the object that is about to be stored.

The writer of a role must hold all its rules, or the verb `escalate`. The writer of a binding must hold all rules of the
role, or the verb `bind`. Messages are those of kube-apiserver. Admission sees the result of a patch on the very state
that the write replaces, so no concurrent write can change what was checked.
"""

from typing import Any

import orjson

from federation.apimachinery.errors import BadRequest, Forbidden
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.auth.authorization import Authorizer, to_user
from federation.apiserver.auth.identity import MASTERS, Attributes, User
from federation.apiserver.auth.policyrules import PolicyRule, to_rules
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.cel.authorizer import Decide

RBAC_GROUP = "rbac.authorization.k8s.io"
_ROLES = frozenset({"roles", "clusterroles"})
_BINDINGS = frozenset({"rolebindings", "clusterrolebindings"})
_SHOWN_MAX = 20
_COMBINATIONS_MAX = 20_000
"""The check compares every combination; kube-apiserver has no limit."""


class EscalationAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state."""

    resources = frozenset(f"{plural}.{RBAC_GROUP}" for plural in _ROLES | _BINDINGS)

    def __init__(self, registry: Registry, authorizer: Authorizer) -> None:
        self._registry = registry
        self._authorizer = authorizer

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Raise Forbidden when writing this object would grant more than the user holds; NotFound for its role."""
        del access
        user, obj = to_user(request.user), request.obj or {}
        if MASTERS in user.groups:
            return
        if request.resource.plural in _ROLES:
            verb, resource, name, granted = "escalate", request.resource.plural, request.name, _granted_by(obj)
        else:
            verb, resource, name, granted = "bind", *_referenced(obj), None
        exemption = Attributes(verb, RBAC_GROUP, "v1", resource, "", request.namespace, name)
        if self._authorizer.authorize(user, exemption).is_allowed:
            return
        if granted is None:
            granted = await self._granted_by_role(resource, request.namespace, name)
        if sum(rule.size for rule in granted) > _COMBINATIONS_MAX:
            text = f"rules: a role may name at most {_COMBINATIONS_MAX} combinations of verb, group and resource"
            raise BadRequest(text)
        held = self._authorizer.rules_of(user, request.namespace)
        missing = [part for rule in granted for part in rule.split() if not any(own.covers(part) for own in held)]
        if missing:
            raise _forbidden(request.resource, request.name, user, missing)

    async def _granted_by_role(self, resource: str, namespace: str, name: str) -> list[PolicyRule]:
        """Return the rules of a role; NotFound for a missing one, because its future rules are unknown."""
        namespace = "" if resource == "clusterroles" else namespace
        found = self._authorizer.role_rules(namespace, name)
        if found is not None:
            return found
        # The authorizer learns of a new role a moment after its creation.
        info = self._registry.kinds.lookup(RBAC_GROUP, "v1", resource)
        return _granted_by(orjson.loads(await self._registry.get(info, namespace, name)))


def _granted_by(role: Object) -> list[PolicyRule]:
    """Return the rules of a role; everything when it aggregates roles, which may be of any kind."""
    granted = list(to_rules(role.get("rules") or ()))
    if role.get("aggregationRule") is not None:
        granted += [PolicyRule.all_resources(), PolicyRule.all_paths()]
    return granted


def _referenced(binding: Object) -> tuple[str, str]:
    """Return plural and name of a binding's role."""
    reference = binding["roleRef"]
    return "clusterroles" if reference["kind"] == "ClusterRole" else "roles", reference["name"]


def _forbidden(resource: Resource, name: str, user: User, missing: list[PolicyRule]) -> Forbidden:
    groups = ", ".join(f'"{group}"' for group in user.groups)
    listed = "\n".join(_to_text(rule) for rule in missing[:_SHOWN_MAX])
    return Forbidden(
        f'{resource.group_resource} "{name}" is forbidden: user "{user.name}" (groups=[{groups}]) '
        f"is attempting to grant RBAC permissions not currently held:\n{listed}",
        details={"name": name, "group": RBAC_GROUP, "kind": resource.plural},
    )


def _to_text(rule: PolicyRule) -> str:
    def quote(values: Any) -> str:
        return "[" + " ".join(f'"{value}"' for value in sorted(values)) + "]"

    if rule.paths:
        return f"{{NonResourceURLs:{quote(rule.paths)}, Verbs:{quote(rule.verbs)}}}"
    names = f", ResourceNames:{quote(rule.names)}" if rule.names else ""
    return f"{{APIGroups:{quote(rule.groups)}, Resources:{quote(rule.resources)}{names}, Verbs:{quote(rule.verbs)}}}"
