"""One complete API server: store, registry, authentication, authorization, app and listener.

The federation host and every simulated member are instances with their own directories and ports. It owns the order of
startup (keys, store, built-in objects, loops, listener) and of shutdown. Mounted apps and callers belong to
`assembly.py` and the simulator.
"""

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object, Resource
from federation.apimachinery.tasks import Supervisor
from federation.apimachinery.webhookclient import WebhookClient, WebhookClientOptions
from federation.apimachinery.webhooks import REVIEW_BYTES_MAX, Answer, AnswerAny, HTTPWebhookCaller, ServiceNetwork
from federation.apiserver.aggregation.aggregator import Aggregator
from federation.apiserver.audit.auditoptions import AuditOptions
from federation.apiserver.audit.auditpolicy import load
from federation.apiserver.audit.log import AuditLog
from federation.apiserver.audit.trail import Auditor
from federation.apiserver.auth import sharedkeys
from federation.apiserver.auth.authentication import Authenticator
from federation.apiserver.auth.bootstrappolicy import RBACOptions, ensure_default_rbac
from federation.apiserver.auth.certificaterenewal import CertificateRenewal
from federation.apiserver.auth.clusterroleaggregation import ClusterRoleAggregationController
from federation.apiserver.auth.kubeconfigfile import write_kubeconfig
from federation.apiserver.auth.oidc import OIDCAuthenticator, SigningKeys
from federation.apiserver.auth.oidcclaims import OIDCOptions
from federation.apiserver.auth.pki import FRONT_PROXY_USER, PKI, Authority, ensure_pki, has_authority
from federation.apiserver.auth.rbac import RBACAuthorizer
from federation.apiserver.auth.serveridentity import SELF_ISSUED, ServerIdentity
from federation.apiserver.auth.serviceaccounttokens import ServiceAccountTokens
from federation.apiserver.auth.sharedkeys import KeySecret
from federation.apiserver.auth.tokencontroller import TokenController
from federation.apiserver.auth.tokenfile import TokenFile
from federation.apiserver.http.app import App, AppOptions
from federation.apiserver.http.asgi import ASGIApp
from federation.apiserver.http.connectors import Connector
from federation.apiserver.http.health import Check
from federation.apiserver.http.nonresource import Mount, Mounts
from federation.apiserver.http.podcommands import Locate
from federation.apiserver.http.readers import Reader
from federation.apiserver.http.serving import Listen, serve
from federation.apiserver.registry.capublisher import CAPublisher, FrontProxyTrust
from federation.apiserver.registry.kubernetesservice import KubernetesService, advertised_address
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.interface import Store
from federation.apiserver.verbs.requestoptions import RegistryOptions

_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104  # compared, not bound


@dataclass(frozen=True, slots=True)
class APIServerOptions:
    """Addresses, files and options of one API server."""

    directory: Path
    """Holds PKI and token files in `directory/pki`."""
    kubeconfig: Path
    """Path of the administrator's kubeconfig, written when the port is known."""
    name: str = "federation"
    """Name of the cluster and context in the kubeconfig, and of the CA."""
    host: str = "127.0.0.1"
    port: int = 0
    advertise_address: str = ""
    """IP address in the endpoints of `default/kubernetes`; "" for `host`, or the machine's if `host` is loopback."""
    is_published: bool = True
    """Whether the endpoints of `default/kubernetes` name this server."""
    tls: ServerIdentity = SELF_ISSUED
    registry: RegistryOptions = field(default_factory=RegistryOptions)
    app: AppOptions = field(default_factory=AppOptions)
    rbac: RBACOptions = field(default_factory=RBACOptions)
    identity: str = ""
    """Names this server among those that share its database; "" for a server alone."""
    key_secret: KeySecret | None = None
    """Where the servers of a shared database keep their common keys; None for its own keys."""
    oidc: OIDCOptions | None = None
    """The OIDC issuer whose ID tokens are accepted."""
    audit: AuditOptions | None = None
    """The audit log; None disables it."""
    runs_controllers: bool = True
    """Whether this server always runs `Registry.controllers`; with a shared database its process may run them."""


class APIServer:
    """A Kubernetes API over `store`. `prepare` makes it ready for in-process clients, `run` serves until cancelled."""

    def __init__(self, store: Store, *, options: APIServerOptions, clock: Clock, listen: Listen = serve) -> None:
        self._store = store
        self._listen = listen
        self._mounts = Mounts()
        self._middleware: Callable[[ASGIApp], ASGIApp] | None = None
        self._locate_pods: Locate | None = None
        self._connectors: dict[tuple[str, str, str, str], Connector] = {}
        self._readers: dict[tuple[str, str, str], Reader] = {}
        self._options = options
        self._clock = clock
        self._pki: PKI | None = None
        self._url = ""
        self._tokens = TokenFile(options.directory / "pki" / "tokens.json")
        self._auditor: Auditor | None = None
        if options.audit is not None:
            self._auditor = Auditor(
                load(options.audit.policy_file), AuditLog(options.audit, clock), options.audit, clock
            )
        self._webhook_client = WebhookClient(WebhookClientOptions(response_bytes_max=REVIEW_BYTES_MAX))
        self._oidc: OIDCAuthenticator | None = None
        if options.oidc is not None:
            keys = SigningKeys(options.oidc, self._webhook_client, clock)
            self._oidc = OIDCAuthenticator(options.oidc, keys, clock)
        self._network = ServiceNetwork(HTTPWebhookCaller(self._webhook_client))
        self.registry = Registry(store, clock=clock, options=options.registry, webhooks=self._network)
        self.authorizer = RBACAuthorizer(self.registry, clock=clock, implied=options.rbac.implied)

    def mount(self, name: str, make: Callable[[], Mount]) -> None:
        """Serve an ASGI app below `/NAME/`; it is made for its first request. Call it before `run`."""
        self._mounts.add(name, make)

    def connect(self, resource: Resource, subresource: str, connector: Connector) -> None:
        """Answer a subresource by a connector. Call it before `run`."""
        self._connectors[resource.group, resource.version, resource.plural, subresource] = connector

    def read_from(self, resource: Resource, reader: Reader) -> None:
        """Answer reads of a kind by a reader. Call it before `run`."""
        self._readers[resource.group, resource.version, resource.plural] = reader

    async def certify_client(self, request: bytes, user: str, groups: Sequence[str], validity: timedelta) -> bytes:
        """Return a client certificate of this server's CA, for the key of a signing request; BadRequest."""
        directory, name, now = self._options.directory / "pki", self._options.name, self._clock.now()
        authority = await asyncio.to_thread(Authority.ensure, directory, now=now, common_name=name)
        return authority.certify_client(request, user=user, groups=groups, now=now, validity=validity)

    def wrap(self, middleware: Callable[[ASGIApp], ASGIApp]) -> None:
        """Serve `middleware(app)` instead of the app. Call it before `run`."""
        self._middleware = middleware

    def add_service(self, namespace: str, name: str, answer: Answer) -> None:
        """Answer webhook calls to a service of the cluster in this process."""
        self._network.add(namespace, name, answer)

    def add_other_services(self, answer: AnswerAny) -> None:
        """Answer webhook calls to all other services of the cluster in this process."""
        self._network.add_others(answer)

    def set_pod_locations(self, locate: Locate) -> None:
        """Name the clusters of pods that are not here when `kubectl logs` asks for them. Call it before `run`."""
        self._locate_pods = locate

    async def prepare(self, crds: Sequence[Object] = ()) -> None:
        """Create keys, open the store, install CRDs and default roles; ConfigurationError names an unusable file."""
        options = self._options
        await self._store.ready()
        self._pki = await self._prepare_pki()
        self._tokens.load()
        await self.registry.install_crds(crds)
        await ensure_default_rbac(self.registry, options.rbac)

    async def settle(self) -> None:
        """Write, after `prepare`, what the loops of a new server write first, so that copies of its store need not."""
        await self.registry.settle()
        await ClusterRoleAggregationController(self.registry, self._clock).settle()

    async def _prepare_pki(self) -> PKI:
        """Create the keys, or take over those that the servers of a shared database have."""
        secret, directory = self._options.key_secret, self._options.directory / "pki"
        if secret is not None:
            await self.registry.start()
            had_keys = has_authority(directory)
            if not await sharedkeys.take_over(self.registry, secret, directory):
                pki = await asyncio.to_thread(self._ensure_pki, self._clock.now())
                if await sharedkeys.publish(self.registry, secret, directory):
                    return pki
                if not had_keys:
                    await asyncio.to_thread(shutil.rmtree, directory)  # created above and not used yet
                await sharedkeys.take_over(self.registry, secret, directory)
        return await asyncio.to_thread(self._ensure_pki, self._clock.now())

    def _ensure_pki(self, now: datetime) -> PKI:
        options = self._options
        host = "" if options.host in _EVERY_ADDRESS else options.host
        names = [host, options.advertise_address, *options.tls.all_names]
        return ensure_pki(options.directory / "pki", now=now, names=names, common_name=options.name)

    async def run(self, on_started: Callable[[str], None], readiness: Mapping[str, Check] | None = None) -> None:
        """Serve until cancelled. `on_started` receives the URL once the kubeconfig is written."""
        assert self._pki is not None, "call prepare() first"
        pki, options = self._pki, self._options
        tokens = ServiceAccountTokens(pki.token_key)
        front_proxy = pki.front_proxy
        publisher = CAPublisher(
            self.registry,
            ca=options.tls.trust_in_objects(pki).read_bytes,
            clock=self._clock,
            front_proxy=FrontProxyTrust(front_proxy.ca_certificate.read_bytes, FRONT_PROXY_USER),
        )
        aggregator = Aggregator(self.registry, identity=front_proxy.read, clock=self._clock)

        def renewed() -> None:
            self._write_admin_kubeconfig()
            publisher.ca_changed()

        renewal = CertificateRenewal(pki, self._ensure_pki, renewed, self._clock, options.tls)
        app = self._app(tokens, aggregator, {"serving-certificate": renewal.check, **(readiness or {})})
        loops = self._loops(pki, tokens, renewal, publisher)
        loops.add("aggregation", aggregator.run)
        listening: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def started(host: str, port: int) -> None:
            address = "127.0.0.1" if host in _EVERY_ADDRESS else host
            listens_at = f"https://[{address}]:{port}" if ":" in address else f"https://{address}:{port}"
            self._url = options.tls.url or listens_at
            self._write_admin_kubeconfig()
            listening.set_result(port)
            on_started(self._url)

        async with asyncio.TaskGroup() as group:
            if options.is_published:
                loops.add("kubernetes-service", lambda: self._publish_service(listening))
            background = group.create_task(loops.run(), name="apiserver-loops")
            # Before that, requests of all users but administrators would wait for roles.
            await self.authorizer.wait_synced()
            try:
                await self._listen(
                    app if self._middleware is None else self._middleware(app),
                    host=options.host,
                    port=options.port,
                    tls=options.tls.present(pki),
                    on_started=started,
                    on_stopping=app.stop,
                )
            finally:
                background.cancel()
                await self._webhook_client.close()
                await aggregator.close()
                # Last, because it receives the events of the requests that end during shutdown.
                if self._auditor is not None:
                    await self._auditor.close()

    async def _publish_service(self, listening: asyncio.Future[int]) -> None:
        port = await asyncio.shield(listening)
        address = await asyncio.to_thread(advertised_address, self._options.host, self._options.advertise_address)
        identity = self._options.identity
        await KubernetesService(self.registry, address=address, port=port, clock=self._clock, identity=identity).run()

    def _write_admin_kubeconfig(self) -> None:
        if self._url and self._pki is not None:
            options = self._options
            write_kubeconfig(options.kubeconfig, self._pki, server=self._url, name=options.name, identity=options.tls)

    def _app(self, tokens: ServiceAccountTokens, aggregator: Aggregator, readiness: Mapping[str, Check]) -> App:
        authenticator = Authenticator(
            self.registry,
            clock=self._clock,
            service_account_tokens=tokens,
            token_file=self._tokens,
            oidc=self._oidc,
        )
        return App(
            self.registry,
            authenticator=authenticator,
            authorizer=self.authorizer,
            mounts=self._mounts,
            readiness=readiness,
            options=self._options.app,
            clock=self._clock,
            auditor=self._auditor,
            locate_pods=self._locate_pods,
            aggregator=aggregator,
            connectors=self._connectors,
            readers=self._readers,
        )

    def _loops(
        self, pki: PKI, tokens: ServiceAccountTokens, renewal: CertificateRenewal, publisher: CAPublisher
    ) -> Supervisor:
        authority = self._options.tls.trust_in_objects(pki)
        token_secrets = TokenController(self.registry, tokens, ca=authority.read_bytes, clock=self._clock)
        loops = Supervisor(self._clock)
        for name, loop in (
            ("store", self._store.run),
            ("registry", partial(self.registry.run, has_controllers=self._options.runs_controllers)),
            ("rbac", self.authorizer.run),
            ("rbac-aggregation", ClusterRoleAggregationController(self.registry, self._clock).run),
            ("token-secrets", token_secrets.run),
            ("ca-publisher", publisher.run),
            ("certificates", renewal.run),
        ):
            loops.add(name, loop)
        if self._oidc is not None:
            loops.add("oidc-keys", self._oidc.run)
        if self._auditor is not None:
            loops.add("audit", self._auditor.run)
        return loops
