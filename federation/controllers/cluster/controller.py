"""Triggers and wiring of the cluster controller; the steps are in `reconcile.py` and `monitor.py`.

A FederatedCluster is reconciled when its spec, its Secret or its deletion changes. Each joined cluster has a monitor
in a task of its own, so a hanging member delays no other. This controller fills `Members`, the pool and the
`Collectors` of nodes and pods, through which other controllers use members.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial

from federation.api import names
from federation.api.federatedtype import FederatedType, parse_configs
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_TYPE_CONFIGS
from federation.apimachinery.resources import CRDS, SECRETS, Object, Resource
from federation.apimachinery.tasks import Supervisor
from federation.client.pool import ClusterPool
from federation.controllers.cluster.monitor import Monitor, MonitorOptions
from federation.controllers.cluster.reconcile import JoinOptions, Reconciler
from federation.controllers.cluster.rightscheck import RightsCheck
from federation.controllers.cluster.statuswriter import Publisher
from federation.controllers.cluster.tokenrenewal import TokenOptions, TokenRenewal
from federation.planning.clusters.clusterresources import Collectors
from federation.planning.clusters.health import PROBE_TIME_REFRESH_S
from federation.runtime.controller import Controller, ControllerOptions
from federation.runtime.host import Host

_BY_SECRET = "cluster-secret"  # noqa: S105  # an index, not a secret


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Limits of the cluster controller."""

    workers: int = 16
    """Clusters that join or leave concurrently; each waits for its member most of the time."""
    reconcile_timeout_s: float = 60.0
    probe_time_refresh_s: float = PROBE_TIME_REFRESH_S
    """Maximum age of a published probe time while nothing changes."""
    join: JoinOptions = field(default_factory=JoinOptions)
    token: TokenOptions = field(default_factory=TokenOptions)
    monitor: MonitorOptions = field(default_factory=MonitorOptions)


class ClusterController:
    """Owns the queue of clusters and the monitors of joined ones."""

    def __init__(
        self, host: Host, pool: ClusterPool, collectors: Collectors, *, options: ClusterOptions | None = None
    ) -> None:
        options = options or ClusterOptions()
        self._members = host.members
        self._collectors = collectors
        self._recorder = host.recorder
        self._clock = host.clock
        self._presence = host.presence
        self._monitoring = options.monitor
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._secrets = host.informers.for_resource(SECRETS, namespace=names.SYSTEM_NAMESPACE)
        self._types = host.informers.for_resource(FEDERATED_TYPE_CONFIGS)
        self._parsed_types: list[FederatedType] | None = None
        self._monitors: dict[str, Monitor] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._publisher = Publisher(host.client, self._cached, host.clock, refresh_s=options.probe_time_refresh_s)
        reconciler = Reconciler(
            host,
            self._secret,
            self._publisher,
            pool,
            TokenRenewal(host.client, self._publisher, pool, host.recorder, host.clock, options.token),
            options.join,
            types=self._federated_types,
            start=self._start,
            stop=self._stop,
        )
        self.controller: Controller[str] = Controller(
            "cluster",
            reconciler.reconcile,
            workers=options.workers,
            clock=host.clock,
            options=ControllerOptions(reconcile_timeout_s=options.reconcile_timeout_s),
        )
        self._clusters.add_index(_BY_SECRET, _secret_names)
        self._clusters.add_handler(self._on_cluster)
        self._secrets.add_handler(self._on_secret)
        self._types.add_handler(self._on_type)
        host.members.add_capacity_handler(self._on_capacity)
        host.members.add_running_handler(self._on_running)
        host.members.add_handler(self._on_copy)
        host.members.add_sync_listener(self._on_kind)
        host.members.add_served_listener(self._on_kind)
        pool.add_listener(self._on_rebuilt)
        pool.add_recovery_listener(self._on_rebuilt)
        pool.add_failure_listener(self._on_unreachable)

    async def run(self) -> None:
        """Work until cancelled."""
        await asyncio.gather(*(each.wait_synced() for each in (self._clusters, self._secrets, self._types)))
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for name in self._monitors:
                    self._run_monitor(name)
                await self.controller.run()
            finally:
                self._group = None
                self._tasks.clear()

    # -- monitoring members

    def _start(self, name: str) -> None:
        """Monitor a joined member, unless it is monitored already."""
        self._members.add_cluster(name)
        if name not in self._monitors:
            collector = self._collectors.add(name)
            clock, options = self._clock, self._monitoring
            rights = RightsCheck(
                name,
                self._federated_types,
                self._publisher,
                self._recorder,
                clock,
                period_s=options.discovery_period_s,
                version=options.version,
            )
            self._monitors[name] = Monitor(
                name, self._members, collector, self._publisher, self._recorder, rights, clock, options, self._presence
            )
            self._run_monitor(name)

    def _run_monitor(self, name: str) -> None:
        if self._group is not None:
            supervisor = Supervisor(self._clock)
            supervisor.add(f"monitor {name}", self._monitors[name].run)
            self._tasks[name] = self._group.create_task(supervisor.run(), name=f"monitor {name}")
            self._tasks[name].add_done_callback(partial(self._on_monitor_ended, name))

    def _stop(self, name: str) -> None:
        self._monitors.pop(name, None)
        if (task := self._tasks.pop(name, None)) is not None:
            task.cancel()
        self._collectors.remove(name)
        self._members.remove_cluster(name)

    def _on_monitor_ended(self, name: str, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(name) is task:
            del self._tasks[name]

    # -- triggers

    def _cached(self, name: str) -> Object | None:
        return self._clusters.get("", name)

    def _secret(self, name: str) -> Object | None:
        return self._secrets.get(names.SYSTEM_NAMESPACE, name)

    def _federated_types(self) -> list[FederatedType]:
        if self._parsed_types is None:
            self._parsed_types = parse_configs(self._types.list())
        return self._parsed_types

    def _on_type(self, old: Object | None, new: Object | None) -> None:
        """Check the rights in every member: they depend on the federated types."""
        self._parsed_types = None
        added = parse_configs([new]) if old is None and new is not None else []
        for monitor in self._monitors.values():
            monitor.check_rights_soon()
            for type_ in added:
                monitor.wants_kind(type_.resource)

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        name = (new if new is not None else old or {})["metadata"]["name"]
        self._publisher.cluster_changed(name, new)
        if old is None or new is None or _is_relevant(old, new):
            self.controller.enqueue(name)

    def _on_secret(self, old: Object | None, new: Object | None) -> None:
        name = (new if new is not None else old or {})["metadata"]["name"]
        if old is not None and new is not None and old.get("data") == new.get("data"):
            return
        for cluster in self._clusters.by_index(_BY_SECRET, name):
            self.controller.enqueue(cluster["metadata"]["name"])

    def _on_capacity(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:
        monitor = self._monitors.get(cluster)
        if monitor is not None:
            monitor.saw(resource, old, new)

    def _on_running(self, cluster: str, pod: Object | None, change: int) -> None:
        monitor = self._monitors.get(cluster)
        if monitor is not None:
            monitor.saw_running(pod, change)

    def _on_copy(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:
        monitor = self._monitors.get(cluster) if resource == CRDS else None
        if monitor is not None:
            monitor.saw_definition(old, new)

    def _on_kind(self, cluster: str, resource: Resource) -> None:
        """Discover the API of a member soon that answers for a kind which it did not serve."""
        monitor = self._monitors.get(cluster)
        if monitor is not None:
            monitor.saw_kind(resource)

    def _on_rebuilt(self, cluster: str) -> None:
        """Probe a member at once that has another connection or answers again."""
        monitor = self._monitors.get(cluster)
        if monitor is not None:
            monitor.check_rights_soon()

    def _on_unreachable(self, cluster: str) -> None:
        """Probe a member soon whose connection broke."""
        monitor = self._monitors.get(cluster)
        if monitor is not None:
            monitor.suspect()


def _secret_names(cluster: Object) -> list[str]:
    name = ((cluster.get("spec") or {}).get("secretRef") or {}).get("name")
    return [str(name)] if name else []


def _is_relevant(old: Object, new: Object) -> bool:
    """Return whether the update may concern joining or leaving; health and resources are our own writes."""
    before, after = old["metadata"], new["metadata"]
    if any(before.get(key) != after.get(key) for key in ("uid", "deletionTimestamp", "finalizers")):
        return True
    if old.get("spec") != new.get("spec") or _forced(before) != _forced(after):
        return True
    held, has = old.get("status") or {}, new.get("status") or {}
    return held.get("joinPerformed") != has.get("joinPerformed") or _joined(held) != _joined(has)


def _forced(metadata: Object) -> tuple[str | None, str | None]:
    annotations = metadata.get("annotations") or {}
    return annotations.get(names.FORCED_REMOVAL), annotations.get(names.LEFTOVERS_RECORDED)


def _joined(status: Object) -> tuple[str, str]:
    for condition in status.get("conditions") or ():
        if condition.get("type") == names.CLUSTER_JOINED:
            return condition.get("status", ""), condition.get("reason", "")
    return "", ""
