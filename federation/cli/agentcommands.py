"""The commands of pull mode: `fedctl token create` on the host, `fedctl agent` in the member."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from federation.terminal import flags
from federation.terminal.execution import execute, until_signal
from federation.terminal.kubeconfigcontext import KubeconfigContext

token_app = typer.Typer(help="Registration tokens for the agents of clusters in pull mode.", no_args_is_help=True)


@token_app.command("create")
def token_create_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the cluster that the token is for.")],
    server: Annotated[
        str,
        typer.Option(
            "--server",
            metavar="URL",
            help="Where the agent reaches the federation, URL,… if its processes differ [that of --kubeconfig].",
        ),
    ] = "",
    labels: Annotated[
        str, typer.Option("--labels", metavar="LABELS", help="key=value,… for the selectors of policies.")
    ] = "",
    taints: Annotated[str, typer.Option("--taints", metavar="TAINTS", help="key=value:Effect,…")] = "",
    ttl: Annotated[int, typer.Option("--ttl", metavar="SECONDS", help="Until when the token can be used.")] = 3600,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: Annotated[
        Literal["command", "token"], typer.Option("--output", "-o", help="The whole command, or the token only.")
    ] = "command",
) -> None:
    """Create a registration token for one cluster.

    The token can be used once, for a cluster of this name. The host stores its hash only. A cluster in pull mode that
    lost its agent's folder registers again with a new token, which ends the previous agent's rights.
    """
    from federation.cli import agenttokens

    host = KubeconfigContext(kubeconfig, context)
    execute(agenttokens.create(host, name, server=server, labels=labels, taints=taints, ttl_s=ttl, output=output))


@token_app.command("list")
def token_list_command(
    kubeconfig: flags.Kubeconfig = None, context: flags.Context = "", output: flags.OutputFormat = "table"
) -> None:
    """List the registration tokens that are not used yet."""
    from federation.cli import agenttokens

    execute(agenttokens.show(KubeconfigContext(kubeconfig, context), output))


@token_app.command("delete")
def token_delete_command(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="As `fedctl token list` prints it.")],
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Delete a registration token, so that no agent can use it.

    A cluster that has registered already stays; `fedctl unjoin` removes it.
    """
    from federation.cli import agenttokens

    execute(agenttokens.delete(KubeconfigContext(kubeconfig, context), token))


def agent_command(
    directory: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Directory for the agent's key.")],
    register: Annotated[
        str,
        typer.Option(
            "--register",
            metavar="TOKEN",
            envvar="FEDERATION_AGENT_TOKEN",
            help="Token of `fedctl token create`; ignored when DIR holds a registered agent.",
        ),
    ] = "",
    kubeconfig: Annotated[
        Path | None,
        typer.Option("--kubeconfig", metavar="FILE", help="Kubeconfig of an administrator of this cluster."),
    ] = None,
    context: Annotated[str, typer.Option("--context", metavar="NAME", help="Context in that kubeconfig.")] = "",
    in_cluster: Annotated[
        bool, typer.Option("--in-cluster", help="Use the service account of the pod in which the agent runs.")
    ] = False,
    log_format: flags.LogFormat = "text",
    log_level: flags.LogLevel = "info",
) -> None:
    """Connect this cluster to a federation that cannot reach it (pull mode).

    Opens one connection to the host and carries the host's requests to this cluster's API server, and to nothing else.
    Runs in the foreground until Ctrl-C, and connects again whenever the connection ends.
    """
    from federation.apimachinery import logs
    from federation.cli import agentprocess

    logs.configure(log_format, log_level)
    execute(until_signal(agentprocess.run(directory, register, kubeconfig, context, is_in_cluster=in_cluster)))
