"""The composition root: Settings in, one wired control plane out.

Everything is a constructor argument; nothing runs before `run`. `Wiring` holds all that reconciles, over any host
client and any pool of members: to see what a controller depends on, read it. `ControlPlane` puts a store, an API server
and a journal in SQL under it, starts them in order (keys and store, kinds, API server, informers, controllers) and
returns when cancelled. Scenario tests put registries in memory under the same `Wiring`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from federation.api.crds import crd_manifests
from federation.api.federatedtype import default_type_configs, from_config
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.base.clock import Clock
from federation.base.errors import AlreadyExists
from federation.base.tasks import Supervisor
from federation.client.guard import GuardOptions
from federation.client.http import HTTPOptions
from federation.client.local import LocalClient
from federation.client.outcalls import Outcalls
from federation.client.pool import ClusterPool, PoolOptions
from federation.client.protocol import Client
from federation.client.services import Poster, Services
from federation.controllers.automigration import controller as automigration
from federation.controllers.cluster import controller as cluster
from federation.controllers.federate import controller as federate
from federation.controllers.follower import controller as follower
from federation.controllers.nsautoprop import controller as nsautoprop
from federation.controllers.override import controller as override
from federation.controllers.schedule import controller as schedule
from federation.controllers.schedule.webhooks import RemoteCaller
from federation.controllers.statusaggregate import controller as statusaggregate
from federation.controllers.statuscollect import controller as statuscollect
from federation.controllers.sync import controller as sync
from federation.planning.clusterresources import Collectors
from federation.runtime.events import EventRecorder
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informers import Informers
from federation.runtime.members import Members
from federation.runtime.slim import drop_managed_fields
from federation.scheduling.engine import Engine
from federation.scheduling.framework.registry import PluginRegistry, load_plugins
from federation.server.apiserver import APIServer, APIServerOptions
from federation.server.app import AppOptions
from federation.server.limits import LimitOptions
from federation.settings import Settings
from federation.store.journal import Journal
from federation.store.options import JournalOptions
from federation.store.sql import SQLStore
from federation.store.sqljournal import SQLJournal

Run = Callable[[], Awaitable[None]]


class Wiring:
    """Informers, members, events and every controller over one host client. `loops` are to be run, all at once."""

    def __init__(
        self,
        client: Client,
        pool: ClusterPool,
        journal: Journal,
        settings: Settings,
        clock: Clock,
        *,
        plugins: PluginRegistry | None = None,
        poster: Poster | None = None,
    ) -> None:
        self.client = client
        self.pool = pool
        self.informers = Informers(client, clock=clock, transform=drop_managed_fields)
        self.types = FederatedTypes(self.informers, from_config)
        self.members = Members(pool, clock=clock)
        self.recorder = EventRecorder(client, clock=clock)
        self.outcalls = Outcalls()
        self._poster = poster or self.outcalls
        self.engine = Engine(plugins or load_plugins(), monotonic=time.perf_counter)
        self.loops: list[tuple[str, Run]] = [
            ("informers", self.informers.run),
            ("members", self.members.run),
            ("pool", pool.run),
            ("events", self.recorder.run),
            *self._controllers(journal, settings, clock),
        ]

    def _controllers(self, journal: Journal, settings: Settings, clock: Clock) -> list[tuple[str, Run]]:
        client, informers, types, members = self.client, self.informers, self.types, self.members
        recorder, engine, collectors = self.recorder, self.engine, Collectors()
        caller = RemoteCaller(Services(self._poster, clock=clock))
        namespaces = nsautoprop.NamespaceOptions(exclude_regexp=settings.namespace_exclude_regexp)
        health = cluster.ClusterOptions(
            health_period_s=settings.health_period_s, health_threshold_s=settings.health_threshold_s
        )
        scheduling = schedule.ScheduleOptions(
            allows_annotations=settings.allows_scheduling_annotations,
            writes_kubeadmiral_triggers=settings.writes_kubeadmiral_triggers,
            units=settings.units,
        )
        return [
            ("cluster", cluster.build(client, informers, self.pool, members, collectors, recorder, clock, health).run),
            ("nsautoprop", nsautoprop.build(client, informers, types, clock=clock, options=namespaces).run),
            ("federate", federate.build(client, informers, types, recorder, clock=clock).run),
            (
                "schedule",
                schedule.build(
                    client, informers, types, recorder, journal, engine, clock=clock, options=scheduling, caller=caller
                ).run,
            ),
            ("override", override.build(client, informers, types, recorder, clock=clock).run),
            ("follower", follower.build(client, informers, types, recorder, clock=clock).run),
            ("sync", sync.build(client, informers, types, members, recorder, clock).run),
            ("statuscollect", statuscollect.build(client, informers, types, members, clock).run),
            ("statusaggregate", statusaggregate.build(client, informers, types, members, clock).run),
            ("automigration", automigration.build(client, informers, types, members, collectors, recorder, clock).run),
        ]

    async def unsynced(self) -> str:
        """Say which informers of the host lack their first list, "" when none does: a readiness check."""
        waiting = [i.resource.group_resource for i in self.informers.all() if not i.has_synced]
        return f"not synced yet: {', '.join(waiting)}" if waiting else ""


async def ensure_types(client: Client) -> None:
    """Create the federated types that we ship; what an administrator changed or deleted later stays as it is."""
    existing = (await client.list(FEDERATED_TYPE_CONFIGS, limit=1)).items
    if existing:
        return
    for config in default_type_configs():
        try:
            await client.create(FEDERATED_TYPE_CONFIGS, config)
        except AlreadyExists:
            continue


class ControlPlane:
    """One control plane with an embedded host API. `client` sees the host as the controllers do."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._clock = clock
        self.kubeconfig: Path = settings.directory.expanduser().absolute() / "kubeconfig"
        self._store = SQLStore(settings.database_url, clock=clock)
        self._journal = SQLJournal(
            self._store.database,
            JournalOptions(
                age_days_max=settings.decisions_age_days_max,
                rows_per_object_max=settings.decisions_per_object_max,
                rows_max=settings.decisions_max,
            ),
            clock=clock,
        )
        self._server = APIServer(
            self._store,
            self._journal,
            options=APIServerOptions(
                self.kubeconfig.parent,
                self.kubeconfig,
                host=settings.host,
                port=settings.port,
                app=AppOptions(
                    limits=LimitOptions(requests_max=settings.requests_in_flight_max, watches_max=settings.watches_max)
                ),
                oidc=settings.oidc,
                audit=settings.audit,
            ),
            clock=clock,
        )
        self.client: Client = LocalClient(self._server.registry, user_agent="federation")
        self._pool = ClusterPool(clock=clock, options=_pool_options(settings))
        self._wiring = Wiring(self.client, self._pool, self._journal, settings, clock)
        self._server.registry.hold_with(federate.first_finalizers(self._wiring.types))

    async def run(self, on_started: Callable[[str], Any]) -> None:
        """Serve and reconcile until cancelled; `on_started` gets the API's URL when it accepts connections.

        ConfigurationError when keys, store or port are unusable; nothing was started then.
        """
        try:
            await self._server.prepare(crd_manifests())
            await ensure_types(self.client)
            loops = Supervisor(self._clock)
            for name, run in (("journal", self._journal.run), *self._wiring.loops):
                loops.add(name, run)
            async with asyncio.TaskGroup() as group:
                background = group.create_task(loops.run(), name="control-plane-loops")
                try:
                    await self._server.run(on_started, {"informers": self._wiring.unsynced})
                finally:
                    background.cancel()
        finally:
            await self._journal.flush()
            await self._wiring.outcalls.close()
            await self._pool.close()
            await self._store.close()


def _pool_options(settings: Settings) -> PoolOptions:
    return PoolOptions(
        http=HTTPOptions(request_timeout_s=settings.member_request_timeout_s),
        guard=GuardOptions(in_flight_max=settings.member_requests_in_flight_max),
    )
