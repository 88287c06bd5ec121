"""Several simulated members in one process: the body of `python -m federation.simulator`.

Prints one JSON line per member when it serves ({"name", "server", "kubeconfig", "labels"}), then a line that starts
with `ready`. Ports are saved in the directory, so that a restarted member has its previous address. The process exits
when its standard input closes, so that it never outlives its parent, even after kill -9.
"""

import asyncio
import json
import sys
from pathlib import Path

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ConfigurationError
from federation.simulator.member import SimulatedMember
from federation.simulator.options import MemberOptions


async def run_fleet(members: list[MemberOptions], directory: Path, clock: Clock) -> None:
    """Run the members until standard input closes."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)  # noqa: ASYNC240  # once, before anything runs
    ports = _Ports(directory / "ports.json")
    serving = asyncio.Queue[str]()

    async def run(options: MemberOptions) -> None:
        member_directory = directory / options.name
        member_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        kubeconfig = directory / f"{options.name}.kubeconfig"

        def started(url: str) -> None:
            ports.save(options.name, url)
            description = {
                "name": options.name,
                "server": url,
                "kubeconfig": str(kubeconfig),
                "labels": dict(options.labels),
            }
            print(json.dumps(description), flush=True)  # noqa: T201  # the protocol with the parent process
            serving.put_nowait(options.name)

        member = SimulatedMember(options, member_directory, kubeconfig, clock, port=ports.get(options.name))
        try:
            await member.run(started)
        except* ConfigurationError:
            # Another process uses the port now: serve on a free one; the parent updates the cluster's endpoint.
            await SimulatedMember(options, member_directory, kubeconfig, clock, port=0).run(started)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(options)) for options in members]
        for _ in members:
            await serving.get()
        print(f"ready {len(members)} simulated members", flush=True)  # noqa: T201  # the protocol with the parent
        await _wait_for_stdin_close()
        for task in tasks:
            task.cancel()


class _Ports:
    """The ports that members served on before."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._ports: dict[str, int] = json.loads(file.read_text())
        except (FileNotFoundError, ValueError):
            self._ports = {}

    def get(self, name: str) -> int:
        return self._ports.get(name, 0)

    def save(self, name: str, url: str) -> None:
        self._ports[name] = int(url.rsplit(":", 1)[1])
        temporary = self._file.with_suffix(".tmp")
        temporary.write_text(json.dumps(self._ports, indent=1))
        temporary.replace(self._file)


async def _wait_for_stdin_close() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        continue
