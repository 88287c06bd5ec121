"""Publishes where a rule is active, in the status of the ClusterTaintPolicy or Remedy."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Object, Resource
from federation.features.clusterrules.rules.ruleset import compile_rule, is_ruled, record_of, rule_name
from federation.features.clusterrules.rules.states import State
from federation.runtime.controller import DONE, Result
from federation.runtime.host import Host
from federation.runtime.informer import Informer

_CLUSTERS_MAX = 100


class RuleKey(NamedTuple):
    """A rule by its resource and name."""

    resource: Resource
    name: str


class StatusReport:
    """Writes the status of one rule per call."""

    def __init__(
        self, host: Host, rules: Mapping[Resource, Informer], clusters: Callable[[], Iterable[Object]]
    ) -> None:
        self._client = host.client
        self._rules = rules
        self._clusters = clusters

    async def reconcile(self, key: RuleKey) -> Result:
        """Write the status if it changes."""
        rule = self._rules[key.resource].get("", key.name)
        if rule is None or rule["metadata"].get("deletionTimestamp"):
            return DONE
        status = self._status(rule, key.resource)
        if {field: value for field, value in status.items() if value is not None} != (rule.get("status") or {}):
            await self._client.patch_status(key.resource, rule, status, field_manager=names.FIELD_MANAGER)
        return DONE

    def _status(self, rule: Object, resource: Resource) -> Object:
        name, active = rule_name(rule, resource.kind), 0
        found = []
        for cluster in sorted(filter(is_ruled, self._clusters()), key=lambda each: str(each["metadata"]["name"])):
            entry = record_of(cluster).get(name)
            if entry is None or entry.state is State.CALM or entry.since is None:
                continue
            active += entry.is_in_force
            where = {"name": cluster["metadata"]["name"], "state": entry.state.value, "since": to_rfc3339(entry.since)}
            found.append(where)
        problem = compile_rule(rule, resource.kind).problem or None
        return {"active": active, "clusters": found[:_CLUSTERS_MAX] or None, "problem": problem}
