"""The process of `fedctl agent`."""

import random
from pathlib import Path
from typing import Annotated

import typer

from federation.agent.agent import Agent
from federation.agent.agentfiles import Identity
from federation.api.agents import Bundle
from federation.apimachinery import logs
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ConfigurationError
from federation.client.kubeconfig import in_cluster, load_kubeconfig
from federation.terminal import flags
from federation.terminal.execution import execute, until_signal
from federation.terminal.kubeconfigcontext import client_for


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
    logs.configure(log_format, log_level)
    execute(until_signal(run(directory, register, kubeconfig, context, is_in_cluster=in_cluster)))


async def run(directory: Path, register: str, kubeconfig: Path | None, context: str, *, is_in_cluster: bool) -> None:
    """Run the agent until cancelled; ConfigurationError names the option that is wrong."""
    bundle = Bundle.decode(register) if register else None
    if is_in_cluster == (kubeconfig is not None):
        raise ConfigurationError("give either --kubeconfig FILE or --in-cluster: where this cluster's API server is")
    connection = in_cluster() if kubeconfig is None else load_kubeconfig(kubeconfig, context)
    if connection.proxy_url or connection.tls_server_name:
        name = "proxy-url" if connection.proxy_url else "tls-server-name"
        raise ConfigurationError(f"clusters[].cluster.{name} is not supported for a member; run the agent inside of it")
    identity = Identity(directory.expanduser().absolute())

    async with client_for(connection) as member:
        await Agent(identity, member, SystemClock(), random.random).run(bundle)
