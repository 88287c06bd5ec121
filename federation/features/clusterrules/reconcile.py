"""The steps for one FederatedCluster: plan what the rules make of it, and write taints and states in one patch.

The write is conditional on the version that was read, because a merge patch replaces the whole list of taints. States
and taints are in one write, so a crash leaves no taint that nobody owns.
"""

from collections.abc import Callable, Iterable

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.listening import Looks
from federation.apimachinery.resources import Object
from federation.features.clusterrules.names import EVENT_RULE_ACTIVE, EVENT_RULE_CLEARED
from federation.features.clusterrules.rules.ruleset import Change, Rule, is_ruled, plan_cluster
from federation.runtime.assumecache import AssumeCache
from federation.runtime.controller import DONE, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host

_TYPE = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": FEDERATED_CLUSTERS.kind}


class Reconciler:
    """Applies the rules to one cluster per call; one at a time, because they count each other."""

    def __init__(
        self,
        host: Host,
        clusters: Callable[[], Iterable[Object]],
        cluster: Callable[[str], Object | None],
        rules: Callable[[], Iterable[Rule]],
    ) -> None:
        self._client = host.client
        self._recorder = host.recorder
        self._clock = host.clock
        self._looks: Looks[str] = Looks(host.presence)
        self._clusters = clusters
        self._rules = rules
        self.assumed: AssumeCache[str] = AssumeCache(cluster)

    async def reconcile(self, name: str) -> Result:
        """Write the taints and states of a cluster if they change."""
        cluster = self.assumed.get(name)
        if cluster is None or not is_ruled(cluster):
            self._looks.forget(name)
            return DONE
        others = [self._newest(each) for each in self._clusters() if each["metadata"]["name"] != name]
        was_away = self._looks.was_away(name)
        plan = plan_cluster(cluster, self._rules(), others, self._clock.now(), was_away=was_away)
        if plan.is_changed:
            version = cluster["metadata"]["resourceVersion"]
            patch: Object = {"metadata": {"resourceVersion": version, "annotations": dict(plan.annotations)}}
            if plan.taints != list((cluster.get("spec") or {}).get("taints") or ()):
                patch["spec"] = {"taints": plan.taints or None}
            write = self._client.patch(FEDERATED_CLUSTERS, name, patch, field_manager=names.FIELD_MANAGER)
            if (written := await self.assumed.assume_result(name, write)) is None:
                return DONE  # the cluster is gone
            for change in plan.changes:
                self._report({**_TYPE, **written}, change)
        return Result(plan.recheck_s)

    def _newest(self, cluster: Object) -> Object:
        return self.assumed.get(cluster["metadata"]["name"]) or cluster

    def _report(self, cluster: Object, change: Change) -> None:
        """Write an Event of the cluster: a Warning when a rule becomes active, with the messages of its actions."""
        rule = change.rule
        if not change.is_active:
            self._recorder.event(cluster, NORMAL, EVENT_RULE_CLEARED, f"{rule.name} has ended")
            return
        text = "; ".join(filter(None, (f"{rule.name} is active", *rule.events)))
        self._recorder.event(cluster, WARNING, EVENT_RULE_ACTIVE, text)
