"""One whole API server: store, registry, authentication, authorization, app and listener, put together once.

The host of a federation and every simulated member are this same thing with other directories and ports. It owns the
order of starting (keys, store, built-in objects, loops, listener) and of stopping. What is served besides, and who
calls it, is `assembly`'s or the simulator's matter.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from federation.api.resources import Object
from federation.base.clock import Clock
from federation.base.tasks import Supervisor
from federation.client.outcalls import Outcalls
from federation.client.webhook import HTTPWebhookCaller
from federation.registry.admission.webhooks import WebhookCaller
from federation.registry.options import RegistryOptions
from federation.registry.registry import Registry
from federation.server.aggregation import AggregationController
from federation.server.app import AppOptions, create_app
from federation.server.audit.log import AuditLog
from federation.server.audit.options import AuditOptions
from federation.server.audit.policy import load
from federation.server.audit.trail import Auditor
from federation.server.authn import Authenticator
from federation.server.authz import RBACAuthorizer
from federation.server.bootstrap import ensure_default_rbac
from federation.server.health import Check
from federation.server.kubeconfig import write_kubeconfig
from federation.server.oidc import OIDCAuthenticator, SigningKeys
from federation.server.oidcclaims import OIDCOptions
from federation.server.pki import PKI, ensure_pki
from federation.server.serving import serve
from federation.server.tokencontroller import TokenController
from federation.server.tokens import ServiceAccountTokens, TokenFile
from federation.store.interface import Store
from federation.store.journal import Journal


@dataclass(frozen=True, slots=True)
class APIServerOptions:
    """Where one API server listens and keeps its keys."""

    directory: Path
    """PKI and token files live in `directory/pki`."""
    kubeconfig: Path
    """The administrator's kubeconfig, written when the port is known."""
    name: str = "federation"
    """Name of cluster and context in the kubeconfig, and of the CA."""
    host: str = "127.0.0.1"
    port: int = 0
    registry: RegistryOptions = field(default_factory=RegistryOptions)
    app: AppOptions = field(default_factory=AppOptions)
    oidc: OIDCOptions | None = None
    """The issuer whose ID tokens are accepted, if any."""
    audit: AuditOptions | None = None
    """What is recorded of requests, if anything."""


class APIServer:
    """A Kubernetes API over `store`; `prepare` makes it ready for in-process use, `run` serves until cancelled."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        *,
        options: APIServerOptions,
        clock: Clock,
        webhooks: WebhookCaller | None = None,
    ) -> None:
        self._store = store
        self._journal = journal
        self._options = options
        self._clock = clock
        self._pki: PKI | None = None
        self._auditor: Auditor | None = None
        if options.audit is not None:
            self._auditor = Auditor(
                load(options.audit.policy_file), AuditLog(options.audit, clock), options.audit, clock
            )
        self._outcalls = Outcalls()
        self._oidc: OIDCAuthenticator | None = None
        if options.oidc is not None:
            keys = SigningKeys(options.oidc, self._outcalls, clock)
            self._oidc = OIDCAuthenticator(options.oidc, keys, clock)
        self.registry = Registry(store, clock=clock, options=options.registry, webhooks=webhooks or HTTPWebhookCaller())
        self.authorizer = RBACAuthorizer(self.registry, clock=clock)

    async def prepare(self, crds: Sequence[Object] = ()) -> None:
        """Make keys, open the store, install kinds and default roles; ConfigurationError names what is unusable."""
        options = self._options
        self._pki = await asyncio.to_thread(
            ensure_pki,
            options.directory / "pki",
            now=self._clock.now(),
            names=[options.host],
            common_name=options.name,
        )
        await self._store.ready()
        await self.registry.install_crds(crds)
        await ensure_default_rbac(self.registry)

    async def run(self, on_started: Callable[[str], None], readiness: Mapping[str, Check] | None = None) -> None:
        """Serve until cancelled; `on_started` gets the URL after the kubeconfig was written."""
        assert self._pki is not None, "prepare() comes first"
        pki, options = self._pki, self._options
        tokens = ServiceAccountTokens(pki.token_key)
        token_secrets = TokenController(self.registry, tokens, ca=pki.ca_certificate.read_bytes, clock=self._clock)
        authenticator = Authenticator(
            self.registry,
            clock=self._clock,
            service_account_tokens=tokens,
            token_file=TokenFile(options.directory / "pki" / "tokens.json"),
            oidc=self._oidc,
        )
        app = create_app(
            self.registry,
            authenticator=authenticator,
            authorizer=self.authorizer,
            journal=self._journal,
            readiness=readiness,
            options=options.app,
            clock=self._clock,
            auditor=self._auditor,
        )

        def started(host: str, port: int) -> None:
            address = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104  # compared, not bound
            url = f"https://[{address}]:{port}" if ":" in address else f"https://{address}:{port}"
            write_kubeconfig(options.kubeconfig, pki, server=url, name=options.name)
            on_started(url)

        loops = Supervisor(self._clock)
        for name, loop in (
            ("store", self._store.run),
            ("registry", self.registry.run),
            ("rbac", self.authorizer.run),
            ("rbac-aggregation", AggregationController(self.registry, self._clock).run),
            ("token-secrets", token_secrets.run),
        ):
            loops.add(name, loop)
        if self._oidc is not None:
            loops.add("oidc-keys", self._oidc.run)
        if self._auditor is not None:
            loops.add("audit", self._auditor.run)
        async with asyncio.TaskGroup() as group:
            background = group.create_task(loops.run(), name="apiserver-loops")
            await self.authorizer.wait_synced()
            try:
                await serve(
                    app, host=options.host, port=options.port, tls=pki.serving, on_started=started, on_stopping=app.stop
                )
            finally:
                background.cancel()
                await self._outcalls.close()
                if self._auditor is not None:
                    await self._auditor.close()
