"""A TCP proxy before a member that stops responding on command."""

import asyncio
import contextlib


class HangingProxy:
    """Forwards TCP to a member until it is set to hang; then connections stay open without responses."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None
        self._streams: set[asyncio.StreamWriter] = set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def hang(self) -> None:
        self._flowing.clear()

    async def stop(self) -> None:
        assert self._server is not None
        self._flowing.set()
        self._server.close()
        for writer in self._streams:
            writer.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            upstream_reader, upstream_writer = await asyncio.open_connection(*self._target)
            self._streams |= {writer, upstream_writer}
            await asyncio.gather(self._pump(reader, upstream_writer), self._pump(upstream_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
            writer.close()
