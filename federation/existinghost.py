"""The composition root for an existing Kubernetes API server as host: the same `Wiring` over an HTTP client.

What the embedded API does by itself is done by other means here. Rights and definitions are installed at the start
(`hosting/installation.py`). Admission plugins and finalizers of new objects are webhooks (`hosting/pluginreviews.py`).
The journal of decisions is in SQL, and this process serves it with the federation's other pages, because the host
cannot (`hosting/endpoint.py`). Several processes on one host elect a leader by Lease; all of them answer webhooks.

Decision: docs/decisions/0038-existing-host-over-webhooks.md
"""

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog

from federation import __version__
from federation.admission.deviceselectors import selects
from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError
from federation.apimachinery.resources import NODES
from federation.apiserver.auth.pki import TLSFiles, write_private
from federation.apiserver.http.serving import serve
from federation.apiserver.store.databases import open_database
from federation.apiserver.store.encryption import ValueCipher
from federation.apiserver.store.options import StoreOptions
from federation.client.http import HTTPClient
from federation.client.kubeconfig import in_cluster, load_kubeconfig
from federation.client.pool import ClusterPool
from federation.componentoptions import journal_options, pool_options
from federation.controllers.federate.controller import first_finalizers
from federation.features.catalogue import (
    decision_chain,
    feature_forecasts,
    feature_screens,
    feature_views,
    start_features,
)
from federation.hosting import installation, reachability
from federation.hosting.access import HostAccess
from federation.hosting.admissionplugins import admission_plugins
from federation.hosting.endpoint import Endpoint
from federation.hosting.hostkinds import HostKinds
from federation.hosting.ledclient import led_client
from federation.hosting.manifests import GROUPS, USER
from federation.hosting.pluginreviews import HostAdmission
from federation.hosting.roles import HOST_RBAC
from federation.hosting.sharedcertificate import SecretName, SharedCertificate
from federation.hosting.userinterface import UserInterface, without_identity
from federation.hosting.webhookconfigurations import to_configurations
from federation.journal.sqljournal import SQLJournal
from federation.leadership import Leadership, supervised
from federation.plans.planner import Planners
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.hostlimits import Limits
from federation.settingfiles import read_sources
from federation.settings import Settings
from federation.tracing.traces import Traces
from federation.web import application
from federation.web.clusterheadroom import HeadroomView
from federation.web.delivery import DeliveryView
from federation.web.history import HistoryView
from federation.web.objectlist import ObjectListView
from federation.web.policyobjects import PolicyView
from federation.wiring import Run, Wiring

_log = structlog.get_logger(__name__)
_SECRET = SecretName(names.SYSTEM_NAMESPACE, names.HOST_WEBHOOKS)
_CHECK_S = 10.0
"""Interval of the checks of certificate and webhooks."""
_CLIENT_CA = "host-client-ca.crt"


async def connect(settings: Settings) -> HTTPClient:
    """Install account and rights on the host and return a client that acts as the account.

    ConfigurationError for a wrong kubeconfig or missing rights, ClusterError when the host does not answer.
    """
    given = in_cluster() if settings.in_cluster else load_kubeconfig(settings.host_kubeconfig)
    first = HTTPClient(given)
    try:
        user = await installation.own_user(first)
        await installation.refuse_federation(first)
        if user == USER:
            return HTTPClient(given)
        await installation.install_rights(first, HOST_RBAC.rules)
    finally:
        await first.close()
    return await _as_account(given)


async def _as_account(given: Connection) -> HTTPClient:
    client = HTTPClient(replace(given, impersonate_user=USER, impersonate_groups=GROUPS))
    try:
        if await installation.own_user(client) == USER:
            return client
    except ConfigurationError as error:
        await client.close()
        raise ConfigurationError(f"the user of the kubeconfig may not act as {USER}: {error}") from error
    await client.close()
    raise ConfigurationError(f"the host does not let the user of the kubeconfig act as {USER}")


class ExistingHost:
    """One control plane over the API server that `client` reaches, as the federation's account there."""

    def __init__(self, settings: Settings, client: HTTPClient, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._client = client
        self._url = reachability.check_url(settings.host_url, settings.host)
        self._database = open_database(settings.database_url, StoreOptions())
        self._cipher = ValueCipher(settings.encryption)
        self._journal = SQLJournal(self._database, journal_options(settings), clock=clock, cipher=self._cipher)
        self._leadership = Leadership(client, settings.leader_election, clock)
        self._led = led_client(client, self._leadership.may_act)
        self._pool = ClusterPool(clock=clock, options=pool_options(settings), may_write=self._leadership.may_act)
        self._wiring = wiring = Wiring(self._led, self._pool, self._journal, settings, clock)
        self._kinds = HostKinds(client, clock)
        self._access = HostAccess(client, clock)
        self._admission = HostAdmission(
            lambda kinds: admission_plugins(
                client,
                kinds.find,
                clock,
                settings.gate_networks,
                metric_sources=read_sources(settings.metric_sources_file),
                acts_as_users=False,
            ),
            self._kinds,
            self._access,
            first_finalizers(wiring.types, wiring.policy_selection),
        )
        view = DeliveryView(
            wiring.objects, wiring.informers, wiring.members, wiring.member_records, wiring.tolerated, wiring.preview
        )
        policies = PolicyView(wiring.objects, wiring.policy_usage)
        views = [*feature_views(wiring.host), HistoryView(wiring.metrics.history)]
        headroom = HeadroomView(wiring.objects, wiring.informers)
        self._listed = ObjectListView(wiring.objects, wiring.informers, view, clock)
        mount = application.mount(
            self._journal, self._kinds, decision_chain().kinds, view, policies, self._listed, headroom, views
        )
        self._traces = Traces(settings.otlp_endpoint, clock, __version__)
        self._traces.follow(wiring.objects, wiring.informers, self._leadership.may_act)
        self._certificate: SharedCertificate | None = None
        self._endpoint = Endpoint(self._admission.answer, mount, self._access, wiring.unsynced)
        self.ui_url = ""
        """The address of the web UI once it is served, "" without one."""
        self._ui = self._user_interface() if settings.ui_port >= 0 else None

    def _user_interface(self) -> UserInterface:
        from federation.web.ui import uiapp  # noqa: PLC0415  # it takes long, and most have none

        wiring, clock = self._wiring, self._clock
        planners = Planners(
            load_plugins(selects=selects),
            decision_chain(),
            wiring.plugin_caller,
            clock,
            Limits(self._settings.guard, self._settings.failover),
            feature_forecasts(),
        )
        mount = uiapp.mount(self._ui_key, clock, planners, None, feature_screens(), takes_agents=False)
        host = without_identity(self._client.connection)
        return UserInterface(mount, self._endpoint, host, self._access, clock)

    def _ui_key(self) -> bytes:
        """Return the secret behind sessions: all processes on the host share the key of the CA."""
        assert self._certificate is not None
        return self._certificate.authority_key()

    @property
    def server(self) -> str:
        """The address of the host."""
        return self._client.connection.server

    async def run(self, on_started: Callable[[str], Any]) -> None:
        """Serve and reconcile until cancelled; `on_started` gets the URL of this process.

        ConfigurationError when the journal, the port or the host cannot be used; ApiError and ClusterError when the
        host refuses or does not answer at the start, FederationError when another process leads from now on.
        """
        with tempfile.TemporaryDirectory(prefix="federation-host-") as folder:
            try:
                await self._prepare()
                await self._serve(Path(folder), on_started)
            finally:
                await self._journal.flush()
                if self._ui is not None:
                    await self._ui.close()
                await self._wiring.webhook_client.close()
                await self._wiring.gate_client.close()
                await self._pool.close()
                await self._client.close()
                await self._database.close()
                await self._traces.close()

    async def _prepare(self) -> None:
        await self._cipher.open()
        await self._database.open()
        await installation.install_definitions(self._client, self._clock)
        await installation.while_preparing(self._clock, partial(start_features, self._client, has_existing_host=True))
        await self._kinds.refresh()
        if (await self._client.list(NODES, limit=1)).items:
            _log.warning(
                "the host has nodes: if its controller manager runs the controllers of workloads, the pods of federated"
                " workloads run on the host, too; see docs/existing-host.md"
            )

    async def _serve(self, folder: Path, on_started: Callable[[str], Any]) -> None:
        """Run all loops beside the listener, those that only one process may run while this one leads."""
        settings = self._settings
        name = urlsplit(self._url).hostname or settings.host
        certificate = SharedCertificate(self._client, folder, name, self._clock, secret=_SECRET)
        await certificate.refresh()
        self._certificate = certificate
        tls = certificate.files
        if authority := await reachability.client_authority(self._client):
            write_private(folder / _CLIENT_CA, authority.encode())
            tls = replace(tls, client_ca=folder / _CLIENT_CA)
        listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def started(host: str, port: int) -> None:
            listening.set_result(self._url or f"https://{f'[{host}]' if ':' in host else host}:{port}")
            on_started(listening.result())

        shared: list[tuple[str, Run]] = [
            ("journal", self._journal.run),
            ("journal-database", self._database.run),
            ("journal-encryption", self._journal.reencrypt),
            ("host-kinds", self._kinds.run),
            ("host-certificate", partial(self._renew, certificate)),
        ]
        led: list[tuple[str, Run]] = [
            ("host-connection", partial(self._keep_connected, certificate, listening)),
            *self._wiring.loops,
        ]
        async with asyncio.TaskGroup() as group:
            group.create_task(supervised([*shared, *self._wiring.caches], self._clock)(), name="shared-loops")
            group.create_task(self._leadership.run(supervised(led, self._clock)), name="led-loops")
            if self._ui is not None:
                group.create_task(self._listed.fill(), name="list-of-objects")
                await self._serve_ui(self._ui, group, certificate.files)
            await serve(self._endpoint, host=settings.host, port=settings.port, tls=tls, on_started=started)

    async def _serve_ui(self, ui: UserInterface, group: asyncio.TaskGroup, tls: TLSFiles) -> None:
        """Serve the web UI until the group ends, and return when it accepts connections."""
        settings = self._settings
        listening = asyncio.Event()

        def started(host: str, port: int) -> None:
            self.ui_url = f"https://{f'[{host}]' if ':' in host else host}:{port}/ui"
            listening.set()

        group.create_task(
            serve(ui, host=settings.host, port=settings.ui_port, tls=tls, on_started=started), name="web-ui"
        )
        await listening.wait()

    async def _renew(self, certificate: SharedCertificate) -> None:
        """Renew the certificate when it is due, and read the one that another process has renewed, until cancelled."""
        while True:
            await self._clock.sleep(_CHECK_S)
            try:
                await certificate.refresh()
            except (ApiError, ClusterError, ConfigurationError) as error:
                _log.warning("the certificate for the host could not be checked", error=str(error))

    async def _keep_connected(self, certificate: SharedCertificate, listening: "asyncio.Future[str]") -> None:
        """Have the webhooks and the address of this process on the host, as they should be, until cancelled."""
        await self._wiring.types.wait_synced()
        url = await asyncio.shield(listening)
        while True:
            held = [type_.resource for type_ in self._wiring.types.all()]
            configurations = to_configurations(
                self._admission.resources, held, reachability.to_client_config(url, certificate.bundle)
            )
            try:
                await reachability.install_webhooks(self._led, *configurations)
                await reachability.publish_endpoint(self._led, url, certificate.bundle)
            except (ApiError, ClusterError) as error:
                _log.warning("the webhooks on the host could not be checked", error=str(error))
            await self._clock.sleep(_CHECK_S)
