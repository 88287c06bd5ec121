"""The process of `fedctl agent`."""

import random
from pathlib import Path

from federation.agent.agent import Agent
from federation.agent.agentfiles import Identity
from federation.api.agents import Bundle
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ConfigurationError
from federation.client.kubeconfig import in_cluster, load_kubeconfig
from federation.terminal.kubeconfigcontext import client_for


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
