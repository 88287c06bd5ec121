"""Triggers of rules for clusters, and their wiring.

A cluster is looked at when it or a rule changes. When the state of a rule changes in one cluster, the others are looked
at too, because a rule is active in a limited number of them.
"""

import asyncio
from functools import partial

from federation.api.resources import CLUSTER_TAINT_POLICIES, FEDERATED_CLUSTERS, REMEDIES
from federation.apimachinery.resources import Object, Resource
from federation.featureapi.surroundings import GateTransport
from federation.features.clusterrules.names import CLUSTER_RULES
from federation.features.clusterrules.notifying import Notifier
from federation.features.clusterrules.reconcile import Reconciler
from federation.features.clusterrules.rules.ruleset import Rule, compile_rule
from federation.features.clusterrules.statusreport import RuleKey, StatusReport
from federation.runtime.controller import Controller
from federation.runtime.host import Host

_KINDS = (CLUSTER_TAINT_POLICIES, REMEDIES)
_STATUS_DELAY_S = 1.0
_NOTIFIERS = 4


class ClusterRuleController:
    """Owns the queues of clusters, of notifications and of statuses. `run` runs until cancelled."""

    def __init__(self, host: Host, transport: GateTransport) -> None:
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._informers = {resource: host.informers.for_resource(resource) for resource in _KINDS}
        self._rules: dict[RuleKey, Rule] = {}
        self._reconciler = Reconciler(host, self._clusters.list, self._cluster, self._rules.values)
        notifier = Notifier(host, transport, self._cluster, self._rules.values)
        report = StatusReport(host, self._informers, self._clusters.list)
        self.controller: Controller[str] = Controller(
            "clusterrules", self._reconciler.reconcile, workers=1, clock=host.clock
        )
        self.notifications: Controller[str] = Controller(
            "clusterrules-webhooks", notifier.reconcile, workers=_NOTIFIERS, clock=host.clock
        )
        self.reports: Controller[RuleKey] = Controller(
            "clusterrules-status", report.reconcile, workers=1, clock=host.clock
        )
        for resource, informer in self._informers.items():
            informer.add_handler(partial(self._on_rule, resource))
        self._clusters.add_handler(self._on_cluster)

    async def run(self) -> None:
        """Run until cancelled; the workers start once all rules and clusters are cached."""
        await asyncio.gather(self._clusters.wait_synced(), *(each.wait_synced() for each in self._informers.values()))
        async with asyncio.TaskGroup() as group:
            group.create_task(self.controller.run(), name="clusterrules")
            group.create_task(self.notifications.run(), name="clusterrules-webhooks")
            group.create_task(self.reports.run(), name="clusterrules-status")

    def _cluster(self, name: str) -> Object | None:
        return self._clusters.get("", name)

    def _on_rule(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        key = RuleKey(resource, str((new if new is not None else old or {})["metadata"]["name"]))
        if new is None:
            self._rules.pop(key, None)
        else:
            self._rules[key] = compile_rule(new, resource.kind)
            self.reports.enqueue(key)
        self._enqueue_all()

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        name = (new if new is not None else old or {})["metadata"]["name"]
        self._reconciler.assumed.prune(name)
        if not self._rules and CLUSTER_RULES not in ((new or {}).get("metadata", {}).get("annotations") or {}):
            return
        if new is not None:
            self.controller.enqueue(name)
        if _states(old) != _states(new):
            self.notifications.enqueue(name)
            self._enqueue_all()
            for key in self._rules:
                self.reports.enqueue(key, after_s=_STATUS_DELAY_S)

    def _enqueue_all(self) -> None:
        for cluster in self._clusters.list():
            self.controller.enqueue(cluster["metadata"]["name"])


def _states(cluster: Object | None) -> object:
    return None if cluster is None else (cluster["metadata"].get("annotations") or {}).get(CLUSTER_RULES)
