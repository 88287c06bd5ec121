"""The process of one simulated member, forked from the fleet's, so that failures are those of a real host.

`fork_member` starts one and returns a `MemberProcess`, the fleet's handle: SIGKILL ends the process without a goodbye,
SIGSTOP makes it accept connections and never answer. Fleet and member are connected by a socket pair. The member sends
one line when it serves (`{"url": …}`) or cannot (`{"error": …}`), the fleet sends `{"latencyS": …, "errorShare": …}`,
and either side sees at once when the other one ends. A fork shares the loaded modules: it takes milliseconds and few
megabytes. Failures to simulate are chosen in `failingmember.py`; the member itself is in `member.py`.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import uvloop

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ConfigurationError, FederationError
from federation.apiserver.store.sql import SQLStore
from federation.simulator.member import SimulatedMember, server_options
from federation.simulator.network import Network
from federation.simulator.options import MemberOptions, kubeconfig_of

_DESCRIPTORS_MAX = 65_536
"""Descriptors below this number are closed in a new member, except standard output, standard error and the socket."""


@dataclass(frozen=True, slots=True)
class MemberStart:
    """How to start a member."""

    options: MemberOptions
    directory: Path
    """The fleet's directory; the member's own is a folder in it with the name of the member."""
    port: int
    """0 takes a free one."""
    may_change_port: bool
    """Whether the member takes a free port when another process uses `port`."""

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the member's administrator."""
        return kubeconfig_of(self.options.name, self.directory)


class Processes:
    """Starts members as processes, each at its previous port, which is saved in the directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = directory / "ports.json"
        try:
            self._ports: dict[str, int] = json.loads(self._file.read_text())
        except (FileNotFoundError, ValueError):
            self._ports = {}

    async def start(self, options: MemberOptions, may_change_port: bool) -> "MemberProcess":
        """As `StartMember`."""
        port = self._ports.get(options.name, 0)
        process = await fork_member(MemberStart(options, self._directory, port, may_change_port))
        port = int(process.url.rsplit(":", 1)[1])
        if self._ports.get(options.name) != port:  # a restart on a full disk writes nothing
            self._ports[options.name] = port
            temporary = self._file.with_suffix(".tmp")
            temporary.write_text(json.dumps(self._ports, indent=1))
            temporary.replace(self._file)
        return process


class MemberProcess:
    """The fleet's handle of a member's process: a `RunningMember`."""

    def __init__(
        self, name: str, pid: int, url: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.name = name
        self.pid: int | None = pid
        self._pid = pid
        self.url = url
        self._reader = reader
        self._writer = writer

    def disturb(self, latency_s: float, error_share: float) -> None:
        self._writer.write(json.dumps({"latencyS": latency_s, "errorShare": error_share}).encode() + b"\n")

    def set_frozen(self, is_frozen: bool) -> None:
        os.kill(self._pid, signal.SIGSTOP if is_frozen else signal.SIGCONT)
        if is_frozen:
            # It stops a moment later. If the fleet ended before that, the kernel would send it no SIGHUP.
            os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        self._writer.close()

    async def wait(self) -> int:
        with contextlib.suppress(OSError):
            await self._reader.read()
        self._writer.close()
        return _reap(self._pid)


async def fork_member(start: MemberStart) -> MemberProcess:
    """Start a member and return when it serves; FederationError when it cannot."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _run_and_exit(start, theirs)
    theirs.close()
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        line = await reader.readline()
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        writer.close()
        _reap(pid)
        raise
    said = json.loads(line) if line else {"error": "its process ended; see the log above"}
    if "error" in said:
        writer.close()
        _reap(pid)
        raise FederationError(f"{start.options.name}: {said['error']}")
    return MemberProcess(start.options.name, pid, said["url"], reader, writer)


def _reap(pid: int) -> int:
    # The process has closed its socket, so it has ended or is about to: this blocks for a moment at most.
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _run_and_exit(start: MemberStart, fleet: socket.socket) -> NoReturn:
    """Run a member in this forked process; never return into the fleet's code."""
    code = 1
    try:
        # Its own group: when the fleet is killed, the kernel sends SIGHUP to a member that SIGSTOP has stopped.
        os.setpgid(0, 0)
        _close_inherited(fleet)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            code = runner.run(_run(start, fleet))
    finally:
        if (error := sys.exception()) is not None:
            traceback.print_exception(error)
        sys.stderr.flush()
        os._exit(code)


def _close_inherited(fleet: socket.socket) -> None:
    """Close the fleet's descriptors: copies of its sockets to other members would keep these from seeing its end."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.closerange(3, fleet.fileno())
    os.closerange(fleet.fileno() + 1, _DESCRIPTORS_MAX)


async def _run(start: MemberStart, fleet: socket.socket) -> int:
    """Run the member until the fleet closes the connection; return the exit code."""
    reader, writer = await asyncio.open_connection(sock=fleet)
    network = Network(SystemClock(), seed=start.options.name)
    serving = asyncio.create_task(_serve(start, network, lambda url: _say(writer, {"url": url})))
    ended = asyncio.create_task(_obey(reader, network))
    await asyncio.wait((serving, ended), return_when=asyncio.FIRST_COMPLETED)
    for task in (serving, ended):
        task.cancel()
    (outcome, _) = await asyncio.gather(serving, ended, return_exceptions=True)
    if isinstance(outcome, asyncio.CancelledError):
        return 0
    if isinstance(outcome, BaseException):
        _say(writer, {"error": _describe(outcome)})
        await writer.drain()
    return 1


def _describe(error: BaseException) -> str:
    """Return the message of an expected error; raise an unexpected one."""
    first = error
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    if not isinstance(first, FederationError):
        raise error
    return str(first)


def _say(writer: asyncio.StreamWriter, line: dict[str, str]) -> None:
    writer.write(json.dumps(line).encode() + b"\n")


async def _serve(start: MemberStart, network: Network, on_started: Callable[[str], None]) -> None:
    directory = start.directory / start.options.name
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def member(port: int) -> SimulatedMember:
        clock = SystemClock()
        store = SQLStore(f"sqlite:///{directory / 'state.db'}", clock=clock)
        server = server_options(start.options, directory, start.kubeconfig, port=port)
        return SimulatedMember(start.options, store, server, clock, network=network)

    try:
        await member(start.port).run(on_started)
    except* ConfigurationError:
        if not start.may_change_port or not start.port:
            raise
        # Another process uses the port now: serve on a free one. `fedctl up` updates the cluster's endpoint.
        await member(0).run(on_started)


async def _obey(reader: asyncio.StreamReader, network: Network) -> None:
    """Apply the failures that each line of the fleet names; return when the fleet closes the connection."""
    with contextlib.suppress(OSError):
        while line := await reader.readline():
            wanted = json.loads(line)
            network.latency_s, network.error_share = float(wanted["latencyS"]), float(wanted["errorShare"])
