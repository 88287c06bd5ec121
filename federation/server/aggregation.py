"""Writes the rules of ClusterRoles that aggregate others, as kube-controller-manager does, so that everybody sees them.

Level-triggered: lists ClusterRoles, follows changes, and writes where the rules are not what the selected roles sum up
to. The authorizer does not wait for it: it follows aggregation rules by itself. `rules.py` matches selectors.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.base.clock import Clock
from federation.base.errors import Conflict, Expired, NotFound, StoreError
from federation.registry.options import ListOptions, WriteOptions
from federation.registry.registry import Registry
from federation.server.escalation import RBAC_GROUP
from federation.server.rules import aggregate_matches

_MERGE = "application/merge-patch+json"
_OPTIONS = WriteOptions(field_manager="clusterrole-aggregation-controller")
Object = dict[str, Any]


class AggregationController:
    """Keeps the rules of aggregating ClusterRoles up to date."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._roles: dict[str, Object] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        info = self._registry.kinds.lookup(RBAC_GROUP, "v1", "clusterroles")
        while True:
            found = await self._registry.list(info, "", ListOptions())
            roles = [orjson.loads(value) for value in found.items]
            self._roles = {role["metadata"]["name"]: role for role in roles}
            try:
                await self._write()
                options = ListOptions(resource_version=str(found.resource_version))
                async for batch in self._registry.watch(info, "", options):
                    for type_, value in batch:
                        if type_ != "BOOKMARK":
                            self._change(orjson.loads(value), is_gone=type_ == "DELETED")
                    await self._write()
            except (Expired, StoreError, Conflict):
                await self._clock.sleep(0.1)

    def _change(self, role: Object, *, is_gone: bool) -> None:
        if is_gone:
            self._roles.pop(role["metadata"]["name"], None)
        else:
            self._roles[role["metadata"]["name"]] = role

    async def _write(self) -> None:
        """Write every sum that differs; sums of sums follow with the events of these writes."""
        info = self._registry.kinds.lookup(RBAC_GROUP, "v1", "clusterroles")
        for name, role in list(self._roles.items()):
            rules = sum_rules(role, self._roles)
            if rules is None or rules == (role.get("rules") or []):
                continue
            version = role["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "rules": rules}
            try:
                value, _ = await self._registry.patch(info, "", name, _MERGE, orjson.dumps(patch), _OPTIONS)
            except NotFound:
                continue
            self._change(orjson.loads(value), is_gone=False)


def sum_rules(role: Object, roles: Mapping[str, Object]) -> list[Any] | None:
    """Return the rules of all roles that an aggregating one selects, by name and each once; None for other roles."""
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
    if not selectors:
        return None
    gathered: list[Any] = []
    for name in sorted(roles):
        other = roles[name]
        if name != role["metadata"]["name"] and aggregate_matches(selectors, other["metadata"].get("labels") or {}):
            gathered += [rule for rule in other.get("rules") or () if rule not in gathered]
    return gathered
