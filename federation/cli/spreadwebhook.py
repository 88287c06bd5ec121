"""`fedctl spread-webhook`: WorkloadSpreads and UnitedDeployments of one cluster, in the foreground.

A line that starts with `ready` goes to standard output when the webhooks are installed. The serving certificate comes
from a CA of this process, whose keys are in a temporary folder: the webhook configurations carry the CA and are written
at every start. SIGINT and SIGTERM remove them; another process that has taken over keeps its own.
"""

import asyncio
import base64
import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import structlog

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError, FederationError
from federation.apimachinery.resources import Object
from federation.apiserver.auth.pki import Authority, TLSFiles, is_due, load_certificate
from federation.apiserver.http.serving import serve as serve_https
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.cli.execution import until_signal
from federation.cli.terminal.kubeconfigcontext import KubeconfigContext
from federation.client.client import Client
from federation.controllers.uniteddeployment.unitedservice import UnitedDeploymentService
from federation.spread import configurations, webhook
from federation.spread.service import SpreadService

_SYNC_S = 60.0
"""How long the first lists of the cluster may take."""
_END_S = 10.0
"""How long the removal of the webhooks may take."""
_RENEWAL_CHECK_S = 3600.0
_log = structlog.get_logger(__name__)


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


async def serve(cluster: KubeconfigContext, addresses: Addresses) -> int:
    """Run the service until a signal; return the exit code."""
    return await until_signal(_serve(cluster, addresses))


async def uninstall(cluster: KubeconfigContext) -> int:
    """Remove the webhook configurations, and the definition if there are no WorkloadSpreads."""
    async with cluster.client() as client:
        await configurations.uninstall_webhooks(client)
        kept = await configurations.uninstall_definitions(client)
    for line in kept or ["the webhooks and the definition are removed"]:
        print(line)
    return 0


async def _serve(cluster: KubeconfigContext, addresses: Addresses) -> None:
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="spread-webhook-") as folder:
        async with cluster.client() as client, asyncio.TaskGroup() as group:
            certificate = _Certificate(Path(folder), urlsplit(addresses.url).hostname or addresses.host, clock)
            await configurations.install_definitions(client)
            service = SpreadService(client, clock=clock, cluster="member")
            uniteds = UnitedDeploymentService(client, patch_pod=patch_pod, clock=clock, cluster="member")
            background = [group.create_task(run()) for run in (service.run, uniteds.run, certificate.renew)]
            try:
                await _wait_synced(service)
                await _answer(client, service, certificate, addresses)
            finally:
                for task in background:
                    task.cancel()


async def _wait_synced(service: SpreadService) -> None:
    try:
        async with asyncio.timeout(_SYNC_S):
            await service.wait_synced()
    except TimeoutError as error:
        raise FederationError(f"the cluster did not list its objects within {_SYNC_S:g} s") from error


async def _answer(client: Client, service: SpreadService, certificate: "_Certificate", addresses: Addresses) -> None:
    """Serve the webhooks, and have them installed in the cluster while they are served."""
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def started(host: str, port: int) -> None:
        address = f"[{host}]" if ":" in host else host
        listening.set_result(addresses.url or f"https://{address}:{port}")

    async with asyncio.TaskGroup() as group:
        group.create_task(
            serve_https(
                webhook.to_app(service.reviews, configurations.PATHS),
                host=addresses.host,
                port=addresses.port,
                tls=certificate.files,
                on_started=started,
            )
        )
        url = await listening
        client_config = _to_client_config(url, certificate.bundle)
        try:
            await configurations.install_webhooks(client, client_config)
            print(f"ready {url}", flush=True)
            await asyncio.get_running_loop().create_future()
        finally:
            # Shielded: a second signal must not leave webhooks without a server, which would slow the cluster down.
            await asyncio.shield(_remove_webhooks(client, client_config))


async def _remove_webhooks(client: Client, client_config: Callable[[str], Object]) -> None:
    try:
        async with asyncio.timeout(_END_S):
            await configurations.uninstall_webhooks(client, client_config)
    except (ApiError, ClusterError, TimeoutError) as error:
        _log.warning("webhooks remain in the cluster, which ignores them; see --uninstall", error=str(error))


def _to_client_config(url: str, bundle: str) -> Callable[[str], Object]:
    return lambda path: {"url": url + path, "caBundle": bundle}


class _Certificate:
    """The serving certificate of one name and its CA, as files in a folder."""

    def __init__(self, folder: Path, name: str, clock: Clock) -> None:
        self._authority = Authority.ensure(folder, now=clock.now(), common_name="workloadspread")
        self._name = name
        self._clock = clock
        self.files = TLSFiles(folder / "server.crt", folder / "server.key")
        self.bundle = base64.b64encode(self._authority.certificate_path.read_bytes()).decode()
        self._issue()

    def _issue(self) -> None:
        certificate, key = self.files.certificate, self.files.key
        self._authority.issue_server(certificate, key, names=[self._name], now=self._clock.now())

    async def renew(self) -> None:
        """Replace the certificate before it expires, until cancelled; the listener reads the new file."""
        while True:
            await self._clock.sleep(_RENEWAL_CHECK_S)
            if is_due(await asyncio.to_thread(load_certificate, self.files.certificate), self._clock.now()):
                with contextlib.suppress(OSError):
                    await asyncio.to_thread(self._issue)
