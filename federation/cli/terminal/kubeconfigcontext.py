"""The federation that a command works on: a client for one context of a kubeconfig.

All command lines import this module, and only some need a client, so the client is imported when one is made.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import orjson

from federation.apimachinery.errors import ApiError, ConfigurationError, from_status

if TYPE_CHECKING:
    from federation.apimachinery.connection import Connection
    from federation.client.http import HTTPClient


@dataclass(frozen=True, slots=True)
class KubeconfigContext:
    """A context in a kubeconfig: the given file, else $KUBECONFIG, else ~/.kube/config; "" is its current context."""

    kubeconfig: Path | None
    context: str

    @property
    def path(self) -> Path:
        """The kubeconfig to read; ConfigurationError when none is given and the default does not exist."""
        if self.kubeconfig is not None:
            return self.kubeconfig
        listed = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
        path = Path(listed) if listed else Path.home() / ".kube" / "config"
        if not path.exists():
            raise ConfigurationError(
                f"no federation kubeconfig at {path}; give --kubeconfig FILE or run: export KUBECONFIG=DIR/kubeconfig"
            )
        return path

    @asynccontextmanager
    async def client(self) -> AsyncIterator["HTTPClient"]:
        """Yield a client for the context and close it afterwards."""
        from federation.client.kubeconfig import load_kubeconfig  # noqa: PLC0415  # see the module's docstring

        async with client_for(load_kubeconfig(self.path, self.context)) as client:
            yield client


@asynccontextmanager
async def client_for(connection: "Connection") -> AsyncIterator["HTTPClient"]:
    """Yield a client for a connection and close it afterwards."""
    from federation.client.http import HTTPClient  # noqa: PLC0415  # see the module's docstring

    client = HTTPClient(connection)
    try:
        yield client
    finally:
        await client.close()


async def get_json(client: "HTTPClient", path: str, query: dict[str, str]) -> object:
    """Return the parsed response to a GET outside the Kubernetes API; ApiError when the code is not 200."""
    code, body = await client.raw("GET", f"{path}?{urlencode(query)}")
    if code == 404:
        raise ConfigurationError("this API server is not a federation; point --kubeconfig at DIR/kubeconfig")
    try:
        answer: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ApiError(f"the server answered {code} without JSON", code=code) from None
    if code != 200:
        raise from_status(answer if isinstance(answer, dict) else {}, code)
    return answer
