"""The privilege escalation check before a role or binding is written. Pure given an authorizer.

The writer of a role must hold all its rules, or the verb `escalate`. The writer of a binding must hold all rules of the
role, or the verb `bind`. Messages are those of kube-apiserver.
"""

from typing import Any

from federation.apimachinery.errors import BadRequest, Forbidden
from federation.apiserver.auth.authorization import Authorizer
from federation.apiserver.auth.identity import MASTERS, Attributes, User
from federation.apiserver.auth.policyrules import PolicyRule, to_rules
from federation.apiserver.semantics.kinds.kinds import KindInfo

RBAC_GROUP = "rbac.authorization.k8s.io"
_SHOWN_MAX = 20
_COMBINATIONS_MAX = 20_000
"""The check compares every combination; kube-apiserver has no limit."""


def check_escalation(authorizer: Authorizer, user: User, info: KindInfo, namespace: str, obj: dict[str, Any]) -> None:
    """Raise Forbidden when writing this RBAC object would grant more than the user holds."""
    if MASTERS in user.groups:
        return
    plural, metadata = info.resource.plural, obj.get("metadata")
    name = str(metadata.get("name") or "") if isinstance(metadata, dict) else ""
    exemption = Attributes("escalate", RBAC_GROUP, "v1", plural, "", namespace, name)
    if plural in ("roles", "clusterroles"):
        granted = list(to_rules(obj.get("rules") or ()))
        if obj.get("aggregationRule") is not None:
            granted += [PolicyRule.all_resources(), PolicyRule.all_paths()]
    else:
        reference = obj.get("roleRef")
        if not isinstance(reference, dict):
            raise BadRequest("roleRef: Required value")
        kind, role = str(reference.get("kind", "")), str(reference.get("name", ""))
        granted = authorizer.role_rules(kind, namespace, role)
        resource = "clusterroles" if kind == "ClusterRole" else "roles"
        exemption = Attributes("bind", RBAC_GROUP, "v1", resource, "", namespace, role)
    if authorizer.authorize(user, exemption).is_allowed:
        return
    if sum(rule.size for rule in granted) > _COMBINATIONS_MAX:
        raise BadRequest(f"rules: a role may name at most {_COMBINATIONS_MAX} combinations of verb, group and resource")
    held = authorizer.rules_of(user, namespace)
    missing = [part for rule in granted for part in rule.split() if not any(own.covers(part) for own in held)]
    if not missing:
        return
    groups = ", ".join(f'"{group}"' for group in user.groups)
    listed = "\n".join(_to_text(rule) for rule in missing[:_SHOWN_MAX])
    raise Forbidden(
        f'{info.group_resource} "{name}" is forbidden: user "{user.name}" (groups=[{groups}]) '
        f"is attempting to grant RBAC permissions not currently held:\n{listed}",
        details={"name": name, "group": RBAC_GROUP, "kind": plural},
    )


def _to_text(rule: PolicyRule) -> str:
    def quote(values: Any) -> str:
        return "[" + " ".join(f'"{value}"' for value in sorted(values)) + "]"

    if rule.paths:
        return f"{{NonResourceURLs:{quote(rule.paths)}, Verbs:{quote(rule.verbs)}}}"
    names = f", ResourceNames:{quote(rule.names)}" if rule.names else ""
    return f"{{APIGroups:{quote(rule.groups)}, Resources:{quote(rule.resources)}{names}, Verbs:{quote(rule.verbs)}}}"
