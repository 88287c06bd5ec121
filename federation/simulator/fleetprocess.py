"""The process of the simulated members of `fedctl up`, forked from it before it opens anything.

A fork shares the loaded modules: to import them again would take longer than the start of the members. The process must
have one thread and no event loop then, so `fork_fleet` comes first, and the members wait for `FleetProcess.start`. They
end with the process that forked them, even after kill -9: their standard input is then closed. `fleet.py` runs them.
"""

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import uvloop

from federation.apimachinery import memory
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import FederationError
from federation.apiserver.semantics.schema.builtin import builtin_schema
from federation.simulator.fleet import run_fleet
from federation.simulator.options import MemberOptions

_DESCRIPTORS_MAX = 65_536
"""Descriptors below this number are closed in the new process, except those of its own."""
_START = b"start\n"
_SHARED = ("ConfigMap", "Namespace", "Node", "Pod", "Secret", "Service", "ServiceAccount")
"""Kinds of v1 that every cluster uses: their schemas are compiled before the fork, once for all members."""


def run(work: Coroutine[Any, Any, None], *, is_light: bool) -> int:
    """Run a fleet in this process; return the exit code, or raise SystemExit with a message."""
    memory.tune_collector()
    # Loops of uvloop do not survive a fork; each member that is a process has its own.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if is_light else None) as runner:
        try:
            runner.run(work)
        except* FederationError as group:
            sys.exit(f"simulator: {group.exceptions[0]}")
        except* (KeyboardInterrupt, asyncio.CancelledError):
            pass
    return 0


class FleetProcess:
    """The handle of a fleet's process."""

    def __init__(self, pid: int, orders: int, reports: int) -> None:
        self._pid = pid
        self._orders = orders
        self._reports = reports
        self._reader: asyncio.StreamReader | None = None
        self._ended: asyncio.Future[bytes] | None = None
        self._code: int | None = None

    async def start(self) -> AsyncIterator[Mapping[str, Any]]:
        """Start the members; yield the report of `fleet.py` about each as it serves. FederationError if one cannot."""
        reader = asyncio.StreamReader()
        reports = os.fdopen(self._reports, "rb")
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), reports)
        self._reader = reader
        os.write(self._orders, _START)
        while not (line := await reader.readline()).startswith(b"ready"):
            if not line:
                raise FederationError(f"the simulated members did not start (exit code {await self.wait()})")
            yield json.loads(line)

    async def wait(self) -> int:
        """Return the exit code when the process has ended."""
        if self._reader is not None:
            self._ended = self._ended or asyncio.ensure_future(self._reader.read())
            await asyncio.shield(self._ended)
        if self._code is None:
            self._code = _reap(self._pid)
        return self._code

    def end(self) -> None:
        """Let the members end; those that were never started, too."""
        if self._orders >= 0:
            os.close(self._orders)
            self._orders = -1

    def kill(self) -> None:
        """Kill the fleet's process; its members end with it."""
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)


def _reap(pid: int) -> int:
    # The process has closed its end of the pipe, so it has ended or is about to: this blocks for a moment at most.
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def fork_fleet(members: Sequence[MemberOptions], directory: Path, *, is_light: bool) -> FleetProcess:
    """Fork the process of these members, which waits for `start`."""
    for kind in _SHARED:
        builtin_schema("", "v1", kind)
    awaited, orders = os.pipe()
    reports, reported = os.pipe()
    memory.tune_collector()  # leaves the pages of all modules as they are, so that they stay shared
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _run_and_exit(members, directory, awaited, reported, is_light=is_light)
    os.close(awaited)
    os.close(reported)
    return FleetProcess(pid, orders, reports)


def _run_and_exit(
    members: Sequence[MemberOptions], directory: Path, awaited: int, reported: int, *, is_light: bool
) -> NoReturn:
    """Run the members in this forked process; never return into the parent's code."""
    code = 1
    try:
        os.setsid()  # keeps Ctrl-C of the terminal from it
        sys.stdout = _replace_descriptors(awaited, reported)
        if os.read(0, len(_START)) == _START:
            code = run(run_fleet(list(members), directory, SystemClock(), is_light=is_light), is_light=is_light)
        else:
            code = 0
    except SystemExit as ended:
        sys.stderr.write(f"{ended}\n")  # as the interpreter does
    finally:
        if (error := sys.exception()) is not None:
            traceback.print_exception(error)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _replace_descriptors(awaited: int, reported: int) -> Any:
    """Make the pipes standard input and the returned output, which members do not inherit; close all others."""
    os.dup2(awaited, 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.closerange(3, reported)
    os.closerange(reported + 1, _DESCRIPTORS_MAX)
    return os.fdopen(reported, "w")
