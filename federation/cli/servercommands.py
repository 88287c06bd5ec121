"""The commands `fedctl certs`, `ready` and `ui`; `certs.py`, `ready.py` and `weblink.py` do the work."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from federation.apimachinery.errors import ConfigurationError
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext, client_for


def certs_command(
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", parser=flags.to_directory, help="Also the files of this state directory."),
    ] = None,
    within_days: Annotated[
        int, typer.Option("--within-days", metavar="DAYS", min=0, help="Fail if one expires within this time.")
    ] = 14,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """List certificates and when they expire.

    Shows the certificate that the server presents, and the CA and client certificate in the kubeconfig. Exit code 1
    when one of them has expired or expires soon.

    A control plane renews what it issued, in DIR. Copies of its kubeconfig have to be copied again.
    """
    from federation.cli import certs

    if directory is not None and kubeconfig is None:
        kubeconfig = directory / "kubeconfig"
    path = KubeconfigContext(kubeconfig, context).path
    execute(certs.show(path, context, directory, timedelta(days=within_days), output))


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
    from federation.apimachinery.clock import SystemClock
    from federation.apimachinery.connection import Connection
    from federation.cli import ready

    if server and not server.startswith("https://"):
        raise ConfigurationError(f"--server {server}: not an https:// address")
    opened = (
        client_for(Connection(server, insecure=True)) if server else KubeconfigContext(kubeconfig, context).client()
    )
    execute(ready.wait_ready(opened, SystemClock(), timeout))


def ui_command(kubeconfig: flags.Kubeconfig = None, context: flags.Context = "") -> None:
    """Print a one-time link that opens the web UI with the credentials of the kubeconfig."""
    from federation.cli import weblink

    execute(weblink.show(KubeconfigContext(kubeconfig, context)))
