"""The ClusterRole aggregation controller: writes the rules of ClusterRoles that have an aggregation rule.

As in kube-controller-manager, so that clients see the rules. It lists and watches ClusterRoles and updates those whose
rules differ from the union of the selected roles' rules. `rbac.py` evaluates aggregation rules itself and does not
depend on this controller.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import Conflict, Expired, NotFound
from federation.apiserver.auth.escalation import RBAC_GROUP
from federation.apiserver.auth.policyrules import aggregate_matches
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import ListOptions, WriteOptions

_MERGE = "application/merge-patch+json"
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
        info = self._registry.kinds.lookup(RBAC_GROUP, "v1", "clusterroles")
        while True:
            found = await self._registry.list(info, "", ListOptions())
            roles = [orjson.loads(value) for value in found.items]
            self._roles = {role["metadata"]["name"]: role for role in roles}
            try:
                await self._update_rules()
                options = ListOptions(resource_version=str(found.resource_version))
                async for batch in self._registry.watch(info, "", options):
                    for type_, value in batch:
                        if type_ != "BOOKMARK":
                            self._apply(orjson.loads(value), is_deleted=type_ == "DELETED")
                    await self._update_rules()
            except (Expired, Conflict):
                await self._clock.sleep(0.1)

    def _apply(self, role: Object, *, is_deleted: bool) -> None:
        if is_deleted:
            self._roles.pop(role["metadata"]["name"], None)
        else:
            self._roles[role["metadata"]["name"]] = role

    async def _update_rules(self) -> None:
        """Write the rules that differ. Roles that aggregate an updated role follow with the event of its update."""
        info = self._registry.kinds.lookup(RBAC_GROUP, "v1", "clusterroles")
        for name, role in list(self._roles.items()):
            rules = aggregate_rules(role, self._roles)
            if rules is None or rules == (role.get("rules") or []):
                continue
            # The resourceVersion makes the patch fail if the role was changed in between; then `run` lists again.
            version = role["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "rules": rules}
            try:
                value, _ = await self._registry.patch(info, "", name, _MERGE, orjson.dumps(patch), _OPTIONS)
            except NotFound:
                continue
            self._apply(orjson.loads(value), is_deleted=False)


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
