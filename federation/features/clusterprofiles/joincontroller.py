"""Triggers of joins by ClusterProfiles: policies, profiles of other managers, and the clusters that joined by them."""

import asyncio

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.resources import SECRETS, Object
from federation.client.clustersecret import secret_name_of
from federation.featureapi.surroundings import RunProgram
from federation.features.clusterprofiles.joinreconcile import JoinReconciler, JoinReport, JoinState
from federation.features.clusterprofiles.joinrules import compile_join_policy, profile_of
from federation.features.clusterprofiles.names import CLUSTER_JOIN_POLICIES, CLUSTER_PROFILES
from federation.features.clusterprofiles.rules import is_ours
from federation.planning.clusters.accessproviders import Providers
from federation.runtime.controller import Controller, ControllerOptions, Key, Result, key_of
from federation.runtime.host import Host

_WORKERS = 4
"""Programs of providers that run at a time."""
_TIMEOUT_S = 60.0
_REPORT_DELAY_S = 1.0


class ClusterJoinController:
    """Owns the queues of profiles and of reports. `run` runs until cancelled."""

    def __init__(self, host: Host, providers: Providers, run_program: RunProgram) -> None:
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._profiles = host.informers.for_resource(CLUSTER_PROFILES)
        self._policies = host.informers.for_resource(CLUSTER_JOIN_POLICIES)
        self._state = JoinState()
        self._joining = JoinReconciler(host, (self._clusters, self._profiles), providers, run_program, self._state)
        report = JoinReport(host, self._policies, self._profiles.list, self._cluster, self._state)
        options = ControllerOptions(reconcile_timeout_s=_TIMEOUT_S)
        self.controller: Controller[Key] = Controller(
            "clusterjoin", self._reconcile, workers=_WORKERS, clock=host.clock, options=options
        )
        self.reports: Controller[str] = Controller("clusterjoin-status", report.reconcile, workers=1, clock=host.clock)
        self._policies.add_handler(self._on_policy)
        self._profiles.add_handler(self._on_profile)
        self._clusters.add_handler(self._on_cluster)
        host.informers.for_resource(SECRETS, namespace=names.SYSTEM_NAMESPACE).add_handler(self._on_secret)

    async def run(self) -> None:
        """Start the workers once policies, profiles and clusters are cached."""
        await asyncio.gather(*(each.wait_synced() for each in (self._policies, self._profiles, self._clusters)))
        async with asyncio.TaskGroup() as group:
            group.create_task(self.controller.run(), name="clusterjoin")
            group.create_task(self.reports.run(), name="clusterjoin-status")

    async def _reconcile(self, key: Key) -> Result:
        before = self._state.problems.get(key)
        result = await self._joining.reconcile(key)
        if self._state.problems.get(key) != before:
            self._enqueue_reports()
        return result

    def _cluster(self, name: str) -> Object | None:
        return self._clusters.get("", name)

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        name = str((new if new is not None else old or {})["metadata"]["name"])
        self._state.policies.pop(name, None)
        if new is not None:
            self._state.policies[name] = compile_join_policy(new)
        self._enqueue_reports()
        for profile in self._profiles.list():
            self._enqueue(profile)

    def _on_profile(self, old: Object | None, new: Object | None) -> None:
        self._enqueue(new if new is not None else old or {})

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        namespace, _, name = profile_of(new if new is not None else old or {}).partition("/")
        if self._state.policies and name:
            self.controller.enqueue(Key(namespace, name))
            self._enqueue_reports()

        elif self._state.policies and new is None:
            self._retry_problems()

    def _on_secret(self, old: Object | None, new: Object | None) -> None:
        """Try again once a Secret is gone that was in the way of a cluster's credentials."""
        if self._state.policies and new is None and old is not None:
            self._retry_problems(old["metadata"]["name"])

    def _retry_problems(self, secret: str = "") -> None:
        """Try profiles again whose cluster does not join: a cluster of their name or address is gone, or a Secret."""
        for key in list(self._state.problems):
            if not secret or secret_name_of(key.name) == secret:
                self._joining.forget(key)
                self.controller.enqueue(key)

    def _enqueue(self, profile: Object) -> None:
        if self._state.policies and not is_ours(profile):
            self.controller.enqueue(key_of(profile))
            self._enqueue_reports()

    def _enqueue_reports(self) -> None:
        for name in self._state.policies:
            self.reports.enqueue(name, after_s=_REPORT_DELAY_S)
