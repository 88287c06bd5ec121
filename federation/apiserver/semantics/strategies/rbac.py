"""Strategies of RBAC roles and bindings; `auth/escalation.py` prevents privilege escalation."""

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, immutable, not_supported, required
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults.otherdefaults import default_role_binding
from federation.apiserver.semantics.strategies.base import Strategy

_SUBJECTS = ("Group", "ServiceAccount", "User")


class RoleStrategy(Strategy):
    """rbac.authorization.k8s.io/v1 Role and ClusterRole."""

    allow_create_on_update = True

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
