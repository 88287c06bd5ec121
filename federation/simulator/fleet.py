"""Several simulated members and the failures that a user causes in them: the body of a fleet's process.

Prints a JSON line per member as soon as it serves ({"name", "server", "kubeconfig", "labels"}), and a line that starts
with `ready` when all do. Every member is its own process (`memberprocess.py`) and has its previous address after a
restart, or all are light members in this process (`lightmember.py`). `control.py` receives the commands of `fedctl
sim`. The process exits when its standard input closes, so that it never outlives its parent, even after kill -9, and
ends all members before.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from federation.apimachinery import memory
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ConfigurationError
from federation.simulator.control import ControlServer
from federation.simulator.failingmember import FailingMember, StartMember
from federation.simulator.failures import FailureCommand, Verb
from federation.simulator.lightmember import light_members
from federation.simulator.memberprocess import Processes
from federation.simulator.options import MemberOptions, kubeconfig_of


async def run_fleet(members: list[MemberOptions], directory: Path, clock: Clock, *, is_light: bool = False) -> None:
    """Run the members until standard input closes; FederationError when one of them cannot start."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)  # noqa: ASYNC240  # once, before anything runs
    if not is_light:
        await _run(members, directory, Processes(directory).start, clock)
        return
    # Nearly all that members allocate while they start stays: collections would only look at it, a tenth of the CPU.
    memory.pause_collector()
    async with light_members(directory, clock) as start:
        await _run(members, directory, start, clock)


async def _run(members: list[MemberOptions], directory: Path, start: StartMember, clock: Clock) -> None:
    fleet = _Fleet(members, directory, start, clock)
    try:
        await fleet.start(_report)
        memory.tune_collector()  # a full collection of 1,000 light members takes seconds
        async with ControlServer(directory, fleet.execute):
            print(f"ready {len(members)} simulated members", flush=True)  # noqa: T201  # the protocol with the parent
            await _wait_for_stdin_close()
    finally:
        await fleet.end()


def _report(description: Mapping[str, Any]) -> None:
    print(json.dumps(description), flush=True)  # noqa: T201  # the protocol with the parent


class _Fleet:
    """The members by name."""

    def __init__(self, members: list[MemberOptions], directory: Path, start: StartMember, clock: Clock) -> None:
        self._members = {
            options.name: FailingMember(options, kubeconfig_of(options.name, directory), start, clock)
            for options in members
        }

    async def start(self, on_serving: Callable[[Mapping[str, Any]], None]) -> None:
        """Start all members; return when they serve. `on_serving` gets name, URL, kubeconfig and labels of each."""

        async def start(member: FailingMember) -> None:
            await member.start()
            on_serving(member.description)

        async with asyncio.TaskGroup() as group:
            for member in self._members.values():
                group.create_task(start(member))

    async def end(self) -> None:
        """End all members."""
        await asyncio.gather(*(member.end() for member in self._members.values()))

    async def execute(self, command: FailureCommand) -> list[dict[str, Any]]:
        """Execute a command and return the status of its members; FederationError when it cannot be executed."""
        if command.verb is Verb.STATUS:
            return [member.status for member in self._members.values()]
        member = self._members.get(command.member)
        if member is None:
            known = ", ".join(self._members) or "none"
            raise ConfigurationError(f'no simulated member "{command.member}"; there are: {known}')
        await member.execute(command)
        return [member.status]


async def _wait_for_stdin_close() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        continue
