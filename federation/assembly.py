"""The composition root: Settings in, one wired control plane out.

Everything is a constructor argument; nothing runs before `run`. `Wiring` holds all that reconciles, over any host
client and any pool of members: to see what a controller depends on, read it. `ControlPlane` puts a store, an API server
and a journal in SQL under it, starts them in order (keys and store, kinds, API server, informers, controllers) and
returns when cancelled. Scenario tests put registries in memory under the same `Wiring`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from federation import __version__, processrole
from federation.admission.authors import AuthorAdmission, record_choice
from federation.admission.deviceselectors import selects
from federation.admission.hosteffects import HostEffectAdmission
from federation.admission.protections import Delivers, ProtectionWarnings
from federation.api import agents, names
from federation.api.crds import crd_manifests
from federation.apimachinery.clock import Clock
from federation.apimachinery.effect import EffectOf
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Resource
from federation.apiserver.auth.pki import TOKEN_KEY, has_authority
from federation.apiserver.auth.sharedkeys import KeySecret
from federation.apiserver.http.app import AppOptions
from federation.apiserver.http.flowcontrol import FlowControlOptions
from federation.apiserver.http.nonresource import Mount
from federation.apiserver.registry.registry import Registry
from federation.apiserver.server import APIServer, APIServerOptions
from federation.apiserver.store import seenrevisions
from federation.apiserver.store.fencing import fenced
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.seenrevisions import SeenRevisions
from federation.apiserver.store.sql import SQLStore
from federation.apiserver.verbs.requestoptions import SYSTEM_NAMESPACES, RegistryOptions
from federation.client.client import Client
from federation.client.local import LocalClient
from federation.client.pool import ClusterPool
from federation.componentoptions import journal_options, pool_options, registration_options
from federation.controllers.federate.controller import first_finalizers, host_effects
from federation.features.catalogue import (
    decision_chain,
    feature_forecasts,
    feature_screens,
    feature_views,
    start_features,
)
from federation.hosting.admissionplugins import admission_plugins
from federation.hosting.roles import HOST_RBAC, LISTED_BY_NAME, SECRETS_IN_OBJECTS
from federation.journal.sqljournal import SQLJournal
from federation.leadership import Leadership, supervised
from federation.memberproxy.hostviews import serve_members
from federation.memberproxy.placedclusters import PlacedClusters
from federation.memberproxy.replicaconnections import ReplicaConnections
from federation.planning.waves.metricsources import NO_SOURCES
from federation.plans.planner import Planners
from federation.runtime.events import EventRecorder
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.hostlimits import Limits
from federation.settingfiles import read_sources
from federation.settings import Settings
from federation.tracing.traces import Traces
from federation.tunnel.tunnels import Tunnels
from federation.web.agents import AgentEndpoint
from federation.web.podlocations import PodLocations
from federation.web.registration import Registration
from federation.web.ui.storedlinks import remove_stored_links
from federation.wiring import Wiring

if TYPE_CHECKING:
    from federation.web.delivery import DeliveryView
    from federation.web.objectlist import ObjectListView

_KEY_SECRET = KeySecret(names.SYSTEM_NAMESPACE, "federation-keys")
HOST_REGISTRY = RegistryOptions(
    system_namespaces=(*SYSTEM_NAMESPACES, names.SYSTEM_NAMESPACE),
    collects_pods=True,
)
"""The host has one namespace more than a cluster, that of the federation's own Secrets and Leases, and no kubelets."""


def protect_federated_objects(
    registry: Registry,
    clock: Clock,
    effect_of: EffectOf | None = None,
    settings: Settings | None = None,
    delivers: Delivers | None = None,
) -> None:
    """Register the admission of the kinds that the control plane writes, and of policies in namespaces.

    `effect_of` tells which configurations act on the host; without it all do. `settings` have the networks and sources
    of metrics that gates of rollouts may reach; without them none. `delivers` tells which objects members will have.
    """

    def find(api_version: str, kind: str) -> Resource | None:
        group, _, version = api_version.rpartition("/")
        info = registry.kinds.served(group, version, kind)
        return info.resource if info is not None else None

    client = LocalClient(registry, user_agent="admission")
    networks = settings.gate_networks if settings is not None else ()
    sources = read_sources(settings.metric_sources_file) if settings is not None else NO_SOURCES
    plugins = admission_plugins(client, find, clock, networks, effect_of, sources)
    if effect_of is not None:
        registry.set_effect(effect_of)
        registry.add_admission_plugin(HostEffectAdmission(effect_of), beside_others=True)
    for plugin in plugins:
        registry.add_admission_plugin(plugin)
    if delivers is not None:
        registry.add_admission_plugin(ProtectionWarnings(delivers), beside_others=True)
    recorded = {name for plugin in plugins if isinstance(plugin, AuthorAdmission) for name in plugin.resources}
    registry.set_annotator(partial(record_choice, recorded))


class ControlPlane:
    """One control plane with an embedded host API. `client` sees the host as the controllers do."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._clock = clock
        self.kubeconfig: Path = settings.directory.expanduser().absolute() / "kubeconfig"
        self._pki = self.kubeconfig.parent / "pki"
        self._is_new = settings.new
        self._limits = Limits(settings.guard, settings.failover)
        self._oidc_login = settings.oidc_login
        store_options = StoreOptions(encryption=settings.encryption, bytes_max=settings.store_bytes_max)
        self._store = SQLStore(settings.database_url, store_options, clock=clock)
        self._seen = SeenRevisions(self._store, self._store.database.name, self.kubeconfig.parent, clock)
        self._journal = SQLJournal(
            self._store.database, journal_options(settings), clock=clock, cipher=self._store.cipher
        )
        self._server = APIServer(
            self._store,
            options=APIServerOptions(
                self.kubeconfig.parent,
                self.kubeconfig,
                host=settings.host,
                port=settings.port,
                advertise_address=settings.advertised,
                is_published=processrole.is_published(settings.role),
                tls=settings.tls,
                identity=settings.identity if self._store.database.is_shared else "",
                runs_controllers=not self._store.database.is_shared,
                key_secret=_KEY_SECRET if self._store.database.is_shared else None,
                registry=replace(
                    HOST_REGISTRY,
                    namespace_bytes_max=settings.namespace_bytes_max,
                    object_values_max=settings.object_values,
                ),
                rbac=HOST_RBAC,
                app=AppOptions(
                    listed_by_name=LISTED_BY_NAME,
                    contents=SECRETS_IN_OBJECTS,
                    confined_users=agents.CONFINED,
                    flow_control=FlowControlOptions(
                        requests_max=settings.requests_in_flight_max, watches_max=settings.watches_max
                    ),
                ),
                oidc=settings.oidc,
                audit=settings.audit,
            ),
            clock=clock,
        )
        self.client: Client = LocalClient(self._server.registry, user_agent="federation")
        self._runs_controllers = processrole.runs_controllers(settings.role, is_shared=self._store.database.is_shared)
        self._leadership: Leadership | None = None
        if self._store.database.is_shared:
            self._leadership = Leadership(
                self.client, settings.leader_election, clock, database_now=self._store.database.now
            )
        lead = self._leadership
        fence, may_write = (lead.fence(self._server.registry), lead.may_act) if lead is not None else (None, None)
        self._fence = fence
        led_client = LocalClient(self._server.registry, user_agent="federation", fence=fence)
        tunnels = Tunnels(clock)
        self._pool = ClusterPool(clock=clock, options=pool_options(settings), may_write=may_write, tunnels=tunnels)
        self._wiring = wiring = Wiring(
            led_client, self._pool, self._journal, settings, clock, is_full=self._server.registry.is_full
        )
        self._server.mount("federation", self._web)
        self._server.mount("ui", self._ui)
        placed = PlacedClusters(self._pool)
        wiring.objects.subscribe(placed.changed, None)
        serve_members(self._server, self._pool, placed, clock)
        ReplicaConnections(wiring.informers, self._pool, self._leads)
        self._agent_events = EventRecorder(self.client, clock=clock)
        registration = Registration(
            self.client, self._server.certify_client, self._agent_events, clock, registration_options(settings)
        )
        self._server.mount("agents", AgentEndpoint(registration, tunnels, self._leads, clock).mount)
        self._server.set_pod_locations(PodLocations(self._wiring.objects).find)
        self._traces = Traces(settings.otlp_endpoint, clock, __version__)
        self._server.wrap(self._traces.wrap)
        self._traces.follow(wiring.objects, wiring.informers, may_write or (lambda: True))
        finalizers = first_finalizers(self._wiring.types, self._wiring.policy_selection)
        self._server.registry.set_creation_finalizers(finalizers, manager=names.FIELD_MANAGER)
        effect_of = host_effects(wiring.types, wiring.policy_selection)
        protect_federated_objects(self._server.registry, clock, effect_of, settings, finalizers)

    async def run(self, on_started: Callable[[str], Any]) -> None:
        """Serve and reconcile until cancelled; `on_started` gets the API's URL when it accepts connections.

        ConfigurationError when keys, store or port are unusable; nothing was started then.
        """
        try:
            await self._open_store()
            await self._server.prepare(crd_manifests())
            await start_features(self.client, has_existing_host=False)
            await remove_stored_links(self.client)
            shared = [
                ("journal", self._journal.run),
                ("journal-encryption", self._journal.reencrypt),
                ("agent-events", self._agent_events.run),
                ("seen-revisions", self._seen.run),
                ("list-of-objects", self._fill_list),
            ]
            background = [supervised([*shared, *self._wiring.caches], self._clock)]
            if self._runs_controllers:
                background.append(self._run_controllers)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run(), name="control-plane-loops") for run in background]
                # Not awaited here: when this task is cancelled, the Lease is released while connections are drained.
                serving = group.create_task(self._server.run(on_started, {"informers": self._wiring.unsynced}))
                serving.add_done_callback(lambda _: [task.cancel() for task in tasks])
        finally:
            await self._journal.flush()
            await self._wiring.webhook_client.close()
            await self._wiring.gate_client.close()
            await self._pool.close()
            await self._store.close()
            await self._traces.close()

    # What the web apps import takes a fifth of the time until the first answer, so they import it when they are used.

    def _web(self) -> Mount:
        from federation.web import application
        from federation.web.clusterheadroom import HeadroomView
        from federation.web.history import HistoryView
        from federation.web.plans import PlanView
        from federation.web.policyobjects import PolicyView

        wiring = self._wiring
        return application.mount(
            self._journal,
            self._server.registry.kinds,
            decision_chain().kinds,
            self._delivery,
            PolicyView(wiring.objects, wiring.policy_usage),
            self._listed,
            HeadroomView(wiring.objects, wiring.informers),
            [
                *feature_views(wiring.host),
                PlanView(wiring.host.client, self._planners),
                HistoryView(wiring.metrics.history),
            ],
        )

    @cached_property
    def _delivery(self) -> "DeliveryView":
        from federation.web.delivery import DeliveryView

        wiring = self._wiring
        return DeliveryView(
            wiring.objects, wiring.informers, wiring.members, wiring.member_records, wiring.tolerated, wiring.preview
        )

    @cached_property
    def _listed(self) -> "ObjectListView":
        from federation.web.objectlist import ObjectListView

        return ObjectListView(self._wiring.objects, self._wiring.informers, self._delivery, self._clock)

    @cached_property
    def _is_ui_open(self) -> asyncio.Event:
        return asyncio.Event()

    async def _fill_list(self) -> None:
        """Make the rows of the list of objects while the first user logs in."""
        await self._is_ui_open.wait()
        await self._listed.fill()

    def _ui(self) -> Mount:
        from federation.web.ui import uiapp
        from federation.web.ui.oidclogin import OIDCLogin

        self._is_ui_open.set()
        login = self._oidc_login
        oidc = None if login is None else OIDCLogin(login, self._wiring.webhook_client)
        return uiapp.mount((self._pki / TOKEN_KEY).read_bytes, self._clock, self._planners, oidc, feature_screens())

    @cached_property
    def _planners(self) -> Planners:
        """Plans for users, those of the web UI and others: their limits are for both."""
        return Planners(
            load_plugins(selects=selects),
            decision_chain(),
            self._wiring.plugin_caller,
            self._clock,
            self._limits,
            feature_forecasts(),
        )

    async def _run_controllers(self) -> None:
        """Run what only one process on a database may run; with a shared database, while this one leads."""
        loops = self._wiring.loops
        if self._leadership is None:
            await supervised(loops, self._clock)()
            return
        controllers = supervised([*self._server.registry.controllers, *loops], self._clock)

        async def lead() -> None:
            # The registry's controllers write without a client; their tasks inherit the fence.
            with fenced(self._fence):
                await controllers()

        await self._leadership.run(lead)

    def _leads(self) -> bool:
        return self._runs_controllers and (self._leadership is None or self._leadership.may_act())

    async def _open_store(self) -> None:
        """Open the database; ConfigurationError when it or the keys are lost, which must not look like a new start."""
        has_keys = has_authority(self._pki)
        lost = self._store.database.missing_file() if has_keys and not self._is_new else None
        if lost is not None:
            raise ConfigurationError(
                f"{lost} is missing or empty, but {self._pki} holds the keys of an earlier start; restore the database"
                f" from a backup, or start empty with --new"
            )
        await self._store.ready()
        if self._is_new:
            seenrevisions.forget(self.kubeconfig.parent)
        await self._seen.check()
        # Processes that share a database take over each other's keys (apiserver/auth/sharedkeys.py).
        if has_keys or self._is_new or self._store.database.is_shared:
            return
        if await self._store.revision():
            raise ConfigurationError(
                f"{self._pki} holds no CA, but {self._store.database.name} holds objects; restore the folder from a"
                f" backup, or make new keys with --new: existing kubeconfigs and tokens become invalid"
            )

    @property
    def encrypts(self) -> bool:
        """Whether stored Secrets are encrypted; known once `run` has opened the store."""
        return self._store.cipher.is_enabled
