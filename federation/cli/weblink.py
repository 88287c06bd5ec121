"""`fedctl ui`: a one-time link that opens the web UI in a browser with the credentials of a kubeconfig."""

from typing import TYPE_CHECKING

import orjson

from federation.apimachinery.errors import ConfigurationError, FederationError, from_status
from federation.client.kubeconfig import load_kubeconfig
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

if TYPE_CHECKING:
    from federation.client.http import HTTPClient


def ui_command(kubeconfig: flags.Kubeconfig = None, context: flags.Context = "") -> None:
    """Print a one-time link that opens the web UI with the credentials of the kubeconfig."""
    execute(show(KubeconfigContext(kubeconfig, context)))


async def make_link(host: "HTTPClient", server: str) -> str:
    """Return the address of a new link; `server` is the address of the host."""
    code, body = await host.raw("POST", "/ui/links", body=b"")
    if code == 404:
        raise ConfigurationError(
            "this API server has no web UI; point --kubeconfig at the kubeconfig of `fedctl serve`, or open the address"
            " that `fedctl serve --ui-port` prints and log in with a token"
        )
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise FederationError(f"the server answered {code} without JSON") from None
    if code != 201:
        raise from_status(answer, code)
    return f"{server.rstrip('/')}{answer['path']}"


async def show(context: KubeconfigContext) -> None:
    """Print a link."""
    async with context.client() as host:
        link = await make_link(host, load_kubeconfig(context.path, context.context).server)
    print(link)
    print("It works once, within 10 minutes, and logs you in as the user of the kubeconfig.")
