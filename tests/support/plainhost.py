"""An API server without the federation in a process of its own, as the host of a federation: the embedded one.

`python -m tests.support.plainhost DIRECTORY PORT` serves until its standard input closes, and prints `ready`.
`plain_host(directory)` runs it during a block.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from federation.apimachinery.clock import SystemClock
from federation.apiserver.server import APIServer, APIServerOptions
from federation.apiserver.store.sql import SQLStore
from tests.support.federation import Kubectl, log_of
from tests.support.forkserver import Process, start_process


class PlainHost:
    """A running server, which can be killed and started again with the same keys and objects."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.kubeconfig = directory / "kubeconfig"
        self.kubectl = Kubectl(self.kubeconfig)
        self._port = "0"
        self._process: Process | None = None

    def start(self) -> None:
        """Start the server, on the port that it had before."""
        arguments = (str(self.directory), self._port)
        with log_of(self.directory).open("a") as log:
            self._process = start_process(__name__, arguments, stdin=subprocess.PIPE, stderr=log.fileno())
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("ready "), log_of(self.directory).read_text()[-3000:]
        self._port = line.strip().rpartition(":")[2]

    def stop(self) -> None:
        """Kill the server."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(90)
            for stream in (self._process.stdin, self._process.stdout):
                assert stream is not None
                stream.close()
            self._process = None


@contextmanager
def plain_host(directory: Path) -> Iterator[PlainHost]:
    """Run the server during the block."""
    host = PlainHost(directory)
    host.start()
    try:
        yield host
    finally:
        host.stop()


async def _serve(directory: Path, port: int) -> None:
    clock = SystemClock()
    store = SQLStore(f"sqlite:///{directory / 'state.db'}", clock=clock)
    server = APIServer(
        store, options=APIServerOptions(directory, directory / "kubeconfig", name="host", port=port), clock=clock
    )
    await server.prepare()
    try:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.run(lambda url: print(f"ready {url}", flush=True)))
            await asyncio.to_thread(sys.stdin.read)
            serving.cancel()
    finally:
        await store.close()


def main() -> None:
    """Run the server of the process's arguments."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    asyncio.run(_serve(directory, int(sys.argv[2])))


if __name__ == "__main__":
    main()
