"""The control socket of simulated members: how `fedctl sim` reaches the fleet of a running `fedctl up`.

A Unix socket in the fleet's directory. File permissions protect it: only the user who runs the fleet can connect, and
users of the Kubernetes API cannot. A connection carries one line of JSON in each direction: a command (`failures.py`),
and the states of its members or an error.
"""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

from federation.apimachinery.errors import ConfigurationError, FederationError
from federation.simulator.failures import FailureCommand, to_command, to_message

_NAME = "control.sock"
_READ_S = 10.0
"""Time for a client to send its command."""
Execute = Callable[[FailureCommand], Awaitable[list[dict[str, Any]]]]


class ControlServer:
    """Answers commands while its block runs."""

    def __init__(self, directory: Path, execute: Execute) -> None:
        self._directory = directory
        self._execute = execute
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        listener = socket.socket(socket.AF_UNIX)
        # Addresses of Unix sockets are short (about 100 bytes), paths of state directories need not be.
        with contextlib.chdir(self._directory):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_NAME)  # noqa: PTH108  # a call of microseconds on a local file
            listener.bind(_NAME)
            os.chmod(_NAME, 0o600)  # noqa: PTH101  # the same; the directory is private already
        self._server = await asyncio.start_unix_server(self._answer, sock=listener)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        (self._directory / _NAME).unlink(missing_ok=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError), contextlib.closing(writer):
            async with asyncio.timeout(_READ_S):
                line = await reader.readline()
            writer.write(json.dumps(await self._execute_line(line)).encode() + b"\n")
            await writer.drain()

    async def _execute_line(self, line: bytes) -> dict[str, Any]:
        try:
            return {"members": await self._execute(to_command(json.loads(line)))}
        except ValueError:
            return {"error": "the command is not JSON"}
        except FederationError as error:
            return {"error": str(error)}


async def send_command(directory: Path, command: FailureCommand) -> list[dict[str, Any]]:
    """Execute a command in the fleet of this directory and return the state of its members.

    ConfigurationError when no fleet runs there, FederationError when the fleet refuses the command.
    """
    client = socket.socket(socket.AF_UNIX)
    try:
        with contextlib.chdir(directory):
            client.connect(_NAME)
    except OSError:
        client.close()
        raise ConfigurationError(
            f"no simulated members run in {directory}; give the directory of a running `fedctl up` with --dir DIR"
        ) from None
    reader, writer = await asyncio.open_connection(sock=client)
    with contextlib.closing(writer):
        writer.write(json.dumps(to_message(command)).encode() + b"\n")
        line = await reader.readline()
    if not line:
        raise FederationError("the simulated members ended before they answered")
    answer = json.loads(line)
    if "error" in answer:
        raise FederationError(answer["error"])
    members: list[dict[str, Any]] = answer["members"]
    return members
