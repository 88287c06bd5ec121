"""The commands `fedctl token create|list|delete`: registration tokens for the agents of clusters in pull mode."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Literal

import typer

from federation.api import names
from federation.api.agents import Bundle, to_servers
from federation.apimachinery.clock import SystemClock, parse_rfc3339
from federation.apimachinery.errors import ConfigurationError, UnknownName
from federation.apimachinery.resources import SECRETS, Object
from federation.cli import joining
from federation.client.registrationtoken import create_token, stored_tokens, value_of
from federation.planning.clusters.clustertaints import describe_taint
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.plaintext import to_age
from federation.terminal.printing import print_rows

_TTL_S_MIN, _TTL_S_MAX = 60, 7 * 86400
token_command = typer.Typer(help="Registration tokens for the agents of clusters in pull mode.", no_args_is_help=True)


@token_command.command("create")
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
    host = KubeconfigContext(kubeconfig, context)
    execute(create(host, name, server=server, labels=labels, taints=taints, ttl_s=ttl, output=output))


@token_command.command("list")
def token_list_command(
    kubeconfig: flags.Kubeconfig = None, context: flags.Context = "", output: flags.OutputFormat = "table"
) -> None:
    """List the registration tokens, and whether they can still be used.

    A used one is kept until it expires, so that a second use of it is recognised.
    """
    execute(show(KubeconfigContext(kubeconfig, context), output))


@token_command.command("delete")
def token_delete_command(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="As `fedctl token list` prints it.")],
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Delete a registration token, so that no agent can use it.

    A cluster that has registered already stays; `fedctl unjoin` removes it.
    """
    execute(delete(KubeconfigContext(kubeconfig, context), token))


async def create(
    context: KubeconfigContext, name: str, *, server: str, labels: str, taints: str, ttl_s: int, output: str
) -> None:
    """Store the hash of a new token, and print the command for the member."""
    if not _TTL_S_MIN <= ttl_s <= _TTL_S_MAX:
        raise ConfigurationError(f"--ttl {ttl_s}: give {_TTL_S_MIN} to {_TTL_S_MAX} seconds")
    clock = SystemClock()
    async with context.client() as host:
        connection = host.connection
        server = ",".join(to_servers(server or connection.server))
        if not connection.ca_data:
            raise ConfigurationError("the federation's kubeconfig has no certificate-authority; use DIR/kubeconfig")
        token_id, secret, expires = await create_token(
            host, clock, name, timedelta(seconds=ttl_s), joining.parse_labels(labels), joining.parse_taints(taints)
        )
    bundle = Bundle(server, connection.ca_data.decode(), name, token_id, secret)
    if output == "token":
        print(bundle.encode())
        return
    print(f'Run this in cluster "{name}", before {expires}; the token can be used once:\n')
    print(f"  fedctl agent --dir DIR --kubeconfig FILE --register {bundle.encode()}\n")
    print(f"The agent will connect to {bundle.server}.")
    print("To see before what the join takes over, leaves and would remove, where both clusters can be reached:\n")
    print(f"  fedctl join {name} --kubeconfig FILE --dry-run")


async def show(context: KubeconfigContext, output: str) -> None:
    """Print the tokens; the secrets themselves are stored nowhere."""
    now = SystemClock().now()
    async with context.client() as host:
        tokens = sorted(
            map(to_document, await stored_tokens(host)), key=lambda token: (token["cluster"], token["expires"])
        )
    rows = [
        [token["token"], token["cluster"], state_of(token, now), token["labels"] or "-", token["taints"] or "-"]
        for token in tokens
    ]
    empty = "no registration tokens; make one with: fedctl token create NAME"
    print_rows(tokens, output, empty, rows, "TOKEN, CLUSTER, STATE", "LABELS, TAINTS")


async def delete(context: KubeconfigContext, token_id: str) -> None:
    """Delete a token, so that no agent can register with it any more."""
    async with context.client() as host:
        known = {_id(secret): secret for secret in await stored_tokens(host)}
        if token_id not in known:
            raise UnknownName(f"there is no token {token_id}; see: fedctl token list")
        await host.delete(SECRETS, known[token_id]["metadata"]["name"], names.SYSTEM_NAMESPACE)
    print(f"token {token_id} deleted; a cluster that has registered with it stays: fedctl unjoin removes it")


def _id(secret: Object) -> str:
    return str(secret["metadata"]["name"]).removeprefix(names.AGENT_TOKEN_PREFIX)


def to_document(secret: Object) -> dict[str, str]:
    """Return the parts of a token's Secret that may be shown."""
    labels, taints = (json.loads(value_of(secret, key) or "null") for key in ("labels", "taints"))
    return {
        "token": _id(secret),
        "cluster": value_of(secret, "cluster"),
        "expires": value_of(secret, "expires"),
        "used": value_of(secret, "used"),
        "labels": ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())),
        "taints": ", ".join(map(describe_taint, taints or ())),
    }


def state_of(token: Mapping[str, str], now: datetime) -> str:
    """Return whether a token can be used, and for how long."""
    if token["used"]:
        used = parse_rfc3339(token["used"])
        return "used" if used is None else f"used {to_age(now, used)} ago"
    end = parse_rfc3339(token["expires"])
    return "expired" if end is None or end <= now else f"expires in {to_age(end, now)}"
