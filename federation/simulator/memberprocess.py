"""The process of one simulated member, forked from the fleet's, so that failures are those of a real host.

`fork_member` starts one and returns a `MemberProcess`, the fleet's handle: SIGKILL ends the process without a goodbye,
SIGSTOP makes it accept connections and never answer. Fleet and member are connected by a socket pair. The member sends
one line when it serves (`{"url": …}`) or cannot (`{"error": …}`), the fleet sends `{"latencyS": …}`, and either side
sees at once when the other one ends. A fork shares the loaded modules: it takes milliseconds and few megabytes.
Failures to simulate are chosen in `fleet.py`; the member itself is in `member.py`.
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
from federation.simulator.delay import Delay
from federation.simulator.member import SimulatedMember
from federation.simulator.options import MemberOptions

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
        return self.directory / f"{self.options.name}.kubeconfig"


class MemberProcess:
    """The fleet's handle of a running member."""

    def __init__(
        self, name: str, pid: int, url: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.name = name
        self.pid = pid
        self.url = url
        self._reader = reader
        self._writer = writer

    def set_latency(self, latency_s: float) -> None:
        """Delay every response and every batch of watch events by this time; 0 ends it."""
        self._writer.write(json.dumps({"latencyS": latency_s}).encode() + b"\n")

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        os.kill(self.pid, number)

    def close(self) -> None:
        """Ask the member to stop in an orderly way."""
        self._writer.close()

    async def wait(self) -> int:
        """Return the exit code when the process has ended, negative for the signal that ended it."""
        with contextlib.suppress(OSError):
            await self._reader.read()
        self._writer.close()
        return _reap(self.pid)


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
    delay = Delay(SystemClock())
    serving = asyncio.create_task(_serve(start, delay, lambda url: _say(writer, {"url": url})))
    ended = asyncio.create_task(_obey(reader, delay))
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


async def _serve(start: MemberStart, delay: Delay, on_started: Callable[[str], None]) -> None:
    directory = start.directory / start.options.name
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def member(port: int) -> SimulatedMember:
        return SimulatedMember(start.options, directory, start.kubeconfig, SystemClock(), port=port, delay=delay)

    try:
        await member(start.port).run(on_started)
    except* ConfigurationError:
        if not start.may_change_port or not start.port:
            raise
        # Another process uses the port now: serve on a free one. `fedctl up` updates the cluster's endpoint.
        await member(0).run(on_started)


async def _obey(reader: asyncio.StreamReader, delay: Delay) -> None:
    """Set the delay that each line of the fleet names; return when the fleet closes the connection."""
    with contextlib.suppress(OSError):
        while line := await reader.readline():
            delay.seconds = float(json.loads(line)["latencyS"])
