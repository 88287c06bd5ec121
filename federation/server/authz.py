"""Authorization: role-based access control over the Role, ClusterRole and binding objects in the registry.

`RBACAuthorizer.run()` keeps an index of them by list and watch; `authorize` answers from the index without I/O, so that
it costs a few microseconds per request. Members of `system:masters` may do everything. Reviews of the
authorization.k8s.io API are in `reviews.py`; the rules themselves, and how they match, in `rules.py`.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from federation.base.clock import Clock, SystemClock
from federation.base.errors import Expired, StoreError
from federation.base.tasks import Supervisor
from federation.registry.kinds import KindInfo
from federation.registry.options import ListOptions
from federation.registry.registry import Registry
from federation.server.escalation import RBAC_GROUP
from federation.server.identity import MASTERS, SERVICE_ACCOUNT_PREFIX, Attributes, Decision, User
from federation.server.rules import Rule, aggregate_matches, to_rules

_ROLES = {"clusterroles", "roles"}
_ALLOWED = Decision(is_allowed=True)

Key = tuple[str, str]
"""(namespace, name); namespace "" for cluster-scoped roles and bindings."""
Subject = tuple[str, str, str]
"""(namespace of the binding, "User" or "Group", name)."""


class Role(NamedTuple):
    """A role's rules, and what it aggregates (ClusterRoles only)."""

    rules: tuple[Rule, ...]
    labels: dict[str, str]
    selectors: tuple[dict[str, Any], ...]


class Binding(NamedTuple):
    """Who gets which role. `role` is the key of a ClusterRole (namespace "") or of a Role."""

    kind: str
    name: str
    role: Key
    subjects: tuple[Subject, ...]
    shown_subjects: dict[Subject, str]


class RBACAuthorizer:
    """Decides from an index of roles and bindings; nothing but `system:masters` is allowed before the first list."""

    def __init__(self, registry: Registry, *, clock: Clock | None = None) -> None:
        self._registry = registry
        self._clock = clock or SystemClock()
        self._roles: dict[Key, Role] = {}
        self._bindings: dict[Key, Binding] = {}
        self._by_subject: dict[Subject, dict[Key, Binding]] = {}
        self._aggregated: dict[Key, tuple[Rule, ...]] = {}
        self._pending = {"roles", "clusterroles", "rolebindings", "clusterrolebindings"}
        self._synced = asyncio.Event()

    async def run(self) -> None:
        """Follow the RBAC objects until cancelled."""
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
        missing: list[str] = []
        for subject, binding in self._bindings_of(user, attributes.namespace):
            rules = self._rules(binding.role)
            if rules is None:
                kind = "role" if binding.role[0] else "clusterrole"
                missing.append(f'{kind}.{RBAC_GROUP} "{binding.role[1]}" not found')
                continue
            if any(rule.allows(attributes) for rule in rules):
                kind = "Role" if binding.role[0] else "ClusterRole"
                where = f"{binding.name}/{attributes.namespace}" if subject[0] else binding.name
                return Decision(
                    is_allowed=True,
                    reason=f'RBAC: allowed by {binding.kind} "{where}" of {kind} "{binding.role[1]}" '
                    f"to {binding.shown_subjects[subject]}",
                )
        if not missing:
            return Decision(is_allowed=False)
        listed = missing[0] if len(missing) == 1 else f"[{', '.join(dict.fromkeys(missing))}]"
        return Decision(is_allowed=False, reason=f"RBAC: {listed}")

    def rules_of(self, user: User, namespace: str) -> list[Rule]:
        """Return every rule that holds for the user in a namespace, cluster-wide ones among them."""
        if MASTERS in user.groups:
            return [Rule.everything(), Rule.everywhere()]
        found: list[Rule] = []
        for _, binding in self._bindings_of(user, namespace):
            found.extend(self._rules(binding.role) or ())
        return list(dict.fromkeys(found))

    def role_rules(self, kind: str, namespace: str, name: str) -> list[Rule]:
        """Return the rules of a role by reference; none when it does not exist."""
        return list(self._rules(("" if kind == "ClusterRole" else namespace, name)) or ())

    def _bindings_of(self, user: User, namespace: str) -> Iterator[tuple[Subject, Binding]]:
        for scope in ("", namespace) if namespace else ("",):
            for kind, name in (("User", user.name), *(("Group", group) for group in user.groups)):
                subject = (scope, kind, name)
                for binding in self._by_subject.get(subject, {}).values():
                    yield subject, binding

    def _rules(self, key: Key) -> tuple[Rule, ...] | None:
        role = self._roles.get(key)
        if role is None or not role.selectors:
            return None if role is None else role.rules
        rules = self._aggregated.get(key)
        if rules is None:
            rules = self._aggregated[key] = self._aggregate(key)
        return rules

    def _aggregate(self, start: Key) -> tuple[Rule, ...]:
        """Return a ClusterRole's own rules and those of all that it aggregates, directly or through others."""
        gathered: list[Rule] = []
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
        """List, then watch; list again when the watch fell too far behind. Other failures restart this loop."""
        while True:
            result = await self._registry.list(info, "", ListOptions())
            self._replace(info, result.items)
            self._pending.discard(info.resource.plural)
            if not self._pending:
                self._synced.set()
            try:
                options = ListOptions(resource_version=str(result.resource_version))
                async for batch in self._registry.watch(info, "", options):
                    for type_, value in batch:
                        if type_ != "BOOKMARK":
                            self._change(info, value, is_gone=type_ == "DELETED")
            except (Expired, StoreError):
                await self._clock.sleep(0.1)

    def _replace(self, info: KindInfo, items: list[bytes]) -> None:
        plural, namespaced = info.resource.plural, info.resource.namespaced
        held = self._roles if plural in _ROLES else self._bindings
        objects = [orjson.loads(item) for item in items]
        present = {(o["metadata"].get("namespace", ""), o["metadata"]["name"]) for o in objects}
        for key in [key for key in held if bool(key[0]) == namespaced and key not in present]:
            self._forget(plural, key)
        for obj in objects:
            self._remember(plural, obj)

    def _change(self, info: KindInfo, value: bytes, *, is_gone: bool) -> None:
        obj = orjson.loads(value)
        if is_gone:
            self._forget(info.resource.plural, (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))
        else:
            self._remember(info.resource.plural, obj)

    def _remember(self, plural: str, obj: dict[str, Any]) -> None:
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        self._forget(plural, key)
        if plural in _ROLES:
            selectors = (obj.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
            self._roles[key] = Role(to_rules(obj.get("rules") or ()), metadata.get("labels") or {}, tuple(selectors))
            return
        binding = _to_binding(obj, key)
        self._bindings[key] = binding
        for subject in binding.subjects:
            self._by_subject.setdefault(subject, {})[key] = binding

    def _forget(self, plural: str, key: Key) -> None:
        if plural in _ROLES:
            self._roles.pop(key, None)
            self._aggregated.clear()
            return
        binding = self._bindings.pop(key, None)
        for subject in binding.subjects if binding else ():
            held = self._by_subject.get(subject)
            if held is not None:
                held.pop(key, None)
                if not held:
                    del self._by_subject[subject]


def _to_binding(obj: dict[str, Any], key: Key) -> Binding:
    namespace, name = key
    reference = obj.get("roleRef") or {}
    role = ("" if reference.get("kind") == "ClusterRole" else namespace, str(reference.get("name", "")))
    shown: dict[Subject, str] = {}
    for subject in obj.get("subjects") or ():
        kind, subject_name = str(subject.get("kind")), str(subject.get("name"))
        if kind == "ServiceAccount":
            account_namespace = str(subject.get("namespace") or namespace)
            full = f"{SERVICE_ACCOUNT_PREFIX}{account_namespace}:{subject_name}"
            shown[namespace, "User", full] = f'ServiceAccount "{subject_name}/{account_namespace}"'
        elif kind in ("User", "Group"):
            shown[namespace, kind, subject_name] = f'{kind} "{subject_name}"'
    return Binding("RoleBinding" if namespace else "ClusterRoleBinding", name, role, tuple(shown), shown)
