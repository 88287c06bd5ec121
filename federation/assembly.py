"""The composition root: Settings in, one wired control plane out.

Everything is a constructor argument; nothing runs before `run`. `Wiring` holds all that reconciles, over any host
client and any pool of members: to see what a controller depends on, read it. `ControlPlane` puts a store, an API server
and a journal in SQL under it, starts them in order (keys and store, kinds, API server, informers, controllers) and
returns when cancelled. Scenario tests put registries in memory under the same `Wiring`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from federation import __version__, processrole
from federation.admission.plugins import admission_plugins
from federation.admission.roles import HOST_RBAC
from federation.admission.rolloutgates import compile_gate
from federation.admission.statusrules import compile_status_rule
from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.federatedtype import from_config
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, Resource
from federation.apimachinery.webhookclient import WebhookClient, WebhookClientOptions
from federation.apiserver.auth.pki import TOKEN_KEY, has_authority
from federation.apiserver.auth.sharedkeys import KeySecret
from federation.apiserver.http.app import AppOptions
from federation.apiserver.http.flowcontrol import FlowControlOptions
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.apiserver.server import APIServer, APIServerOptions
from federation.apiserver.store.fencing import fenced
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sql import SQLStore
from federation.apiserver.verbs.requestoptions import SYSTEM_NAMESPACES, RegistryOptions
from federation.client.client import Client
from federation.client.local import LocalClient
from federation.client.pool import ClusterPool
from federation.client.retryingwebhookclient import RetryingWebhookClient, WebhookTransport
from federation.componentoptions import cluster_options, pool_options, schedule_options
from federation.controllers.automigration.controller import AutoMigrationController
from federation.controllers.autoscalers.controller import AutoscalerController
from federation.controllers.cluster.controller import ClusterController
from federation.controllers.clustertaints.controller import ClusterTaintController
from federation.controllers.cronautoscaler.controller import CronAutoscalerController
from federation.controllers.federate.controller import FederateController, first_finalizers
from federation.controllers.federate.policyselection import PolicySelection
from federation.controllers.fleetmetrics.controller import FleetMetrics
from federation.controllers.follower.controller import FollowerController, FollowerOptions
from federation.controllers.horizontalautoscaler.controller import HorizontalAutoscalerController
from federation.controllers.horizontalautoscaler.memberscales import MemberScales
from federation.controllers.leftovers.controller import LeftoverController
from federation.controllers.nsautoprop.controller import NamespaceController, NamespaceOptions
from federation.controllers.override.controller import OverrideController, OverrideOptions
from federation.controllers.policystatus.controller import PolicyStatusController
from federation.controllers.rollout.controller import RolloutController
from federation.controllers.rollout.httpgate import GateTransport
from federation.controllers.schedule.controller import ScheduleController
from federation.controllers.schedule.remoteplugins import RemoteCaller
from federation.controllers.serviceexport.controller import ServiceExportController, ServiceExportOptions
from federation.controllers.serviceimport.controller import ServiceImportController
from federation.controllers.statusaggregate.controller import StatusAggregateController
from federation.controllers.statuscollect.controller import StatusCollectController
from federation.controllers.sync.controller import SyncController, SyncOptions
from federation.controllers.sync.driftreports import DriftReports
from federation.controllers.topologyspread.controller import TopologySpreadController
from federation.controllers.typeconfig.controller import TypeConfigController
from federation.controllers.typeconfig.derivation import TypeDerivationController
from federation.controllers.typeconfig.shippedtypes import ensure_types
from federation.controllers.uniteddeployment.controller import UnitedDeploymentController
from federation.controllers.uniteddeployment.memberpods import MemberPods
from federation.controllers.workloadspread.controller import WorkloadSpreadController
from federation.dispatch.corrections import Corrections
from federation.dispatch.scalers import Scalers
from federation.dispatch.tombstones import Tombstones
from federation.journal.decisions import Journal
from federation.journal.sqljournal import SQLJournal
from federation.leadership import Leadership, supervised
from federation.memberproxy.connector import MemberProxy
from federation.planning.clusters.clusterresources import Collectors
from federation.planning.federatedobject.naming import federated_object_name
from federation.runtime.events import EventRecorder
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informers import Informers
from federation.runtime.members import MemberOptions, Members
from federation.runtime.toleratedtaints import ToleratedTaints
from federation.runtime.transforms import drop_managed_fields
from federation.scheduling.engine import Engine
from federation.scheduling.framework.registry import PluginRegistry, load_plugins
from federation.scheduling.policyusage import PolicyUsage
from federation.settings import Settings
from federation.spread.spreadadmission import RULES as SPREAD_RULES
from federation.tracing.traces import Traces
from federation.web import application
from federation.web.delivery import DeliveryView
from federation.web.objectlist import ObjectListView
from federation.web.podlocations import PodLocations
from federation.web.policyobjects import PolicyView
from federation.web.shardtopology import TopologyView
from federation.web.ui import uiapp

Run = Callable[[], Awaitable[None]]
_KEY_SECRET = KeySecret(names.SYSTEM_NAMESPACE, "federation-keys")
HOST_REGISTRY = RegistryOptions(system_namespaces=(*SYSTEM_NAMESPACES, names.SYSTEM_NAMESPACE))
"""The host has one namespace more than a cluster: that of the federation's own Secrets and Leases."""


def protect_federated_objects(registry: Registry, clock: Clock) -> None:
    """Register the admission of the kinds that the control plane writes, and of policies in namespaces."""

    def find(api_version: str, kind: str) -> Resource | None:
        group, _, version = api_version.rpartition("/")
        info = registry.kinds.served(group, version, kind)
        return info.resource if info is not None else None

    for plugin in admission_plugins(LocalClient(registry, user_agent="admission"), find, SPREAD_RULES, clock):
        registry.add_admission_plugin(plugin)


class _Controller(Protocol):
    """A controller that works until cancelled."""

    async def run(self) -> None:
        """Work until cancelled."""
        ...


class Wiring:
    """Informers, members, events and every controller over one host client.

    `caches` are to be run in every process, `loops` beside them in the one that leads.
    """

    def __init__(
        self,
        client: Client,
        pool: ClusterPool,
        journal: Journal,
        settings: Settings,
        clock: Clock,
        *,
        plugins: PluginRegistry | None = None,
        webhook_transport: WebhookTransport | None = None,
        gate_transport: GateTransport | None = None,
    ) -> None:
        self.client = client
        self.pool = pool
        self.informers = Informers(client, clock=clock, transform=drop_managed_fields)
        self.types = FederatedTypes(self.informers, from_config)
        self.policy_selection = PolicySelection(self.informers)
        self.objects = FederatedObjects(client, self.informers, self.types, name_of=federated_object_name, clock=clock)
        self.policy_usage = PolicyUsage(self.objects.type_of)
        self.members = Members(
            pool, clock=clock, options=MemberOptions(cache_bytes_max=settings.member_cache_bytes_max)
        )
        self.tombstones = Tombstones(client, self.informers)
        self.corrections = Corrections(clock)
        self.scalers = Scalers(clock)
        self.tolerated = ToleratedTaints()
        self.recorder = EventRecorder(client, clock=clock)
        self.webhook_client = WebhookClient()
        self._webhook_transport = webhook_transport or self.webhook_client
        self.gate_client = WebhookClient(WebhookClientOptions(calls_per_host_max=4, reaches_local_addresses=False))
        """Sends the requests of rollouts, whose addresses users of namespaces choose."""
        self._gate_transport = gate_transport or self.gate_client
        self.engine = Engine(plugins or load_plugins(), monotonic=time.perf_counter)
        self.metrics = FleetMetrics(self.objects, self.informers, clock, version=__version__)
        self.caches: list[tuple[str, Run]] = [("informers", self.informers.run)]
        self.loops: list[tuple[str, Run]] = [
            ("members", self.members.run),
            ("pool", pool.run),
            ("events", self.recorder.run),
            *self._controllers(journal, settings, clock),
            ("rollout", self._rollouts(clock).run),
        ]

    def _controllers(self, journal: Journal, settings: Settings, clock: Clock) -> list[tuple[str, Run]]:
        client, objects, informers, members = self.client, self.objects, self.informers, self.members
        recorder, engine, collectors = self.recorder, self.engine, Collectors()
        caller = RemoteCaller(RetryingWebhookClient(self._webhook_transport, clock=clock))
        pods = MemberPods(objects, informers, members)
        controllers: dict[str, _Controller] = {
            "cluster": ClusterController(
                client,
                informers,
                self.pool,
                members,
                collectors,
                recorder,
                clock=clock,
                options=cluster_options(settings),
            ),
            "clustertaints": ClusterTaintController(client, informers, recorder, clock=clock, options=settings.holdout),
            "typeconfig": TypeConfigController(client, objects, informers, recorder, clock=clock),
            "typederivation": TypeDerivationController(client, objects, informers, recorder, clock=clock),
            "nsautoprop": NamespaceController(
                objects,
                informers,
                clock=clock,
                options=NamespaceOptions(exclude_regexp=settings.namespace_exclude_regexp),
            ),
            "federate": FederateController(client, objects, informers, recorder, self.policy_selection, clock=clock),
            "schedule": ScheduleController(
                client,
                objects,
                informers,
                recorder,
                journal,
                engine,
                clock=clock,
                options=schedule_options(settings),
                caller=caller,
                tolerated=self.tolerated,
            ),
            "override": OverrideController(
                objects, informers, recorder, clock=clock, options=OverrideOptions(guard=settings.guard)
            ),
            "policystatus": PolicyStatusController(client, objects, informers, self.policy_usage, clock=clock),
            **self._autoscalers(settings, clock),
            "follower": FollowerController(
                objects, informers, recorder, clock=clock, options=FollowerOptions(guard=settings.guard)
            ),
            "sync": SyncController(
                client,
                objects,
                informers,
                members,
                self.tombstones,
                DriftReports(self.corrections, self.scalers, recorder),
                recorder,
                self.policy_selection,
                clock=clock,
                options=SyncOptions(guard=settings.guard),
            ),
            "leftovers": LeftoverController(
                client, objects, informers, members, self.tombstones, recorder, clock=clock
            ),
            "statuscollect": StatusCollectController(client, objects, members, clock=clock),
            "statusaggregate": StatusAggregateController(
                client, objects, informers, members, compile_status_rule, clock=clock
            ),
            "uniteddeployment": UnitedDeploymentController(
                client, informers, pods, recorder=recorder, patch_pod=patch_pod, clock=clock
            ),
            **self._services(settings, clock),
            "topologyspread": TopologySpreadController(client, informers, members, recorder, clock=clock),
            "workloadspreads": WorkloadSpreadController(client, objects, informers, members, clock=clock),
            "automigration": AutoMigrationController(objects, informers, members, collectors, recorder, clock=clock),
        }
        return [(name, controller.run) for name, controller in controllers.items()]

    def _autoscalers(self, settings: Settings, clock: Clock) -> dict[str, _Controller]:
        scalers = self.informers.for_resource(HORIZONTAL_POD_AUTOSCALERS)
        scales = MemberScales(
            self.client,
            self.objects,
            self.informers,
            self.members,
            acts_by_default=not settings.has_existing_host,
        )
        return {
            "cronautoscaler": CronAutoscalerController(
                self.client, self.informers, self.types, self.recorder, clock=clock
            ),
            "autoscalers": AutoscalerController(
                self.client,
                self.objects,
                self.informers,
                clock=clock,
                acts=scales.is_responsible,
                usage=self.policy_usage,
                recorder=self.recorder,
            ),
            "horizontalautoscaler": HorizontalAutoscalerController(
                self.client, scalers, scales, clock=clock, manager=names.AUTOSCALER_MANAGER
            ),
        }

    def _services(self, settings: Settings, clock: Clock) -> dict[str, _Controller]:
        options = ServiceExportOptions(toleration_s=settings.failover_toleration_s)
        return {
            "serviceexport": ServiceExportController(
                self.client, self.objects, self.informers, self.members, clock=clock, options=options
            ),
            "serviceimport": ServiceImportController(
                self.client, self.objects, self.informers, self.recorder, clock=clock
            ),
        }

    def _rollouts(self, clock: Clock) -> RolloutController:
        return RolloutController(
            self.client,
            self.objects,
            self.informers,
            self.members,
            self.recorder,
            compile_gate,
            self._gate_transport,
            clock=clock,
        )

    async def unsynced(self) -> str:
        """Return which informers of the host lack their first list, "" when none does: a readiness check."""
        waiting = [i.resource.group_resource for i in self.informers.all() if not i.has_synced]
        return f"not synced yet: {', '.join(waiting)}" if waiting else ""


class ControlPlane:
    """One control plane with an embedded host API. `client` sees the host as the controllers do."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._clock = clock
        self.kubeconfig: Path = settings.directory.expanduser().absolute() / "kubeconfig"
        self._pki = self.kubeconfig.parent / "pki"
        self._is_new = settings.new
        store_options = StoreOptions(encryption=settings.encryption, bytes_max=settings.store_bytes_max)
        self._store = SQLStore(settings.database_url, store_options, clock=clock)
        self._journal = SQLJournal(self._store.database, settings.journal, clock=clock, cipher=self._store.cipher)
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
                    flow_control=FlowControlOptions(
                        requests_max=settings.requests_in_flight_max, watches_max=settings.watches_max
                    )
                ),
                oidc=settings.oidc,
                audit=settings.audit,
            ),
            clock=clock,
        )
        protect_federated_objects(self._server.registry, self._clock)
        self.client: Client = LocalClient(self._server.registry, user_agent="federation")
        self._runs_controllers = processrole.runs_controllers(settings.role, is_shared=self._store.database.is_shared)
        self._leadership: Leadership | None = None
        if self._store.database.is_shared:
            self._leadership = Leadership(self.client, settings.leader_election, clock)
        lead = self._leadership
        fence, may_write = (lead.fence(self._server.registry), lead.may_act) if lead is not None else (None, None)
        self._fence = fence
        led_client = LocalClient(self._server.registry, user_agent="federation", fence=fence)
        self._pool = ClusterPool(clock=clock, options=pool_options(settings), may_write=may_write)
        self._wiring = wiring = Wiring(led_client, self._pool, self._journal, settings, clock)
        view = DeliveryView(
            wiring.objects, wiring.informers, wiring.members, wiring.corrections, wiring.scalers, wiring.tolerated
        )
        policies = PolicyView(wiring.objects, wiring.policy_usage)
        spread = TopologyView(wiring.informers, wiring.members)
        listed = ObjectListView(wiring.objects, wiring.informers)
        mount = application.mount(self._journal, self._server.registry.kinds, view, policies, spread, listed)
        self._server.mount("federation", mount)
        self._server.mount("ui", uiapp.mount((self._pki / TOKEN_KEY).read_bytes, self.client, clock))
        self._server.connect(FEDERATED_CLUSTERS, "proxy", MemberProxy(self._pool))
        self._server.set_pod_locations(PodLocations(self._wiring.objects).find)
        self._traces = Traces(settings.otlp_endpoint, clock, __version__)
        self._server.wrap(self._traces.wrap)
        self._traces.follow(wiring.objects, wiring.informers, may_write or (lambda: True))
        finalizers = first_finalizers(self._wiring.types, self._wiring.policy_selection)
        self._server.registry.set_creation_finalizers(finalizers, manager=names.FIELD_MANAGER)

    async def run(self, on_started: Callable[[str], Any]) -> None:
        """Serve and reconcile until cancelled; `on_started` gets the API's URL when it accepts connections.

        ConfigurationError when keys, store or port are unusable; nothing was started then.
        """
        try:
            await self._open_store()
            await self._server.prepare(crd_manifests())
            await ensure_types(self.client)
            shared = [("journal", self._journal.run), ("journal-encryption", self._journal.reencrypt)]
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
