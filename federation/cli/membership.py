"""The commands `fedctl join` and `unjoin`."""

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError, FederationError
from federation.apimachinery.resources import Object
from federation.cli import joining, joinpreview, membercredentials
from federation.cli.drainitems import Item, items_in
from federation.cli.joining import JoinRequest
from federation.client.client import Client
from federation.client.clustersecret import is_pulled
from federation.client.kubeconfig import load_kubeconfig
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.progress import Progress

_CONCURRENT_MAX = 8
"""Members whose credentials are replaced at the same time."""
_OF_NEW_MEMBERS = "--labels, --taints, --dry-run and --use-given-credentials"
_SUFFIXES = (".kubeconfig", ".yaml", ".yml", ".conf", "")


def join_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="Name of the new member; none with --all.")
    ] = "",
    member_kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            metavar="FILE",
            help="Kubeconfig of an administrator of the member; the federation's is --host-kubeconfig. With --all a"
            " folder with NAME.kubeconfig for each member, or a file with a context NAME for each.",
        ),
    ] = None,
    member_context: Annotated[
        str, typer.Option("--context", metavar="NAME", help="Context in the member's kubeconfig.")
    ] = "",
    labels: Annotated[
        str, typer.Option("--labels", metavar="LABELS", help="key=value,… for the selectors of policies.")
    ] = "",
    taints: Annotated[str, typer.Option("--taints", metavar="TAINTS", help="key=value:Effect,…")] = "",
    use_service_account: Annotated[
        bool,
        typer.Option(
            "--use-service-account/--use-given-credentials",
            help="Store the token of a new service account, or the kubeconfig's own credentials.",
        ),
    ] = True,
    update_credentials: Annotated[
        bool,
        typer.Option("--update-credentials", help="Replace the credentials and the CA of a cluster that has joined."),
    ] = False,
    everyone: Annotated[
        bool, typer.Option("--all", help="Replace those of all members; goes on after a failure.")
    ] = False,
    kubeconfig: Annotated[
        Path | None,
        typer.Option("--host-kubeconfig", metavar="FILE", help="The federation's kubeconfig [$KUBECONFIG]."),
    ] = None,
    context: Annotated[
        str, typer.Option("--host-context", metavar="NAME", help="Context in the federation's kubeconfig.")
    ] = "",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the member is Ready.")] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what it takes over, leaves and would remove in the member.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal.")] = False,
    timeout: flags.Timeout = 60,
) -> None:
    """Add a cluster to the federation.

    Uses the member's kubeconfig once, to create a service account that has the rights of the federated types, and
    stores only the account's token. The control plane renews it. What the join takes over, leaves and would remove in
    the member is shown first.

    \b
    fedctl join NAME --kubeconfig FILE --labels region=eu
    fedctl join NAME --kubeconfig FILE --dry-run               only shows it
    fedctl join --update-credentials NAME --kubeconfig FILE    replaces it all
    fedctl join --update-credentials NAME                      new token only
    fedctl join --update-credentials --all --kubeconfig FOLDER    in all members
    """  # noqa: D301  # the backspace keeps lines apart in the help
    host = KubeconfigContext(kubeconfig, context)
    if everyone is bool(name) or (everyone and not (update_credentials and member_kubeconfig)):
        raise typer.BadParameter("give NAME, or --update-credentials --all --kubeconfig FOLDER for all members")
    if everyone and member_context:
        raise typer.BadParameter("--all excludes --context: the context of each member has the member's name")
    if update_credentials:
        if labels or taints or dry_run or not use_service_account:
            raise typer.BadParameter(f"--update-credentials excludes {_OF_NEW_MEMBERS}")
        execute(_replaced(host, "" if everyone else name, member_kubeconfig, member_context, timeout))
        return
    if member_kubeconfig is None:
        raise typer.BadParameter("give the member's kubeconfig with --kubeconfig FILE")
    request = to_join_request(
        name, member_kubeconfig, member_context, labels, taints, use_service_account=use_service_account
    )
    is_asking = not yes and sys.stdin.isatty()
    execute(join(host, request, wait=wait, is_dry_run=dry_run, is_asking=is_asking, timeout_s=timeout))


def _replaced(
    host: KubeconfigContext, name: str, kubeconfig: Path | None, context: str, timeout_s: float
) -> Coroutine[Any, Any, int | None]:
    """Return the replacement of a member's credentials, or of all members' for ""."""
    if not name and kubeconfig is not None:
        return replace_all_credentials(host, kubeconfig.expanduser(), timeout_s=timeout_s)
    return replace_credentials(host, name, kubeconfig, context, timeout_s=timeout_s)


def unjoin_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", autocompletion=candidates.clusters, help="Name of the member.")
    ],
    remove: Annotated[
        bool | None, typer.Option("--remove/--keep", help="Delete its objects, or leave them running in it [--keep].")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Remove it although it does not answer; needs --reason.")
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why; kept in an event and in the leftovers.")
    ] = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: flags.Timeout = 60,
) -> None:
    """Remove a cluster from the federation.

    Its workloads keep running in it, beside what replaces them in other clusters. They lose the label of the federation
    and are yours. With --remove they are deleted; --keep withdraws that while the cluster is leaving. To renew
    credentials use fedctl join --update-credentials instead.

    A cluster that is lost can only leave by force: nothing is cleaned up in it. `fedctl leftovers` lists what it holds;
    if it joins again, what is placed there is managed again, and the rest is left as it is.
    """
    if force is not bool(reason.strip()):
        raise typer.BadParameter("--force and --reason TEXT belong together")
    if force and remove:
        raise typer.BadParameter("--force removes nothing in the cluster; leave out --remove")
    target = KubeconfigContext(kubeconfig, context)
    execute(unjoin(target, name, is_removing=remove, reason=reason.strip(), timeout_s=timeout))


def to_join_request(
    name: str, kubeconfig: Path, context: str, labels: str, taints: str, *, use_service_account: bool
) -> JoinRequest:
    """Return the request for the command's arguments; ConfigurationError names the argument that is wrong."""
    return JoinRequest(
        name=name,
        connection=load_kubeconfig(kubeconfig, context),
        labels=joining.parse_labels(labels),
        taints=joining.parse_taints(taints),
        use_service_account=use_service_account,
    )


async def _preview(context: KubeconfigContext, request: JoinRequest) -> list[joinpreview.Item]:
    """Print and return what the join does with what the member has."""
    with Progress() as progress:
        async with context.client() as host:
            items, unread = await joining.preview(host, request, progress.report)
    for line in joinpreview.describe(request.name, items, unread):
        print(line)
    return items


async def join(
    context: KubeconfigContext,
    request: JoinRequest,
    *,
    wait: bool,
    is_dry_run: bool = False,
    is_asking: bool = False,
    timeout_s: float,
) -> int:
    """Print what the join does with what the member has, ask if that is something, join, and print the result."""
    items = await _preview(context, request)
    if is_dry_run:
        if not items:
            print(f'a join of "{request.name}" finds nothing that concerns the federation')
        print("nothing was joined: --dry-run")
        return 0
    if items and is_asking and not typer.confirm("join it?"):
        print("nothing was joined")
        return 1
    with Progress() as progress:
        async with context.client() as host:
            await joining.join(host, request, report=progress.report)
            if wait:
                await _wait_ready(host, request, timeout_s, progress)
    print(f'cluster "{request.name}" joined' + (" and is ready" if wait else ""))
    return 0


async def _wait_ready(host: Client, request: JoinRequest, timeout_s: float, progress: Progress) -> None:
    try:
        await joining.wait_ready(host, request.name, SystemClock(), timeout_s, progress.report)
    except ConfigurationError:
        progress.report("undoing the join")
        await joining.withdraw(host, request, SystemClock(), timeout_s)
        raise


async def replace_credentials(
    context: KubeconfigContext, name: str, kubeconfig: Path | None, member_context: str, *, timeout_s: float
) -> None:
    """Replace a member's credentials and print the result."""
    given = load_kubeconfig(kubeconfig, member_context) if kubeconfig is not None else None
    with Progress() as progress:
        async with context.client() as host:
            clock, report = SystemClock(), progress.report
            replaced = await membercredentials.replace_credentials(host, name, given, clock, timeout_s, report)
    print(f'cluster "{name}" has new credentials (service account {replaced.account})')
    if replaced.previous_expires is not None:
        print(f"the previous token expires: {replaced.previous_expires}; to revoke it now, add --kubeconfig FILE")


async def replace_all_credentials(context: KubeconfigContext, source: Path, *, timeout_s: float) -> int:
    """Replace the credentials of all members, and print a line for each; return 1 if one failed."""
    slots, clock = asyncio.Semaphore(_CONCURRENT_MAX), SystemClock()

    async def replace(host: Client, cluster: Object) -> bool:
        name = cluster["metadata"]["name"]
        if is_pulled(cluster):
            print(f"{name}: skipped, its agent has the rights that its chart or administrator gives it", flush=True)
            return True
        async with slots:
            try:
                given = load_administrator(source, name)
                replaced = await membercredentials.replace_credentials(host, name, given, clock, timeout_s)
            except FederationError as error:
                print(f"{name}: failed: {' '.join(str(error).split())}", flush=True)
                return False
        print(f"{name}: new credentials (service account {replaced.account})", flush=True)
        return True

    async with context.client() as host:
        clusters = (await host.list(FEDERATED_CLUSTERS)).items
        done = await asyncio.gather(*(replace(host, cluster) for cluster in clusters))
    failed = done.count(False)
    print(f"{to_count(len(done), 'member')}, {failed or 'none'} failed")
    return 1 if failed else 0


def load_administrator(source: Path, name: str) -> Connection:
    """Return the connection to a member: of its file in a folder, or of its context in a file; ConfigurationError."""
    if not source.is_dir():
        return load_kubeconfig(source, name)
    for suffix in _SUFFIXES:
        if (file := source / f"{name}{suffix}").is_file():
            return load_kubeconfig(file)
    raise ConfigurationError(f"{source} has no file {name}{_SUFFIXES[0]}; add the kubeconfig of its administrator")


async def unjoin(
    context: KubeconfigContext, name: str, *, is_removing: bool | None, reason: str, timeout_s: float
) -> None:
    """Remove a member, by force with a `reason`, and print the result and what stays in it."""
    with Progress() as progress:
        async with context.client() as host:
            items = await items_in(host, name)
            is_emptied = await joining.unjoin(
                host,
                name,
                SystemClock(),
                timeout_s,
                is_removing=is_removing,
                reason=reason,
                report=progress.report,
            )
    print(f'cluster "{name}" left the federation')
    if reason:
        print(f"what it holds stays there; see: fedctl leftovers --cluster {name}")
    elif items and is_emptied:
        print(f"{_counted(items)} removed from it")
    elif items:
        print(f"{_counted(items)} left running in it, beside what replaces them in other clusters; they are yours now,")
        print(f"without the label of the federation; see: fedctl leftovers --cluster {name}")


def _counted(items: Sequence[Item]) -> str:
    replicas = sum(item.replicas for item in items)
    objects = to_count(len(items), "object")
    return f"{objects} with {to_count(replicas, 'replica')}" if replicas else objects
