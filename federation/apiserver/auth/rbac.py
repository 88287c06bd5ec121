"""Role-based access control over the Role, ClusterRole and binding objects in the registry.

`RBACAuthorizer.run()` keeps an index of these objects by list and watch. `authorize` decides from the index without
I/O, in a few microseconds. Members of `system:masters` may do everything. `policyrules.py` matches a single rule.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.tasks import Supervisor
from federation.apiserver.auth.escalation import RBAC_GROUP
from federation.apiserver.auth.identity import MASTERS, SERVICE_ACCOUNT_PREFIX, Attributes, Decision, User
from federation.apiserver.auth.policyrules import PolicyRule, aggregate_matches
from federation.apiserver.auth.rbacobjects import Parsed, parse_binding, parse_role
from federation.apiserver.registry.objects import Changes, list_and_watch
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo

ImpliedPermissions = Mapping[tuple[str, str], tuple[str, str]]
"""By group and plural of a resource: group and plural of the resource that it contains objects of."""
_LISTING = frozenset({"list", "watch", "deletecollection"})

_ROLES = {"clusterroles", "roles"}
_ALLOWED = Decision(is_allowed=True)

Key = tuple[str, str]
"""(namespace, name); namespace "" for cluster-scoped roles and bindings."""
Subject = tuple[str, str, str]
"""Namespace of the binding, "User" or "Group", and name."""


class Role(NamedTuple):
    """A role's rules, and the selectors of the ClusterRoles that it aggregates."""

    rules: tuple[PolicyRule, ...]
    labels: dict[str, str]
    selectors: tuple[dict[str, Any], ...]


class Binding(NamedTuple):
    """A binding of subjects to a role: a ClusterRole (namespace "") or a Role."""

    kind: str
    name: str
    role: Key
    subjects: tuple[Subject, ...]
    subject_texts: dict[Subject, str]
    """Each subject as reasons show it."""


class RBACAuthorizer:
    """Implements `Authorizer`. Before the first list it allows nothing except to `system:masters`.

    `implied` names resources that contain objects of another resource. All requests whose response may show such an
    object (all but creates) need permission to read the other resource in the same namespace too.
    """

    def __init__(
        self, registry: Registry, *, clock: Clock | None = None, implied: ImpliedPermissions | None = None
    ) -> None:
        self._registry = registry
        self._implied = implied or {}
        self._clock = clock or SystemClock()
        self._roles: dict[Key, Role] = {}
        self._bindings: dict[Key, Binding] = {}
        self._by_subject: dict[Subject, dict[Key, Binding]] = {}
        self._aggregated: dict[Key, tuple[PolicyRule, ...]] = {}
        self._pending = {"roles", "clusterroles", "rolebindings", "clusterrolebindings"}
        self._synced = asyncio.Event()

    async def run(self) -> None:
        """List and watch the RBAC objects until cancelled."""
        supervisor = Supervisor(self._clock)
        for plural in tuple(self._pending):
            info = self._registry.kinds.lookup(RBAC_GROUP, "v1", plural)
            supervisor.add(f"rbac-{plural}", lambda info=info: self._follow(info))  # type: ignore[misc]  # bound default
        await supervisor.run()

    @property
    def has_synced(self) -> bool:
        """Whether every RBAC kind was listed once."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return once every RBAC kind was listed."""
        await self._synced.wait()

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Return whether the user may do this, and why."""
        if MASTERS in user.groups:
            return _ALLOWED
        decision = self._decide(user, attributes)
        contained = self._implied.get((attributes.group, attributes.resource))
        if contained is None or not decision.is_allowed or attributes.verb == "create":
            return decision
        # Writes and deletions return objects as well. Which object is contained is unknown, so `resourceNames` of a
        # rule never match.
        verb = "list" if attributes.verb in _LISTING else "get"
        group, resource = contained
        needed = self._decide(user, Attributes(verb, group, "*", resource, namespace=attributes.namespace))
        if needed.is_allowed:
            return decision
        qualified = f"{resource}.{group}" if group else resource
        scope = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
        return Decision(is_allowed=False, reason=f"it may contain {qualified}, which the user cannot {verb} {scope}")

    def _decide(self, user: User, attributes: Attributes) -> Decision:
        missing: list[str] = []
        for subject, binding in self._bindings_for(user, attributes.namespace):
            rules = self._rules(binding.role)
            if rules is None:
                kind = "role" if binding.role[0] else "clusterrole"
                # Go on: another binding may allow the request. The missing role explains a refusal.
                missing.append(f'{kind}.{RBAC_GROUP} "{binding.role[1]}" not found')
                continue
            if any(rule.allows(attributes) for rule in rules):
                kind = "Role" if binding.role[0] else "ClusterRole"
                where = f"{binding.name}/{attributes.namespace}" if subject[0] else binding.name
                return Decision(
                    is_allowed=True,
                    reason=f'RBAC: allowed by {binding.kind} "{where}" of {kind} "{binding.role[1]}" '
                    f"to {binding.subject_texts[subject]}",
                )
        if not missing:
            return Decision(is_allowed=False)
        listed = missing[0] if len(missing) == 1 else f"[{', '.join(dict.fromkeys(missing))}]"
        return Decision(is_allowed=False, reason=f"RBAC: {listed}")

    def names_of(self, user: User, attributes: Attributes) -> frozenset[str]:
        """Return the names of objects for which rules with `resourceNames` allow this to the user."""
        found: set[str] = set()
        for _, binding in self._bindings_for(user, attributes.namespace):
            for rule in self._rules(binding.role) or ():
                # All names of a rule are alike: one of them tells whether the rest of it matches.
                if rule.names and rule.allows(attributes._replace(name=next(iter(rule.names)))):
                    found |= rule.names
        return frozenset(found)

    def rules_of(self, user: User, namespace: str) -> list[PolicyRule]:
        """Return every rule that holds for the user in a namespace, cluster-wide rules included."""
        if MASTERS in user.groups:
            return [PolicyRule.all_resources(), PolicyRule.all_paths()]
        found: list[PolicyRule] = []
        for _, binding in self._bindings_for(user, namespace):
            found.extend(self._rules(binding.role) or ())
        return list(dict.fromkeys(found))

    def namespaces_of(self, user: User) -> frozenset[str]:
        """Return the namespaces in which the user has a role."""
        own = {("User", user.name), *(("Group", group) for group in user.groups)}
        return frozenset(scope for scope, kind, name in self._by_subject if scope and (kind, name) in own)

    def role_rules(self, namespace: str, name: str) -> list[PolicyRule] | None:
        """Return the rules of a Role, or of a ClusterRole for namespace ""; None when it is not in the index."""
        rules = self._rules((namespace, name))
        return None if rules is None else list(rules)

    def _bindings_for(self, user: User, namespace: str) -> Iterator[tuple[Subject, Binding]]:
        for scope in ("", namespace) if namespace else ("",):
            for kind, name in (("User", user.name), *(("Group", group) for group in user.groups)):
                subject = (scope, kind, name)
                for binding in self._by_subject.get(subject, {}).values():
                    yield subject, binding

    def _rules(self, key: Key) -> tuple[PolicyRule, ...] | None:
        role = self._roles.get(key)
        if role is None or not role.selectors:
            return None if role is None else role.rules
        rules = self._aggregated.get(key)
        if rules is None:
            rules = self._aggregated[key] = self._aggregate(key)
        return rules

    def _aggregate(self, start: Key) -> tuple[PolicyRule, ...]:
        """Return the rules of a ClusterRole and of all ClusterRoles that it aggregates, directly or indirectly."""
        gathered: list[PolicyRule] = []
        pending, seen = [start], {start}
        while pending:
            role = self._roles[pending.pop()]
            gathered.extend(role.rules)
            for key, other in self._roles.items():
                if not key[0] and key not in seen and aggregate_matches(role.selectors, other.labels):
                    seen.add(key)
                    pending.append(key)
        return tuple(dict.fromkeys(gathered))

    async def _follow(self, info: KindInfo) -> None:
        """Keep the objects of one kind in the index. The supervisor restarts this after failures."""
        plural = info.resource.plural
        parse = parse_role if plural in _ROLES else parse_binding
        async for changes in list_and_watch(self._registry, info, self._clock, parse=parse):
            if changes.is_list:
                self._remove_absent(info, changes)
            for parsed, is_deleted in changes.objects:
                if is_deleted:
                    self._remove(plural, _key(parsed.obj))
                else:
                    self._store(plural, parsed)
            self._pending.discard(plural)
            if not self._pending:
                self._synced.set()

    def _remove_absent(self, info: KindInfo, listed: Changes[Parsed]) -> None:
        plural, namespaced = info.resource.plural, info.resource.namespaced
        present = {_key(parsed.obj) for parsed, _ in listed.objects}
        # Roles and ClusterRoles share an index, as do their bindings: compare only keys of this kind's scope.
        indexed = self._roles if plural in _ROLES else self._bindings
        for key in [key for key in indexed if bool(key[0]) == namespaced and key not in present]:
            self._remove(plural, key)

    def _store(self, plural: str, parsed: Parsed) -> None:
        obj, key = parsed.obj, _key(parsed.obj)
        # Remove first: the new version of a binding may have fewer subjects.
        self._remove(plural, key)
        if plural in _ROLES:
            selectors = (obj.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
            self._roles[key] = Role(parsed.rules, obj["metadata"].get("labels") or {}, tuple(selectors))
            return
        binding = _to_binding(obj, key)
        self._bindings[key] = binding
        for subject in binding.subjects:
            self._by_subject.setdefault(subject, {})[key] = binding

    def _remove(self, plural: str, key: Key) -> None:
        if plural in _ROLES:
            self._roles.pop(key, None)
            # Any change of a ClusterRole may change which rules an aggregating one has.
            self._aggregated.clear()
            return
        binding = self._bindings.pop(key, None)
        for subject in binding.subjects if binding else ():
            held = self._by_subject.get(subject)
            if held is not None:
                held.pop(key, None)
                if not held:
                    del self._by_subject[subject]


def _key(obj: dict[str, Any]) -> Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _to_binding(obj: dict[str, Any], key: Key) -> Binding:
    namespace, name = key
    reference = obj.get("roleRef") or {}
    role = ("" if reference.get("kind") == "ClusterRole" else namespace, str(reference.get("name", "")))
    texts: dict[Subject, str] = {}
    for subject in obj.get("subjects") or ():
        kind, subject_name = str(subject.get("kind")), str(subject.get("name"))
        if kind == "ServiceAccount":
            account_namespace = str(subject.get("namespace") or namespace)
            full = f"{SERVICE_ACCOUNT_PREFIX}{account_namespace}:{subject_name}"
            texts[namespace, "User", full] = f'ServiceAccount "{subject_name}/{account_namespace}"'
        elif kind in ("User", "Group"):
            texts[namespace, kind, subject_name] = f'{kind} "{subject_name}"'
    return Binding("RoleBinding" if namespace else "ClusterRoleBinding", name, role, tuple(texts), texts)
