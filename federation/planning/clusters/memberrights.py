"""The rights that the control plane needs in a member, and the comparison with the rights that it has. Pure.

The rights follow from the federated types of the host: the verbs that sync uses on each of them, reading of nodes,
pods and ReplicaSets for capacity and migration, of metrics for autoscalers, and our own namespace and role. Federated
RBAC kinds also need `escalate` and `bind`, because the member refuses roles beyond the writer's own rights otherwise;
with these verbs an account can give itself every right. No rule has a wildcard. `controllers/cluster/memberaccount.py`
writes the rules.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import KUEUE_GROUP
from federation.apimachinery import conditions
from federation.apimachinery.amounts import first_of
from federation.apimachinery.resources import (
    CLUSTER_ROLES,
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    POD_METRICS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    RUNTIME_CLASSES,
    Object,
)
from federation.planning.federatedobject.finished import runs_to_completion

_SYNC_VERBS = ("create", "delete", "get", "list", "patch", "watch")
_READ_VERBS = ("list", "watch")
_PATHS = ("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/readyz", "/version")
_RBAC = CLUSTER_ROLES.group
_ROLE_PLURALS = frozenset({"clusterroles", "roles"})
_BINDING_PLURALS = frozenset({"clusterrolebindings", "rolebindings"})
_LISTED_MAX = 5
"""Resources that a message names."""
UPDATE_ALL = "fedctl join --update-credentials --all --kubeconfig FOLDER"
"""The command that gives the accounts in all members the rights of the federated types."""


_CLAIMS = (RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)
"""The first object with claims for devices federates them (`features/devices`); without these rights it would wait."""
_KEYS = ("apiGroups", "resources", "verbs", "resourceNames")


class _Held(NamedTuple):
    """One rule of a rules review."""

    groups: frozenset[str]
    resources: frozenset[str]
    verbs: frozenset[str]
    names: frozenset[str]

    def covers(self, group: str, resource: str, verb: str) -> bool:
        """Return whether the rule allows the verb, on named objects only if it has names."""
        return (
            (verb in self.verbs or "*" in self.verbs)
            and (group in self.groups or "*" in self.groups)
            and (resource in self.resources or "*" in self.resources)
        )


def plan_rules(types: Iterable[FederatedType]) -> list[Object]:
    """Return the rules of the account's ClusterRole for these federated types."""
    types = list(types)
    plurals: dict[str, set[str]] = {}
    for resource in (*(type_.resource for type_ in types), *_CLAIMS):
        plurals.setdefault(resource.group, set()).add(resource.plural)
    rules = [_rule(group, sorted(found), _SYNC_VERBS) for group, found in sorted(plurals.items())]
    rbac = plurals.get(_RBAC, set())
    if roles := rbac & _ROLE_PLURALS:
        rules.append(_rule(_RBAC, sorted(roles), ("escalate",)))
    if rbac & _BINDING_PLURALS:
        rules.append(_rule(_RBAC, sorted(_ROLE_PLURALS), ("bind",)))
    if any(type_.auto_migration for type_ in types):
        rules.append(_rule(REPLICA_SETS.group, [REPLICA_SETS.plural], _READ_VERBS))
    if any(runs_to_completion(type_.resource.group, type_.resource.kind) for type_ in types):
        rules.append(_rule(EVENTS.group, [EVENTS.plural], ("list",)))  # they tell how an object ended that is gone
    return [
        *rules,
        _rule("", [NODES.plural, PODS.plural], _READ_VERBS),
        _rule(DEVICE_CLASSES.group, [DEVICE_CLASSES.plural, RESOURCE_SLICES.plural], _READ_VERBS),
        _rule(PRIORITY_CLASSES.group, [PRIORITY_CLASSES.plural], _READ_VERBS),
        _rule(RUNTIME_CLASSES.group, [RUNTIME_CLASSES.plural], _READ_VERBS),
        _rule(KUEUE_GROUP, ["clusterqueues", "localqueues"], _READ_VERBS),
        _rule(POD_METRICS.group, [POD_METRICS.plural], ("list",)),
        _rule("", ["namespaces"], ("get",), ("kube-system", names.SYSTEM_NAMESPACE)),
        _rule("", ["namespaces"], ("delete", "patch"), (names.SYSTEM_NAMESPACE,)),
        _rule(_RBAC, ["clusterroles"], ("delete",), (names.MEMBER_CLUSTER_ROLE,)),
        {"nonResourceURLs": list(_PATHS), "verbs": ["get"]},
    ]


def plan_account_rules(accounts: Sequence[str]) -> list[Object]:
    """Return the rules of the Role in our namespace: each account may request tokens for itself."""
    return [_rule("", ["serviceaccounts/token"], ("create",), tuple(accounts))]


def lacks_rights(cluster: Mapping[str, Any]) -> bool:
    """Return True if the cluster's condition says that the account lacks rights."""
    condition = conditions.find((cluster.get("status") or {}).get("conditions"), names.CLUSTER_AUTHORIZED)
    return condition is not None and condition.get("status") == "False"


def find_missing_rights(held: Sequence[Mapping[str, Any]], types: Iterable[FederatedType]) -> dict[str, list[str]]:
    """Return the missing verbs by resource (`deployments.apps`), sorted; `held` are a rules review's resource rules."""
    rules = [_Held(*(frozenset(_texts(rule, key)) for key in _KEYS)) for rule in held]
    missing: dict[str, set[str]] = {}
    for rule in plan_rules(types):
        for group in rule.get("apiGroups", ()):
            for resource in rule["resources"]:
                title = f"{resource}.{group}" if group else resource
                for verb in rule["verbs"]:
                    if not _is_held(rules, group, resource, verb, rule.get("resourceNames", ())):
                        missing.setdefault(title, set()).add(verb)
    return {title: sorted(verbs) for title, verbs in sorted(missing.items())}


def is_unrestricted(held: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if one rule allows every verb on every resource."""
    return any(all("*" in _texts(rule, key) for key in ("verbs", "apiGroups", "resources")) for rule in held)


def describe_rights(rights: Mapping[str, Sequence[str]]) -> str:
    """Return rights as text for a message: the first resources with their verbs."""
    return first_of([f"{title} ({', '.join(verbs)})" for title, verbs in rights.items()], _LISTED_MAX, separator="; ")


def _rule(group: str, plurals: Sequence[str], verbs: Sequence[str], only: Sequence[str] = ()) -> Object:
    rule: Object = {"apiGroups": [group], "resources": list(plurals), "verbs": list(verbs)}
    return rule | {"resourceNames": list(only)} if only else rule


def _is_held(rules: Sequence["_Held"], group: str, resource: str, verb: str, only: Sequence[str]) -> bool:
    """Return whether the rules together allow the verb; for named objects each name may have its own rule."""
    fitting = [rule.names for rule in rules if rule.covers(group, resource, verb)]
    if any(not limited for limited in fitting):
        return True
    return bool(only) and all(any(name in limited for limited in fitting) for name in only)


def _texts(rule: Mapping[str, Any], key: str) -> list[str]:
    """Return the rule's strings; a member's answer can be anything."""
    values = rule.get(key)
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
