"""WorkloadSpreads and UnitedDeployments of one cluster, for `fedctl spread-webhook` and `fedctl serve`.

Several processes may serve one URL: they share the serving certificate (`hosting/sharedcertificate.py`), and the
webhook configurations are the same for all. A process restores them when they are gone. SIGINT and SIGTERM remove them
unless another process answers at the URL; a process with another URL that has taken over keeps its own.
"""

import asyncio
import base64
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import structlog
import typer

from federation.apimachinery import logs
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError, FederationError
from federation.apimachinery.resources import Object
from federation.apimachinery.webhookclient import WebhookClient
from federation.apiserver.http.serving import serve as serve_https
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.client.client import Client
from federation.features.uniteddeployment.unitedservice import UnitedDeploymentService
from federation.features.workloadspread.incluster import configurations, webhook
from federation.features.workloadspread.incluster.service import SpreadService
from federation.hosting.sharedcertificate import SharedCertificate, delete_certificate
from federation.terminal import flags
from federation.terminal.execution import execute, until_signal
from federation.terminal.kubeconfigcontext import KubeconfigContext

_SYNC_S = 60.0
"""How long the first lists of the cluster may take."""
_END_S = 10.0
"""How long the removal of the webhooks may take."""
_PROBE_S = 2.0
"""How long another process at the URL may take to answer."""
_CHECK_S = 10.0
"""Interval of the checks of certificate and webhooks."""
_log = structlog.get_logger(__name__)
OnReady = Callable[[str], None]
"""Called with the URL when the webhooks are installed."""


def spread_webhook_command(
    member_kubeconfig: Annotated[
        Path,
        typer.Option("--kubeconfig", metavar="FILE", help="Kubeconfig of an administrator of the cluster."),
    ],
    member_context: Annotated[
        str, typer.Option("--context", metavar="NAME", help="Context in the cluster's kubeconfig.")
    ] = "",
    bind: Annotated[
        str, typer.Option("--bind", metavar="ADDRESS:PORT", help="Where to listen; port 0 picks a free one.")
    ] = "127.0.0.1:0",
    url: Annotated[
        str,
        typer.Option("--url", metavar="URL", help="https URL at which the cluster's API server reaches this process."),
    ] = "",
    uninstall: Annotated[
        bool, typer.Option("--uninstall", help="Remove what an earlier run left in the cluster, and exit.")
    ] = False,
    log_format: flags.LogFormat = "text",
    log_level: flags.LogLevel = "info",
) -> None:
    """Spread the pods of one cluster by WorkloadSpreads.

    Adds the kind WorkloadSpread to the cluster and answers its admission webhooks until Ctrl-C, which removes the
    webhooks. The cluster works without this process: its API server ignores webhooks that do not answer.

    \b
    fedctl spread-webhook --kubeconfig FILE --bind 0.0.0.0:9443 --url https://10.0.0.5:9443
    fedctl spread-webhook --kubeconfig FILE --uninstall
    """  # noqa: D301  # the backspace keeps lines apart in the help
    cluster = KubeconfigContext(member_kubeconfig, member_context)
    if uninstall:
        execute(remove_webhooks(cluster))
        return
    logs.configure(log_format, log_level)
    execute(serve(cluster, parse_addresses(bind, url)))


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the process listens, and the URL of that; "" for the address and port of the listener."""

    host: str
    port: int
    url: str


def parse_addresses(bind: str, url: str) -> Addresses:
    """Return the parsed options; ConfigurationError says what is wrong."""
    host, separator, port = bind.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not host or not port.isdecimal():
        raise ConfigurationError(f"--bind {bind!r}: write ADDRESS:PORT, for example 0.0.0.0:9443")
    parts = urlsplit(url)
    if url and (parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment):
        raise ConfigurationError(f"--url {url!r}: write https://ADDRESS:PORT, as the API server of the cluster sees it")
    if not url and host in ("0.0.0.0", "::"):  # noqa: S104  # compared, not bound
        raise ConfigurationError("give --url: the API server of the cluster needs one address of this process")
    return Addresses(host, int(port), url.rstrip("/"))


def parse_mount(text: str) -> tuple[KubeconfigContext, Addresses]:
    """Return the parsed FILE=ADDRESS:PORT[=URL] of `fedctl serve`; ConfigurationError says what is wrong."""
    file, _, rest = text.partition("=")
    bind, _, url = rest.partition("=")
    if not file or not bind:
        raise ConfigurationError(f"--spread-webhook {text!r}: write FILE=ADDRESS:PORT, or FILE=ADDRESS:PORT=URL")
    return KubeconfigContext(Path(file), ""), parse_addresses(bind, url)


async def serve(cluster: KubeconfigContext, addresses: Addresses) -> int:
    """Run the service until a signal; return the exit code."""
    return await until_signal(run(cluster, addresses, lambda url: print(f"ready {url}", flush=True)))


async def remove_webhooks(cluster: KubeconfigContext) -> int:
    """Remove the webhook configurations, the certificate, and the definition if there are no WorkloadSpreads."""
    async with cluster.client() as client:
        await configurations.uninstall_webhooks(client)
        await delete_certificate(client)
        kept = await configurations.uninstall_definitions(client)
    for line in kept or ["the webhooks and the definition are removed"]:
        print(line)
    return 0


async def run(cluster: KubeconfigContext, addresses: Addresses, on_ready: OnReady) -> None:
    """Run the service of a cluster until cancelled; ApiError, ClusterError, ConfigurationError when it cannot start."""
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="spread-webhook-") as folder:
        async with cluster.client() as client, asyncio.TaskGroup() as group:
            name = urlsplit(addresses.url).hostname or addresses.host
            certificate = SharedCertificate(client, Path(folder), name, clock)
            await certificate.refresh()
            await configurations.install_definitions(client)
            service = SpreadService(client, clock=clock, cluster="member")
            uniteds = UnitedDeploymentService(client, patch_pod=patch_pod, clock=clock, cluster="member")
            background = [group.create_task(run()) for run in (service.run, uniteds.run)]
            try:
                await _wait_synced(service)
                await _answer(client, service, certificate, addresses, on_ready)
            finally:
                for task in background:
                    task.cancel()


async def _wait_synced(service: SpreadService) -> None:
    try:
        async with asyncio.timeout(_SYNC_S):
            await service.wait_synced()
    except TimeoutError as error:
        raise FederationError(f"the cluster did not list its objects within {_SYNC_S:g} s") from error


async def _answer(
    client: Client, service: SpreadService, certificate: SharedCertificate, addresses: Addresses, on_ready: OnReady
) -> None:
    """Serve the webhooks, and have them installed in the cluster while they are served."""
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def started(host: str, port: int) -> None:
        address = f"[{host}]" if ":" in host else host
        listening.set_result(addresses.url or f"https://{address}:{port}")

    async with asyncio.TaskGroup() as group:
        serving = group.create_task(
            serve_https(
                webhook.to_app(service.reviews, configurations.PATHS),
                host=addresses.host,
                port=addresses.port,
                tls=certificate.files,
                on_started=started,
            )
        )
        url = await listening
        try:
            await configurations.install_webhooks(client, _to_client_config(url, certificate.bundle))
            on_ready(url)
            await _keep_installed(client, certificate, url)
        finally:
            serving.cancel()
            # Shielded: a second signal must not leave webhooks without a server, which would slow the cluster down.
            await asyncio.shield(_end(client, serving, url, certificate.bundle))


async def _keep_installed(client: Client, certificate: SharedCertificate, url: str) -> None:
    """Renew the certificate, and restore webhooks and definitions that others removed or changed, until cancelled."""
    known: list[str] = []
    while True:
        await asyncio.sleep(_CHECK_S)
        try:
            await certificate.refresh()
            await configurations.restore_webhooks(client, _to_client_config(url, certificate.bundle))
            problems = await configurations.restore_definitions(client)
            if problems and problems != known:
                _log.warning("a definition removes fields", problems=problems)
            known = problems
        except (ApiError, ClusterError, ConfigurationError) as error:
            _log.warning("webhooks and definitions could not be checked", error=str(error))


async def _end(client: Client, serving: "asyncio.Task[None]", url: str, bundle: str) -> None:
    """Stop listening; then remove the webhooks unless another process answers at the URL."""
    await asyncio.wait((serving,))
    if await _is_served(url, bundle):
        return
    try:
        async with asyncio.timeout(_END_S):
            await configurations.uninstall_webhooks(client, _to_client_config(url, bundle))
    except (ApiError, ClusterError, TimeoutError) as error:
        _log.warning("webhooks remain in the cluster, which ignores them; see --uninstall", error=str(error))


async def _is_served(url: str, bundle: str) -> bool:
    """Return True if a process with the shared certificate answers at the URL."""
    probe = WebhookClient()
    try:
        connection = Connection(f"{url}/healthz", ca_data=base64.b64decode(bundle))
        return (await probe.get(connection, {}, timeout_s=_PROBE_S)).status == 200
    finally:
        await probe.close()


def _to_client_config(url: str, bundle: str) -> Callable[[str], Object]:
    return lambda path: {"url": url + path, "caBundle": bundle}
