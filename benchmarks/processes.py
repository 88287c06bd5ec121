"""Processes that benchmarks start and measure: members, control planes on one database, and the CPU and memory of each.

1 process     fedctl serve
2 processes   --role api, --role controllers
3 processes   --role api, --role api, --role controllers
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

ROLES: dict[int, tuple[str, ...]] = {
    1: ("all",),
    2: ("api", "controllers"),
    3: ("api", "api", "controllers"),
}
"""The roles of so many processes on one database."""


@contextlib.asynccontextmanager
async def process(
    *arguments: str, environment: Mapping[str, str] | None = None, is_module: bool = True
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a module of the environment, or a file, until the block ends."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *(("-m",) if is_module else ()),
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment,
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.send_signal(signal.SIGTERM)
            await child.wait()


async def read_until(child: asyncio.subprocess.Process, prefix: bytes) -> list[bytes]:
    assert child.stdout is not None
    lines = []
    while True:
        line = await child.stdout.readline()
        if not line:
            raise SystemExit(f"benchmark: a process ended before it was ready (exit code {await child.wait()})")
        lines.append(line)
        if line.startswith(prefix):
            return lines


class Sampler:
    """CPU seconds and peak resident memory of groups of processes; a process may be in several groups."""

    def __init__(self, processes: Mapping[str, list[psutil.Process]]) -> None:
        self._processes = processes
        self.rss_peak_mb = dict.fromkeys(processes, 0.0)

    async def run(self) -> None:
        while True:
            for name in self._processes:
                self.rss_peak_mb[name] = max(self.rss_peak_mb[name], self.rss_mb(name))
            await asyncio.sleep(0.2)

    def signal(self, name: str, number: int) -> None:
        for each in self._processes[name]:
            each.send_signal(number)

    def rss_mb(self, name: str) -> float:
        try:
            return sum(float(each.memory_info().rss) for each in self._processes[name]) / 1e6
        except psutil.NoSuchProcess as error:
            raise SystemExit(f"benchmark: a process of {name} has ended: {error}") from error

    def cpu_s(self, name: str) -> float:
        return sum(float(times.user + times.system) for times in (e.cpu_times() for e in self._processes[name]))


@dataclass(frozen=True, slots=True)
class Database:
    """An empty database, and the process of its server; without both the control plane uses its own SQLite file."""

    url: str = ""
    server: psutil.Process | None = None

    def cpu_s(self) -> float:
        """Return the CPU of the server's processes, those that have ended among them."""
        if self.server is None:
            return 0.0
        own = self.server.cpu_times()
        running = [each.cpu_times() for each in self.server.children(recursive=True)]
        ended = own.children_user + own.children_system
        return float(ended + sum(times.user + times.system for times in (own, *running)))


@contextlib.contextmanager
def database(kind: str) -> Iterator[Database]:
    """Run an empty, durable database: "sqlite" or "postgresql"."""
    if kind == "sqlite":
        yield Database()
        return
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the tests are not installed
    from tests.support.postgres import PostgresServer

    with PostgresServer(durable=True) as server:
        [running] = [each for each in psutil.Process().children() if each.name() == "postgres"]
        yield Database(server.create_database(), running)


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """One running `fedctl serve`."""

    role: str
    kubeconfig: Path
    process: psutil.Process

    @property
    def serves_clients(self) -> bool:
        return self.role != "controllers"


@contextlib.asynccontextmanager
async def control_planes(
    directory: Path, store: Database, count: int, profiles: Path | None = None
) -> AsyncIterator[list[ControlPlane]]:
    """Run so many `fedctl serve` on one database, each with its own directory, until the block ends.

    With `profiles` each writes its CPU profile into that folder when it ends.
    """
    environment = {**os.environ, "FEDERATION_STORE_URL": store.url}
    serve = ("federation.cli.entry", "serve", "--port", "0", "--log-level", "warning")
    async with contextlib.AsyncExitStack() as stack:
        running = []
        for number, role in enumerate(ROLES[count]):
            folder = directory / f"host-{number}"
            arguments = [*serve, "--role", role, "--dir", str(folder)]
            if profiles is not None:
                arguments += ["--profile-file", str(profiles / f"{folder.name}.collapsed")]
            child = await stack.enter_async_context(process(*arguments, environment=environment))
            await read_until(child, b"ready")
            running.append(ControlPlane(role, folder / "kubeconfig", psutil.Process(child.pid)))
        yield running


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add `--store`, `--processes` and `--profile`."""
    parser.add_argument(
        "--store", choices=("sqlite", "postgresql"), default="sqlite", help="the database of the control plane"
    )
    parser.add_argument("--processes", type=int, choices=tuple(ROLES), default=1, help="control planes on one database")
    parser.add_argument("--profile", type=Path, help="an existing folder for a CPU profile of each control plane")


def check_server_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the benchmark with a message if the options cannot go together."""
    if options.processes > 1 and options.store == "sqlite":
        parser.error("--processes: several processes need --store postgresql")
