"""`fedctl up` and `fedctl serve`: run a control plane in the foreground, with or without simulated members.

A line that starts with `ready` goes to standard output when the API serves and, for `up`, when all members are Ready.
Everything else is logged to standard error. SIGINT and SIGTERM cause an orderly shutdown with exit code 0. The members
run in a separate process, which ends with this one even after kill -9 (`simulator/fleetprocess.py`).
"""

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import structlog

from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ConfigurationError, FederationError
from federation.apimachinery.filelimit import file_limit_problem, files_needed, raise_file_limit
from federation.apimachinery.tasks import Supervisor
from federation.assembly import ControlPlane
from federation.cli import joining
from federation.cli.joining import JoinRequest
from federation.cli.statedirectory import StateDirectory
from federation.client.client import Client
from federation.client.kubeconfig import load_kubeconfig
from federation.settings import Settings
from federation.terminal.execution import until_signal
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.progress import Progress

if TYPE_CHECKING:
    from federation.cli.spreadwebhook import Addresses
    from federation.existinghost import ExistingHost
    from federation.simulator.fleetprocess import FleetProcess

    Mount = tuple[KubeconfigContext, Addresses]

_READY_S = 120.0
"""Patience with simulated members; a dozen of them on a busy machine take a minute."""
_READY_LIGHT_S = 1.0
"""More patience for each light member."""
_PROCESSES_MAX = 100
"""Members with a process each: 100 of them take about 10 GB."""
_JOINS_MAX = 8
"""Members that join at the same time: light ones share one core, and each step of a join has a deadline."""
_ATTEMPTS = 8
"""To join a member: on a busy machine the members' process can miss a deadline."""
_PODS_PER_NODE = 5000
"""The capacity of a member's node: people try out large workloads."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """The simulated members of `fedctl up`."""

    members: int
    pod_start_s: float
    """Time from a pod's binding to Running."""
    is_light: bool = False
    """Whether all members share one process and one port, and keep nothing."""
    has_workload_spreads: bool = False
    """Whether the members serve WorkloadSpreads and UnitedDeployments."""
    devices: int = 0
    """GPUs of each node, with ResourceSlices."""
    has_progress: bool = True
    """Whether a slow start is reported on standard error, in plain text. Programs that read logs have no use for it."""


async def serve(settings: Settings, spread_webhooks: Sequence[str] = (), profile: Path | None = None) -> int:
    """Run a control plane until a signal, and the WorkloadSpread service of some clusters; return the exit code.

    With a `profile`, write a CPU profile of the process to that file.
    """
    if problem := file_limit_problem(raise_file_limit(), files_needed(0)):
        _log.warning("too few open files", problem=problem, remedy="raise LimitNOFILE or ulimit -n")
    work = _serve(settings, _to_mounts(spread_webhooks))
    if profile is not None:
        from federation.cli import profiling

        work = profiling.profiled(work, profile)
    return await until_signal(work)


def _to_mounts(texts: Sequence[str]) -> "list[Mount]":
    if not texts:
        return []
    from federation.cli import spreadwebhook

    return [spreadwebhook.parse_mount(text) for text in texts]


def fork_members(directory: Path, fleet: FleetOptions) -> "FleetProcess":
    """Fork the process of the members, before any event loop runs; ConfigurationError for an impossible fleet."""
    from federation.simulator.fleetprocess import fork_fleet
    from federation.simulator.options import describe_members

    _check_fleet(fleet, directory / "members")
    raise_file_limit()  # the members inherit it
    members = describe_members(
        fleet.members,
        pod_start_s=fleet.pod_start_s,
        pods_per_node=_PODS_PER_NODE,
        has_workload_spreads=fleet.has_workload_spreads,
        trusts_federation=True,
        devices=fleet.devices,
    )
    return fork_fleet(members, directory / "members", is_light=fleet.is_light)


async def up(settings: Settings, fleet: FleetOptions, process: "FleetProcess") -> int:
    """Run a control plane and simulated members until a signal; return the exit code."""
    return await until_signal(_up(settings, fleet, process))


async def _serve(settings: Settings, mounts: "Sequence[Mount]") -> None:
    if settings.has_existing_host:
        async with _running(settings, _on_existing_host) as (host, url, task), _spreading(mounts):
            pages = f", web UI {host.ui_url}" if host.ui_url else ""
            print(f"ready {url} for the host {host.server}{pages}", flush=True)
            await task
        return
    async with _running(settings, _embedded) as (plane, url, task), _spreading(mounts):
        if not plane.encrypts:
            _log.warning(
                "Secrets are stored as plain text; create a key with `fedctl encryption-key FILE` and give it as "
                "--encryption-key-file"
            )
        _announce(url, plane.kubeconfig, "")
        await task


async def _up(settings: Settings, fleet: FleetOptions, process: "FleetProcess") -> None:
    async with _running(settings, _embedded) as (plane, url, task), _ending(process):
        await _join_fleet(plane.client, process, fleet)
        _announce(url, plane.kubeconfig, f" with {to_count(fleet.members, 'simulated member')}")
        died = asyncio.ensure_future(process.wait())
        await asyncio.wait((task, died), return_when=asyncio.FIRST_COMPLETED)
        if died.done():
            raise FederationError(
                f"the simulated members' process ended (exit code {died.result()}); see the log above"
            )
        died.cancel()
        task.result()


def _check_fleet(fleet: FleetOptions, members: Path) -> None:
    """Raise ConfigurationError for a fleet that cannot run in this directory."""
    if fleet.members > _PROCESSES_MAX and not fleet.is_light:
        raise ConfigurationError(
            f"--members {fleet.members}: at most {_PROCESSES_MAX} members can have a process each; add --light"
        )
    if fleet.is_light and members.exists():
        raise ConfigurationError(
            f"--light: {members.parent} holds an earlier fleet, and light members keep nothing;"
            " give another --dir, or delete that directory"
        )


class _Plane(Protocol):
    """A control plane that runs until cancelled."""

    async def run(self, on_started: Callable[[str], Any]) -> None:
        """Serve and reconcile; `on_started` gets the URL."""
        ...


_P = TypeVar("_P", bound=_Plane)


async def _embedded(settings: Settings) -> ControlPlane:
    return ControlPlane(settings, SystemClock())


async def _on_existing_host(settings: Settings) -> "ExistingHost":
    from federation import existinghost  # an embedded host would wait for what it imports

    client = await existinghost.connect(settings)
    try:
        return existinghost.ExistingHost(settings, client, SystemClock())
    except BaseException:
        await client.close()
        raise


@contextlib.asynccontextmanager
async def _running(
    settings: Settings, make: Callable[[Settings], Awaitable[_P]]
) -> AsyncIterator[tuple[_P, str, asyncio.Task[None]]]:
    """Run a control plane as a task while the caller's block runs; the block starts when the API serves."""
    directory = StateDirectory.open(settings.directory)
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    try:
        plane = await make(settings)
    except BaseException:
        directory.close()
        raise
    task = asyncio.create_task(plane.run(started.set_result), name="control-plane")
    try:
        await asyncio.wait((started, task), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        _log.info("control plane serves", url=started.result(), directory=str(directory.path))
        yield plane, started.result(), task
    finally:
        task.cancel()
        await asyncio.wait((task,))
        directory.close()
        if started.done():
            _log.info("control plane stopped")


@contextlib.asynccontextmanager
async def _spreading(mounts: "Sequence[Mount]") -> AsyncIterator[None]:
    """Run the WorkloadSpread service of each cluster during the block; one that does not answer is tried again."""
    if not mounts:
        yield
        return
    from federation.cli import spreadwebhook

    loops = Supervisor()
    for cluster, addresses in mounts:
        name = str(cluster.path)

        def on_ready(url: str, name: str = name) -> None:
            _log.info("pods are spread", kubeconfig=name, url=url)

        loops.add(f"spread-webhook {name}", partial(spreadwebhook.run, cluster, addresses, on_ready))
    running = asyncio.create_task(loops.run(), name="spread-webhooks")
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait((running,))


@contextlib.asynccontextmanager
async def _ending(process: "FleetProcess") -> AsyncIterator[None]:
    """End the members after the block."""
    try:
        yield
    finally:
        process.end()
        try:
            async with asyncio.timeout(10):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _join_fleet(host: Client, process: "FleetProcess", fleet: FleetOptions) -> None:
    """Start the members and join each as soon as it serves: their process and this one work at the same time."""
    places = asyncio.Semaphore(_JOINS_MAX)
    started = joined = 0

    def report() -> None:
        if fleet.has_progress:
            progress.report(f"{joined:,} of {to_count(fleet.members, 'simulated member')} joined, {started:,} started")

    async def join(member: Mapping[str, Any]) -> None:
        nonlocal joined
        await _join(host, member, places)
        joined += 1
        report()

    with Progress() as progress:
        async with asyncio.TaskGroup() as group:
            async with asyncio.timeout(_READY_S + (_READY_LIGHT_S * fleet.members if fleet.is_light else 0)):
                async for member in process.start():
                    started += 1
                    report()
                    group.create_task(join(member))


async def _join(host: Client, member: Mapping[str, Any], places: asyncio.Semaphore) -> None:
    name, labels = str(member["name"]), member["labels"]
    connection = load_kubeconfig(Path(str(member["kubeconfig"])), "")
    async with places:
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                await joining.ensure_joined(host, JoinRequest(name, connection, labels))
                await joining.wait_ready(host, name, SystemClock(), _READY_S)
            except FederationError as error:
                if not attempts_left:
                    raise
                _log.warning("member did not join yet", member=name, attempts_left=attempts_left, reason=str(error))
            else:
                return


def _announce(url: str, kubeconfig: Path, what: str) -> None:
    print(f"ready {url}{what}; export KUBECONFIG={shlex.quote(str(kubeconfig))}", flush=True)
