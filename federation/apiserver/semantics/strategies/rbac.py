"""Strategies of RBAC roles and bindings; `auth/escalation.py` prevents privilege escalation."""

from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, immutable, not_supported, problems_of, required
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults.otherdefaults import default_role_binding
from federation.apiserver.semantics.strategies.base import Strategy
from federation.apiserver.semantics.validation.fieldrules import Rule, is_one_of
from federation.apiserver.semantics.validation.selectorvalidation import validate_label_selector

_GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("Group", "ServiceAccount", "User")


def has_role_selectors(rule: Any, field: str) -> Causes:
    """Check the selectors of an aggregated ClusterRole."""
    if rule is None:
        return []
    at, selectors = f"{field}.clusterRoleSelectors", rule.get("clusterRoleSelectors") or ()
    if not selectors:
        return [required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    return [
        found
        for index, selector in enumerate(selectors)
        for found in validate_label_selector(selector or {}, f"{at}[{index}]")
    ]


def has_subject(subject: Any, field: str) -> Causes:
    """Check the group of a subject, and the name of a ServiceAccount."""
    kind, group, name = ((subject or {}).get(part) or "" for part in ("kind", "apiGroup", "name"))
    if kind == "ServiceAccount":
        causes = problems_of(f"{field}.name", name, nameformats.dns1123_subdomain(name) if name else ())
        return causes + ([not_supported(f"{field}.apiGroup", group, ("",))] if group else [])
    if kind in {"User", "Group"} and group != _GROUP:
        return [not_supported(f"{field}.apiGroup", group, (_GROUP,))]
    return []


class RoleStrategy(Strategy):
    """rbac.authorization.k8s.io/v1 Role and ClusterRole."""

    allow_create_on_update = True
    names_again = False
    rules = (Rule("aggregationRule", has_role_selectors),)

    name_problems = staticmethod(nameformats.path_segment)

    def validate(self, obj: Object) -> Causes:
        causes: Causes = []
        for index, rule in enumerate(obj.get("rules") or ()):
            at = f"rules[{index}]"
            if not rule.get("verbs"):
                causes.append(required(f"{at}.verbs", "verbs must contain at least one value"))
            if rule.get("nonResourceURLs"):
                continue
            if not rule.get("apiGroups"):
                causes.append(required(f"{at}.apiGroups", "resource rules must supply at least one api group"))
            if not rule.get("resources"):
                causes.append(required(f"{at}.resources", "resource rules must supply at least one resource"))
        return causes


class RoleBindingStrategy(Strategy):
    """rbac.authorization.k8s.io/v1 RoleBinding and ClusterRoleBinding: roleRef is immutable."""

    allow_create_on_update = True
    names_again = False
    rules = (
        Rule("roleRef.apiGroup", is_one_of("rbac.authorization.k8s.io")),
        Rule("subjects[]", has_subject),
    )

    name_problems = staticmethod(nameformats.path_segment)
    default = staticmethod(default_role_binding)

    def validate(self, obj: Object) -> Causes:
        causes: Causes = []
        reference = obj.get("roleRef") or {}
        is_cluster_wide = obj.get("kind") != "RoleBinding"
        kinds = ("ClusterRole",) if is_cluster_wide else ("ClusterRole", "Role")
        if reference.get("kind") not in kinds:
            causes.append(not_supported("roleRef.kind", reference.get("kind") or "", kinds))
        if not reference.get("name"):
            causes.append(required("roleRef.name"))
        for index, subject in enumerate(obj.get("subjects") or ()):
            at = f"subjects[{index}]"
            if subject.get("kind") not in _SUBJECTS:
                causes.append(not_supported(f"{at}.kind", subject.get("kind") or "", _SUBJECTS))
            if not subject.get("name"):
                causes.append(required(f"{at}.name"))
            # A RoleBinding's own namespace is the default.
            if is_cluster_wide and subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
                causes.append(required(f"{at}.namespace"))
        return causes

    def validate_update(self, new: Object, old: Object) -> Causes:
        causes = self.validate(new)
        if new.get("roleRef") != old.get("roleRef"):
            causes += [
                {**cause, "message": cause["message"].replace("field is immutable", "cannot change roleRef")}
                for cause in immutable("roleRef", new.get("roleRef"), old.get("roleRef"))
            ]
        return causes
