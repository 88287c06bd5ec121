"""The ClusterRole aggregation controller: writes the rules of ClusterRoles that have an aggregation rule.

As in kube-controller-manager, so that clients see the rules. It lists and watches ClusterRoles and updates those whose
rules differ from the union of the selected roles' rules. `rbac.py` evaluates aggregation rules itself and does not
depend on this controller.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import Conflict, NotFound
from federation.apiserver.auth.escalation import RBAC_GROUP
from federation.apiserver.auth.policyrules import aggregate_matches
from federation.apiserver.auth.rbacobjects import parse_role
from federation.apiserver.registry.objects import list_and_watch, patch_version
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.requestoptions import ListOptions, WriteOptions

_OPTIONS = WriteOptions(field_manager="clusterrole-aggregation-controller")
Object = dict[str, Any]


class ClusterRoleAggregationController:
    """Updates the rules of aggregating ClusterRoles."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._roles: dict[str, Object] = {}

    async def run(self) -> None:
        """List, watch and update until cancelled."""
        info = self._info
        async for changes in list_and_watch(self._registry, info, self._clock, parse=parse_role):
            if changes.is_list:
                self._roles.clear()
            for (role, _), is_deleted in changes.objects:
                if is_deleted:
                    self._roles.pop(role["metadata"]["name"], None)
                else:
                    self._roles[role["metadata"]["name"]] = role
            await self._update_rules(info)

    async def settle(self) -> None:
        """Update the roles that exist, and those that aggregate an updated one, and return."""
        info = self._info
        listed = await self._registry.list(info, "", ListOptions())
        self._roles = {role["metadata"]["name"]: role for role, _ in map(parse_role, listed.items)}
        while await self._update_rules(info):
            continue

    @property
    def _info(self) -> KindInfo:
        return self._registry.kinds.lookup(RBAC_GROUP, "v1", "clusterroles")

    async def _update_rules(self, info: KindInfo) -> bool:
        """Write the rules that differ; return whether any did.

        Roles that aggregate an updated role follow with the event of its update.
        """
        is_changed = False
        for name, role in list(self._roles.items()):
            rules = aggregate_rules(role, self._roles)
            if rules is None or rules == (role.get("rules") or []):
                continue
            # The event of a change in between triggers the next attempt.
            with contextlib.suppress(NotFound, Conflict):
                self._roles[name] = await patch_version(self._registry, info, role, {"rules": rules}, _OPTIONS)
                is_changed = True
        return is_changed


def aggregate_rules(role: Object, roles: Mapping[str, Object]) -> list[Any] | None:
    """Return the distinct rules of all roles that `role` aggregates, by role name; None if it aggregates none."""
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
    if not selectors:
        return None
    gathered: list[Any] = []
    for name in sorted(roles):
        other = roles[name]
        if name != role["metadata"]["name"] and aggregate_matches(selectors, other["metadata"].get("labels") or {}):
            gathered += [rule for rule in other.get("rules") or () if rule not in gathered]
    return gathered
