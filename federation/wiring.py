"""The wiring of one control plane: informers, members, events and every controller over one host client.

`assembly.py` runs it with the embedded API server as host, `existinghost.py` with another one.
"""

import time
from collections.abc import Awaitable, Callable

from federation import __version__
from federation.admission.deviceselectors import selects
from federation.admission.retentionrules import parse_type
from federation.admission.statusrules import compile_status_rule
from federation.apimachinery.clock import Clock
from federation.apimachinery.definitions import version_of_patches
from federation.apimachinery.listening import Presence
from federation.apimachinery.webhookclient import WebhookClient, WebhookClientOptions
from federation.client.client import Client
from federation.client.execplugin import run_plugin
from federation.client.pool import ClusterPool
from federation.client.retryingwebhookclient import RetryingWebhookClient, WebhookTransport
from federation.client.storedversion import StoredVersionTransport
from federation.componentoptions import cluster_options, schedule_options, sync_options
from federation.controllers.automigration.controller import AutoMigrationController
from federation.controllers.cluster.controller import ClusterController
from federation.controllers.clusterrates.controller import ClusterRateController
from federation.controllers.clustertaints.controller import ClusterTaintController
from federation.controllers.eviction.controller import EvictionController
from federation.controllers.federate.controller import FederateController
from federation.controllers.federate.policyselection import PolicySelection
from federation.controllers.fleetmetrics.controller import FleetMetrics
from federation.controllers.follower.controller import FollowerController, FollowerOptions
from federation.controllers.leftovers.controller import LeftoverController, LeftoverOptions
from federation.controllers.nsautoprop.controller import NamespaceController, NamespaceOptions
from federation.controllers.override.controller import OverrideController, OverrideOptions
from federation.controllers.policystatus.controller import PolicyStatusController
from federation.controllers.schedule.controller import ScheduleController
from federation.controllers.statusaggregate.controller import StatusAggregateController
from federation.controllers.statuscollect.controller import StatusCollectController
from federation.controllers.ttlafterfinished.controller import TTLAfterFinishedController
from federation.delivery.controller import SyncController
from federation.delivery.host.tombstones import Tombstones
from federation.delivery.members.memberrecords import MemberRecords
from federation.featureapi.feature import Loop
from federation.featureapi.surroundings import GateTransport, RunProgram, Surroundings
from federation.features.catalogue import FEATURES, decision_chain, feature_holds
from federation.journal.decisions import Journal
from federation.planning.clusters.clusterresources import Collectors
from federation.planning.federatedobject.naming import federated_object_name
from federation.plans.plugincalls import RemoteCaller
from federation.runtime.events import EventRecorder
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.host import Host
from federation.runtime.informers import Informers
from federation.runtime.members import MemberOptions, Members
from federation.runtime.storedversions import StoredVersions
from federation.runtime.toleratedtaints import ToleratedTaints
from federation.runtime.transforms import drop_managed_fields
from federation.scheduling.engine import Engine
from federation.scheduling.framework.registry import PluginRegistry, load_plugins
from federation.scheduling.policyusage import PolicyUsage
from federation.settingfiles import read_providers, read_sources
from federation.settings import Settings

Run = Callable[[], Awaitable[None]]
_PARSED_MAX = 1_024
"""Objects of one kind on the host that stay parsed in the cache: those in work, and all of kinds with few objects."""


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
        metrics_transport: GateTransport | None = None,
        run_program: RunProgram = run_plugin,
        is_full: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`is_full` returns whether a namespace of the host stores more bytes than it may."""
        self._is_full = is_full
        self.pool = pool
        self.informers = Informers(client, clock=clock, transform=drop_managed_fields, parsed_max=_PARSED_MAX)
        stored_versions = StoredVersions(self.informers, version_of_patches)
        self.client = client = Client(StoredVersionTransport(client.transport, stored_versions.stored_in))
        self.types = FederatedTypes(self.informers, parse_type)
        self.policy_selection = PolicySelection(self.informers)
        self.objects = FederatedObjects(client, self.informers, self.types, name_of=federated_object_name, clock=clock)
        self.policy_usage = PolicyUsage(self.objects.type_of)
        self.members = Members(
            pool, clock=clock, options=MemberOptions(cache_bytes_max=settings.member_cache_bytes_max)
        )
        self.tombstones = Tombstones(client, self.informers)
        self.member_records = MemberRecords(clock)
        self.tolerated = ToleratedTaints()
        self._collectors = Collectors(selects)
        self.recorder = EventRecorder(client, clock=clock)
        presence = Presence(clock)
        self.host = Host(client, self.objects, self.informers, self.members, self.recorder, clock, presence)
        self.webhook_client = WebhookClient()
        transport = webhook_transport or self.webhook_client
        self.plugin_caller = RemoteCaller(RetryingWebhookClient(transport, clock=clock))
        self.gate_client = WebhookClient(
            WebhookClientOptions(calls_per_host_max=4, is_public_only=True, allowed_networks=settings.gate_networks)
        )
        """Sends the requests of rollouts, whose addresses users of namespaces choose."""
        self._gate_transport = gate_transport or self.gate_client
        self._run_program = run_program
        self._metrics_transport = metrics_transport or self.webhook_client
        self.engine = Engine(plugins or load_plugins(selects=selects), monotonic=time.perf_counter)
        self.metrics = FleetMetrics(self.objects, self.informers, clock, version=__version__)
        self.caches: list[tuple[str, Run]] = [("informers", self.informers.run), ("pool", pool.run)]
        self.loops: list[tuple[str, Run]] = [
            ("presence", presence.run),
            ("members", self.members.run),
            ("events", self.recorder.run),
            *self._controllers(journal, settings),
            *self._features(journal, settings),
        ]

    def _scheduler(self, journal: Journal, settings: Settings) -> ScheduleController:
        return ScheduleController(
            self.host,
            journal,
            self.engine,
            decision_chain(),
            options=schedule_options(settings),
            caller=self.plugin_caller,
            tolerated=self.tolerated,
        )

    def _controllers(self, journal: Journal, settings: Settings) -> list[tuple[str, Run]]:
        schedule = self._scheduler(journal, settings)
        sync = SyncController(
            self.host, self.tombstones, self.member_records, self.policy_selection, sync_options(settings)
        )
        self.preview = sync.preview
        controllers: dict[str, Loop] = {
            "cluster": ClusterController(self.host, self.pool, self._collectors, options=cluster_options(settings)),
            "clustertaints": ClusterTaintController(self.host, options=settings.holdout),
            "nsautoprop": NamespaceController(
                self.host, options=NamespaceOptions(exclude_regexp=settings.namespace_exclude_regexp)
            ),
            "federate": FederateController(self.host, self.policy_selection, schedule, holds=feature_holds(self.host)),
            "schedule": schedule,
            "eviction": EvictionController(self.host, schedule),
            "override": OverrideController(
                self.host, options=OverrideOptions(guard=settings.guard), is_full=self._is_full
            ),
            "policystatus": PolicyStatusController(self.host, self.policy_usage),
            "follower": FollowerController(self.host, options=FollowerOptions(guard=settings.guard)),
            "sync": sync,
            "leftovers": LeftoverController(self.host, self.tombstones, options=LeftoverOptions(guard=settings.guard)),
            "statuscollect": StatusCollectController(self.host),
            "statusaggregate": StatusAggregateController(self.host, compile_status_rule),
            "ttlafterfinished": TTLAfterFinishedController(self.host),
            "automigration": AutoMigrationController(self.host, self._collectors),
        }
        if settings.cluster_rates.url:
            controllers["clusterrates"] = ClusterRateController(
                self.host, self.webhook_client, options=settings.cluster_rates
            )
        return [(name, controller.run) for name, controller in controllers.items()]

    def _features(self, journal: Journal, settings: Settings) -> list[tuple[str, Run]]:
        surroundings = Surroundings(
            self.host,
            self.policy_usage,
            self._collectors,
            journal,
            self.engine,
            self._gate_transport,
            self._metrics_transport,
            read_sources(settings.metric_sources_file),
            read_providers(settings.cluster_providers_file),
            self._run_program,
            toleration_s=settings.failover_toleration_s,
            has_existing_host=settings.has_existing_host,
            preemption_interval_s=settings.preemption_interval_s,
        )
        controllers = [feature.controllers(surroundings) for feature in FEATURES]
        return [(name, controller.run) for each in controllers for name, controller in each.items()]

    async def unsynced(self) -> str:
        """Return which informers of the host lack their first list, "" when none does: a readiness check."""
        waiting = [i.resource.group_resource for i in self.informers.all() if not i.has_synced]
        return f"not synced yet: {', '.join(waiting)}" if waiting else ""
