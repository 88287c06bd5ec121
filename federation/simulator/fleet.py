"""Several simulated members in one process, and the process itself: `python -m federation.simulator`.

Prints one JSON line per member when it serves ({"name", "server", "kubeconfig", "labels"}), then a line that starts
with `ready`. Ports are kept in the directory, so that a restart serves every member where it was. The process ends
when its standard input closes, so that it never outlives whoever started it, also not after kill -9.
"""

import asyncio
import json
import sys
from pathlib import Path

from federation.base.clock import Clock
from federation.base.errors import ConfigurationError
from federation.simulator.member import SimulatedMember
from federation.simulator.options import MemberOptions


async def run_fleet(members: list[MemberOptions], directory: Path, clock: Clock) -> None:
    """Run the members until standard input closes."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)  # noqa: ASYNC240  # once, before anything runs
    ports = _Ports(directory / "ports.json")
    serving = asyncio.Queue[str]()

    async def run(options: MemberOptions) -> None:
        folder = directory / options.name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        kubeconfig = directory / f"{options.name}.kubeconfig"

        def started(url: str) -> None:
            ports.keep(options.name, url)
            described = {
                "name": options.name,
                "server": url,
                "kubeconfig": str(kubeconfig),
                "labels": dict(options.labels),
            }
            print(json.dumps(described), flush=True)  # noqa: T201  # the protocol with the parent process
            serving.put_nowait(options.name)

        member = SimulatedMember(options, folder, kubeconfig, clock, port=ports.of(options.name))
        try:
            await member.run(started)
        except* ConfigurationError:
            # Somebody else has taken the port meanwhile: serve elsewhere; the parent updates the endpoint.
            await SimulatedMember(options, folder, kubeconfig, clock, port=0).run(started)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(options)) for options in members]
        for _ in members:
            await serving.get()
        print(f"ready {len(members)} simulated members", flush=True)  # noqa: T201  # the protocol with the parent
        await _standard_input_closed()
        for task in tasks:
            task.cancel()


class _Ports:
    """Which port each member had last."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._ports: dict[str, int] = json.loads(file.read_text())
        except (FileNotFoundError, ValueError):
            self._ports = {}

    def of(self, name: str) -> int:
        return self._ports.get(name, 0)

    def keep(self, name: str, url: str) -> None:
        self._ports[name] = int(url.rsplit(":", 1)[1])
        temporary = self._file.with_suffix(".tmp")
        temporary.write_text(json.dumps(self._ports, indent=1))
        temporary.replace(self._file)


async def _standard_input_closed() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        continue
