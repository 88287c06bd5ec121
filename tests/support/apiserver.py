"""A real API server for tests: MemoryStore, registry, RBAC, journal and HTTPS on a free port, in a thread of its own.

`api_server(directory)` is a context manager; tests that share one server wrap it in a module fixture. The thread has its
own event loop (uvloop, as in production), so that tests may block, run kubectl, or use another loop.
"""

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from federation.admission.deviceselectors import selects
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.resources import Resource
from federation.apimachinery.webhookclient import WebhookClient
from federation.apiserver.aggregation.aggregator import Aggregator
from federation.apiserver.auth.authentication import Authenticator
from federation.apiserver.auth.bootstrappolicy import ensure_default_rbac
from federation.apiserver.auth.clusterroleaggregation import ClusterRoleAggregationController
from federation.apiserver.auth.kubeconfigfile import write_kubeconfig
from federation.apiserver.auth.oidc import OIDCAuthenticator, SigningKeys
from federation.apiserver.auth.oidcclaims import OIDCOptions
from federation.apiserver.auth.pki import FRONT_PROXY_USER, PKI, ensure_pki
from federation.apiserver.auth.rbac import RBACAuthorizer
from federation.apiserver.auth.serviceaccounttokens import ServiceAccountTokens
from federation.apiserver.auth.tokenfile import TokenFile
from federation.apiserver.http.app import App, AppOptions
from federation.apiserver.http.connectors import Connector
from federation.apiserver.http.readers import Reader
from federation.apiserver.http.serving import ServingOptions, serve
from federation.apiserver.registry.capublisher import CAPublisher, FrontProxyTrust
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.interface import Store
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import RegistryOptions
from federation.assembly import protect_federated_objects
from federation.features.catalogue import decision_chain, feature_screens
from federation.hosting.roles import HOST_RBAC, LISTED_BY_NAME, SECRETS_IN_OBJECTS
from federation.journal.memoryjournal import MemoryJournal
from federation.plans.planner import Planners
from federation.scheduling.framework.registry import load_plugins
from federation.web import application
from federation.web.clusterheadroom import HeadroomView
from federation.web.delivery import DeliveryView
from federation.web.objectlist import ObjectListView
from federation.web.policyobjects import PolicyView
from federation.web.ui import uiapp
from federation.web.ui.oidclogin import OIDCLogin
from federation.web.ui.oidcoptions import OIDCLoginOptions
from federation.web.view import View

T = TypeVar("T")
_START_S_MAX = 30.0
_plugins = functools.cache(functools.partial(load_plugins, selects=selects))


@dataclass
class Parts:
    """One server's objects; `server` is its URL."""

    registry: Registry
    app: App
    journal: MemoryJournal
    authenticator: Authenticator
    authorizer: RBACAuthorizer
    token_file: TokenFile
    pki: PKI
    aggregator: Aggregator
    publisher: CAPublisher
    kubeconfig: Path
    loop: asyncio.AbstractEventLoop
    connectors: dict[tuple[str, str, str, str], Connector]
    readers: dict[tuple[str, str, str], Reader]
    webhooks: WebhookClient
    server: str = ""

    def connect(self, resource: Resource, subresource: str, connector: Connector) -> None:
        """Answer a subresource by a connector."""
        self.connectors[resource.group, resource.version, resource.plural, subresource] = connector

    def read_from(self, resource: Resource, reader: Reader) -> None:
        """Answer reads of a kind by a reader."""
        self.readers[resource.group, resource.version, resource.plural] = reader

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the server's event loop and return its result. Call it from another thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(_START_S_MAX)


def build(
    directory: Path,
    store: Store,
    *,
    options: AppOptions | None = None,
    registry_options: RegistryOptions | None = None,
    registry: Registry | None = None,
    view: DeliveryView | None = None,
    policies: PolicyView | None = None,
    listed: ObjectListView | None = None,
    headroom: HeadroomView | None = None,
    views: Sequence[View] = (),
    connectors: dict[tuple[str, str, str, str], Connector] | None = None,
    oidc: OIDCOptions | None = None,
    client_secret: str = "",
    journal: MemoryJournal | None = None,
) -> Parts:
    """Build a server without starting it, over a given registry or its own. Call it in a running event loop.

    With a `view` it also serves the delivery of objects, with `policies` the objects of policies, with
    `listed` the list of objects, with `headroom` the capacity, with `views` more. The web UI is always there.
    With `oidc` it accepts ID tokens, and the UI lets users log in at the issuer.
    """
    clock = SystemClock()
    pki = ensure_pki(directory / "pki", now=datetime.now(UTC))
    registry = registry or Registry(store, clock=clock, options=registry_options or RegistryOptions())
    protect_federated_objects(registry, clock)
    token_file = TokenFile(directory / "tokens.json")
    tokens = ServiceAccountTokens(pki.token_key)
    webhooks = WebhookClient()
    issued = login = None
    if oidc is not None:
        issued = OIDCAuthenticator(oidc, SigningKeys(oidc, webhooks, clock), clock)
        login_options = OIDCLoginOptions(oidc.issuer_url, oidc.client_id, client_secret, ca_file=oidc.ca_file)
        login = OIDCLogin(login_options, webhooks)
    authenticator = Authenticator(
        registry, clock=clock, service_account_tokens=tokens, token_file=token_file, oidc=issued
    )
    authorizer = RBACAuthorizer(registry, clock=clock, implied=HOST_RBAC.implied)
    planners = Planners(_plugins(), decision_chain(), None, clock)
    journal = journal if journal is not None else MemoryJournal()
    mounts = {
        "federation": application.mount(
            journal, registry.kinds, decision_chain().kinds, view, policies, listed, headroom, views
        ),
        "ui": uiapp.mount(pki.token_key.read_bytes, clock, planners, login, feature_screens()),
    }
    aggregator = Aggregator(registry, identity=pki.front_proxy.read, clock=clock)
    trust = FrontProxyTrust(pki.front_proxy.ca_certificate.read_bytes, FRONT_PROXY_USER)
    publisher = CAPublisher(registry, ca=pki.ca_certificate.read_bytes, clock=clock, front_proxy=trust)
    connected, readers = connectors if connectors is not None else {}, dict[tuple[str, str, str], Reader]()
    app = App(
        registry,
        authenticator=authenticator,
        authorizer=authorizer,
        mounts=mounts,
        options=options or AppOptions(listed_by_name=LISTED_BY_NAME, contents=SECRETS_IN_OBJECTS),
        aggregator=aggregator,
        connectors=connected,
        readers=readers,
    )
    return Parts(
        registry,
        app,
        journal,
        authenticator,
        authorizer,
        token_file,
        pki,
        aggregator,
        publisher,
        directory / "kubeconfig",
        asyncio.get_running_loop(),
        connected,
        readers,
        webhooks,
    )


async def calm(store: Store) -> None:
    """Return when the background loops have stopped writing."""
    quiet, seen = 0, -1
    while quiet < 50:
        revision = await store.revision()
        quiet, seen = (quiet + 1, seen) if revision == seen else (0, revision)
        await asyncio.sleep(0)


async def _serve(
    directory: Path,
    store: Store,
    stop: asyncio.Event,
    on_ready: Callable[[Parts], None],
    serving_options: ServingOptions,
    **arguments: Any,
) -> None:
    parts = build(directory, store, **arguments)

    def started(host: str, port: int) -> None:
        parts.server = f"https://{host}:{port}"
        write_kubeconfig(parts.kubeconfig, parts.pki, server=parts.server)
        on_ready(parts)

    background = [asyncio.create_task(store.run())]
    await store.ready()
    await parts.registry.start()
    await ensure_default_rbac(parts.registry, HOST_RBAC)
    aggregation = ClusterRoleAggregationController(parts.registry, SystemClock())
    loops = (parts.registry.run, parts.authorizer.run, aggregation.run, parts.aggregator.run, parts.publisher.run)
    background += [asyncio.create_task(run()) for run in loops]
    await parts.authorizer.wait_synced()
    serving = asyncio.create_task(
        serve(
            parts.app,
            host="127.0.0.1",
            port=0,
            tls=parts.pki.serving,
            on_started=started,
            on_stopping=parts.app.stop,
            options=serving_options,
        )
    )
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([serving, stopping, *background], return_when=asyncio.FIRST_COMPLETED)
    for task in (serving, stopping, *background):
        task.cancel()
    results = await asyncio.gather(serving, *background, return_exceptions=True)
    await parts.aggregator.close()
    await store.close()
    for result in results:
        if isinstance(result, Exception):
            raise result


@contextmanager
def api_server(
    directory: Path,
    *,
    store: Callable[[], Store] = MemoryStore,
    options: AppOptions | None = None,
    registry_options: RegistryOptions | None = None,
    serving: ServingOptions | None = None,
    connectors: dict[tuple[str, str, str, str], Connector] | None = None,
) -> Iterator[Parts]:
    """Run a server while the context is open. Errors of its thread are raised here."""
    ready = threading.Event()
    held: dict[str, Any] = {}

    def on_ready(parts: Parts) -> None:
        held["parts"] = parts
        ready.set()

    async def main() -> None:
        held["stop"] = stop = asyncio.Event()
        held["loop"] = asyncio.get_running_loop()
        limits = serving or ServingOptions(graceful_stop_s=1)
        arguments = {"options": options, "registry_options": registry_options, "connectors": connectors}
        await _serve(directory, store(), stop, on_ready, limits, **arguments)

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(main())
        except BaseException as error:  # noqa: BLE001  # raised in the waiting thread
            held["error"] = error
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="api-server", daemon=True)
    thread.start()
    ready.wait(_START_S_MAX)
    try:
        if "parts" not in held:
            raise held.get("error") or TimeoutError("the API server did not start")
        yield held["parts"]
    finally:
        if thread.is_alive():
            held["loop"].call_soon_threadsafe(held["stop"].set)
            thread.join(_START_S_MAX)
        if "parts" in held and "error" in held:
            raise held["error"]
