"""The options of `fedctl spread-webhook`; `spreadwebhook.py` does the work."""

from pathlib import Path
from typing import Annotated

import typer

from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext


def spread_webhook_command(
    member_kubeconfig: Annotated[
        Path,
        typer.Option("--kubeconfig", metavar="FILE", help="Kubeconfig of an administrator of the cluster."),
    ],
    member_context: Annotated[
        str, typer.Option("--context", metavar="NAME", help="Context in the cluster's kubeconfig.")
    ] = "",
    bind: Annotated[
        str, typer.Option("--bind", metavar="ADDRESS:PORT", help="Where to listen; port 0 picks a free one.")
    ] = "127.0.0.1:0",
    url: Annotated[
        str,
        typer.Option("--url", metavar="URL", help="https URL at which the cluster's API server reaches this process."),
    ] = "",
    uninstall: Annotated[
        bool, typer.Option("--uninstall", help="Remove what an earlier run left in the cluster, and exit.")
    ] = False,
    log_format: flags.LogFormat = "text",
    log_level: flags.LogLevel = "info",
) -> None:
    """Spread the pods of one cluster by WorkloadSpreads.

    Adds the kind WorkloadSpread to the cluster and answers its admission webhooks until Ctrl-C, which removes the
    webhooks. The cluster works without this process: its API server ignores webhooks that do not answer.

    \b
    fedctl spread-webhook --kubeconfig FILE --bind 0.0.0.0:9443 --url https://10.0.0.5:9443
    fedctl spread-webhook --kubeconfig FILE --uninstall
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.apimachinery import logs
    from federation.cli import spreadwebhook

    cluster = KubeconfigContext(member_kubeconfig, member_context)
    if uninstall:
        execute(spreadwebhook.uninstall(cluster))
        return
    logs.configure(log_format, log_level)
    execute(spreadwebhook.serve(cluster, spreadwebhook.parse_addresses(bind, url)))
