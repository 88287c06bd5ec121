"""`fedctl ready`: whether a control plane serves, for health checks, `helm test` and scripts.

It asks `/readyz`, which needs no credentials. So it can also be asked without a kubeconfig, and the certificate is not
verified then: nothing is sent, and the answer is used for nothing else.
"""

from contextlib import AbstractAsyncContextManager
from typing import Annotated

import typer

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ClusterError, ConfigurationError, FederationError
from federation.apimachinery.listening import Patience
from federation.client.client import Client
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext, client_for

_PAUSE_S = 0.5
_REQUEST_S = 5.0


def ready_command(
    server: Annotated[
        str,
        typer.Option("--server", metavar="URL", help="Ask this https:// address instead of the kubeconfig's server."),
    ] = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0, help="How long to wait; 0 asks once.")
    ] = 0,
) -> None:
    """Report whether the control plane is ready.

    Prints the readiness checks. Exit code 1 when one fails or the server does not answer.
    """
    if server and not server.startswith("https://"):
        raise ConfigurationError(f"--server {server}: not an https:// address")
    opened = (
        client_for(Connection(server, insecure=True)) if server else KubeconfigContext(kubeconfig, context).client()
    )
    execute(wait_ready(opened, SystemClock(), timeout))


async def wait_ready(opened: AbstractAsyncContextManager[Client], clock: Clock, timeout_s: float) -> None:
    """Print the checks of a server that is ready; FederationError when it is not within the time."""
    patience = Patience(clock, timeout_s - _PAUSE_S)
    async with opened as client:
        while True:
            try:
                code, body = await client.raw("GET", "/readyz", query={"verbose": ""}, timeout_s=_REQUEST_S)
                text = body.decode(errors="replace").strip()
            except ClusterError as error:
                code, text = 0, str(error)
            if code == 200:
                print(text)
                return
            if patience.is_over():
                raise FederationError(_failure(code, text))
            await clock.sleep(_PAUSE_S)


def _failure(code: int, text: str) -> str:
    """Return why the server is not ready, from its failed checks."""
    failed = [line.removeprefix("[-]") for line in text.splitlines() if line.startswith("[-]")]
    if failed:
        return f"not ready: {'; '.join(failed)}"
    return f"not ready: {text}" if code == 0 else f"not ready: the server answered {code}"
