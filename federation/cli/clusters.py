"""The commands `fedctl join`, `unjoin`, `clusters` and `kubeconfig`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import SystemClock, from_rfc3339
from federation.apimachinery.conditions import find
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.quantity import to_int_ceil, to_milli
from federation.apimachinery.resources import Object
from federation.cli import joining, membercredentials
from federation.cli.joining import JoinRequest
from federation.cli.terminal.kubeconfigcontext import KubeconfigContext
from federation.cli.terminal.printing import make_console, print_rows, to_age, to_amount
from federation.client.kubeconfig import load_kubeconfig
from federation.planning.clusters.clustertaints import describe_taint
from federation.planning.failover.halts import halt_of

_WIDE = 120
"""Terminals of at least this many columns show several labels on one line."""


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
    async with context.client() as host:
        await joining.join(host, request)
        if wait:
            try:
                await joining.wait_ready(host, request.name, SystemClock(), timeout_s)
            except ConfigurationError:
                await joining.withdraw(host, request, SystemClock(), timeout_s)
                raise
    print(f'cluster "{request.name}" joined' + (" and is ready" if wait else ""))


async def update_credentials(
    context: KubeconfigContext, name: str, kubeconfig: Path | None, member_context: str, *, timeout_s: float
) -> None:
    """Replace a member's credentials and print the result."""
    given = load_kubeconfig(kubeconfig, member_context) if kubeconfig is not None else None
    async with context.client() as host:
        replaced = await membercredentials.replace_credentials(host, name, given, SystemClock(), timeout_s)
    print(f'cluster "{name}" has new credentials (service account {replaced.account})')
    if replaced.previous_expires is not None:
        print(f"the previous token expires: {replaced.previous_expires}; to revoke it now, add --kubeconfig FILE")


async def unjoin(context: KubeconfigContext, name: str, *, reason: str, timeout_s: float) -> None:
    """Remove a member, by force with a `reason`, and print the result."""
    async with context.client() as host:
        await joining.unjoin(host, name, SystemClock(), timeout_s, reason=reason)
    print(f'cluster "{name}" left the federation')
    if reason:
        print(f"what it holds stays there; see: fedctl leftovers --cluster {name}")


async def show(context: KubeconfigContext, output: str) -> None:
    """Print the members."""
    async with context.client() as host:
        items = (await host.list(FEDERATED_CLUSTERS)).items
    console, now = make_console(), SystemClock().now()
    separator = "," if not console.is_terminal else ", " if console.width >= _WIDE else "\n"
    rows = (_row(item, now, separator) for item in sorted(items, key=lambda item: str(item["metadata"]["name"])))
    empty = "no member clusters; add one with: fedctl join NAME --kubeconfig FILE"
    headings = "NAME, STATUS, HEARTBEAT, NODES, CPU FREE, MEMORY FREE, AGE"
    print_rows(items, output, empty, rows, headings, "TAINTS, LABELS")
    if output != "json":
        for line in filter(None, map(_halt, items)):
            print(line)


def _halt(cluster: Object) -> str:
    """Return why no replicas leave a lost or drained cluster, "" if they may."""
    reason = halt_of(cluster)
    return f"failover of {cluster['metadata']['name']} halts: {reason}" if reason else ""


def _row(cluster: Object, now: datetime, separator: str) -> list[str]:
    status = cluster.get("status") or {}
    resources = status.get("resources") or {}
    free, total = resources.get("available") or {}, resources.get("allocatable") or {}
    # The domain of our own keys would make the column too wide for a terminal.
    described = map(describe_taint, cluster["spec"].get("taints") or ())
    taints = separator.join(text.removeprefix(names.TAINT_PREFIX) for text in described)
    labels = separator.join(f"{k}={v}" for k, v in sorted((cluster["metadata"].get("labels") or {}).items()))
    return [
        cluster["metadata"]["name"],
        _state(status.get("conditions")),
        _heartbeat(status.get("conditions"), now),
        str(resources.get("schedulableNodes", "-")),
        *(_free(free.get(resource), total.get(resource), resource) for resource in ("cpu", "memory")),
        to_age(now, from_rfc3339(cluster["metadata"]["creationTimestamp"])),
        taints or "-",
        labels or "-",
    ]


def _state(conditions: Sequence[Mapping[str, Any]] | None) -> str:
    """Return Ready, or the condition that is not fulfilled with its reason; missing rights hold single kinds only."""
    for type_, text in ((names.CLUSTER_JOINED, "NotJoined"), (names.CLUSTER_READY, "NotReady")):
        condition = find(conditions, type_)
        if condition is None:
            return "Unknown"
        if condition["status"] != "True":
            reason = condition.get("reason")
            return f"{text} ({reason})" if reason else text
    authorized = find(conditions, names.CLUSTER_AUTHORIZED)
    if authorized is not None and authorized["status"] == "False":
        return f"Ready ({authorized.get('reason') or 'NotAuthorized'})"
    return "Ready"


def _heartbeat(conditions: Sequence[Mapping[str, Any]] | None, now: datetime) -> str:
    """Return the age of the last published probe, "-" before the first."""
    condition = find(conditions, names.CLUSTER_READY)
    probed = condition.get("lastProbeTime") if condition is not None else None
    return to_age(now, from_rfc3339(probed)) if probed else "-"


def _free(free: str | None, total: str | None, resource: str) -> str:
    """Return `FREE/TOTAL`."""
    to_int = to_milli if resource == "cpu" else to_int_ceil
    amounts = ("-" if quantity is None else to_amount(resource, to_int(str(quantity))) for quantity in (free, total))
    return "/".join(amounts)


def print_kubeconfig(directory: Path, *, is_raw: bool = False) -> None:
    """Print the path of a state directory's kubeconfig, or the file itself: images without a shell have no `cat`."""
    path = directory.expanduser().absolute() / "kubeconfig"
    if not path.exists():
        raise ConfigurationError(f"{path} does not exist; start the federation with: fedctl up --dir {directory}")
    print(path.read_text() if is_raw else path, end="" if is_raw else "\n")
