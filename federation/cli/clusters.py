"""The commands `fedctl join`, `unjoin` and `kubeconfig`."""

from collections.abc import Sequence
from pathlib import Path

from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ConfigurationError
from federation.cli import joining, membercredentials
from federation.cli.draining import Item, items_in
from federation.cli.joining import JoinRequest
from federation.client.client import Client
from federation.client.kubeconfig import load_kubeconfig
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.progress import Progress


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


async def join(context: KubeconfigContext, request: JoinRequest, *, wait: bool, timeout_s: float) -> None:
    """Join a member and print the result."""
    with Progress() as progress:
        async with context.client() as host:
            await joining.join(host, request, report=progress.report)
            if wait:
                await _wait_ready(host, request, timeout_s, progress)
    print(f'cluster "{request.name}" joined' + (" and is ready" if wait else ""))


async def _wait_ready(host: Client, request: JoinRequest, timeout_s: float, progress: Progress) -> None:
    try:
        await joining.wait_ready(host, request.name, SystemClock(), timeout_s, progress.report)
    except ConfigurationError:
        progress.report("undoing the join")
        await joining.withdraw(host, request, SystemClock(), timeout_s)
        raise


async def update_credentials(
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


async def unjoin(context: KubeconfigContext, name: str, *, is_removing: bool, reason: str, timeout_s: float) -> None:
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
        print(f"{_counted(items)} left running in it, beside what replaces them in other clusters")


def _counted(items: Sequence[Item]) -> str:
    replicas = sum(item.replicas for item in items)
    objects = to_count(len(items), "object")
    return f"{objects} with {to_count(replicas, 'replica')}" if replicas else objects


def print_kubeconfig(directory: Path, *, is_raw: bool = False) -> None:
    """Print the path of a state directory's kubeconfig, or the file itself: images without a shell have no `cat`."""
    path = directory.expanduser().absolute() / "kubeconfig"
    if not path.exists():
        raise ConfigurationError(f"{path} does not exist; start the federation with: fedctl up --dir {directory}")
    print(path.read_text() if is_raw else path, end="" if is_raw else "\n")
