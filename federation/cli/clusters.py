"""`fedctl join`, `unjoin`, `clusters` and `kubeconfig`."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from federation.api import names
from federation.api.quantity import to_int_ceil, to_milli
from federation.api.resources import FEDERATED_CLUSTERS, Object
from federation.base.clock import SystemClock, from_rfc3339
from federation.base.errors import ConfigurationError
from federation.cli import joining
from federation.cli.joining import JoinRequest
from federation.cli.printing import a_table, print_table, to_age, to_amount, to_console
from federation.cli.session import Session
from federation.client.kubeconfig import load_kubeconfig

_WIDE = 120
"""Columns of a terminal from which on several labels stand in one line."""


def to_join_request(
    name: str, kubeconfig: Path, context: str, labels: str, taints: str, *, use_service_account: bool
) -> JoinRequest:
    """Return what to join, from the command's arguments; ConfigurationError names the argument that is wrong."""
    return JoinRequest(
        name=name,
        connection=load_kubeconfig(kubeconfig, context),
        labels=joining.parse_labels(labels),
        taints=joining.parse_taints(taints),
        use_service_account=use_service_account,
    )


async def join(session: Session, request: JoinRequest, *, wait: bool, timeout_s: float) -> None:
    """Join a member and say so."""
    async with session.client() as host:
        await joining.join(host, request)
        if wait:
            await joining.wait_ready(host, request.name, SystemClock(), timeout_s)
    print(f'cluster "{request.name}" joined' + (" and is ready" if wait else ""))


async def unjoin(session: Session, name: str, *, timeout_s: float) -> None:
    """Remove a member and say so."""
    async with session.client() as host:
        await joining.unjoin(host, name, SystemClock(), timeout_s)
    print(f'cluster "{name}" left the federation')


async def show(session: Session, output: str) -> None:
    """Print the members."""
    async with session.client() as host:
        items = (await host.list(FEDERATED_CLUSTERS)).items
    if output == "json":
        print(orjson.dumps(items, option=orjson.OPT_INDENT_2).decode())
        return
    if not items:
        print("no member clusters; add one with: fedctl join NAME --kubeconfig FILE")
        return
    console, table = to_console(), a_table()
    for heading in ("NAME", "STATUS", "NODES", "CPU FREE", "MEMORY FREE", "AGE"):
        table.add_column(heading, no_wrap=True)
    for heading in ("TAINTS", "LABELS"):
        table.add_column(heading, overflow="fold")
    now = SystemClock().now()
    separator = "," if not console.is_terminal else ", " if console.width >= _WIDE else "\n"
    for item in sorted(items, key=lambda i: i["metadata"]["name"]):
        table.add_row(*_row(item, now, separator))
    print_table(console, table)


def _row(cluster: Object, now: datetime, separator: str) -> list[str]:
    status = cluster.get("status") or {}
    conditions = {c["type"]: c for c in status.get("conditions", ())}
    resources = status.get("resources") or {}
    free, total = resources.get("available") or {}, resources.get("allocatable") or {}
    taints = separator.join(f"{t['key']}={t.get('value', '')}:{t['effect']}" for t in cluster["spec"].get("taints", ()))
    labels = separator.join(f"{k}={v}" for k, v in sorted((cluster["metadata"].get("labels") or {}).items()))
    return [
        cluster["metadata"]["name"],
        _state(conditions),
        str(resources.get("schedulableNodes", "-")),
        *(_free(free.get(resource), total.get(resource), resource) for resource in ("cpu", "memory")),
        to_age(now, from_rfc3339(cluster["metadata"]["creationTimestamp"])),
        taints or "-",
        labels or "-",
    ]


def _state(conditions: Mapping[str, Mapping[str, Any]]) -> str:
    """Return Ready, or what the cluster is not, with the reason."""
    for type_, without in ((names.CLUSTER_JOINED, "NotJoined"), (names.CLUSTER_READY, "NotReady")):
        condition = conditions.get(type_)
        if condition is None:
            return "Unknown"
        if condition["status"] != "True":
            reason = condition.get("reason")
            return f"{without} ({reason})" if reason else without
    return "Ready"


def _free(free: str | None, total: str | None, resource: str) -> str:
    """Return what is free of what there is."""
    to_int = to_milli if resource == "cpu" else to_int_ceil
    amounts = ("-" if quantity is None else to_amount(resource, to_int(str(quantity))) for quantity in (free, total))
    return "/".join(amounts)


def print_kubeconfig(directory: Path) -> None:
    """Print where the kubeconfig of a state directory is."""
    path = directory.expanduser().absolute() / "kubeconfig"
    if not path.exists():
        raise ConfigurationError(f"{path} does not exist; start the federation with: fedctl up --dir {directory}")
    print(path)
