"""The command `fedctl clusters [NAME]`: the members as a list, or one in detail."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any

import typer

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.amounts import first_of, to_amount
from federation.apimachinery.clock import SystemClock, from_rfc3339
from federation.apimachinery.conditions import find
from federation.apimachinery.quantity import to_int_ceil, to_milli
from federation.apimachinery.resources import Object
from federation.planning.clusters.clustertaints import describe_taint
from federation.planning.clusters.health import PROBE_TIME_REFRESH_S
from federation.planning.clusters.memberrights import UPDATE_ALL, lacks_rights
from federation.planning.failover.halts import fault_of, halt_of
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.plaintext import print_document, to_age, to_name
from federation.terminal.printing import make_console, print_field, print_rows
from federation.terminal.watching import Listing, print_listing

_WIDE = 120
"""Terminals of at least this many columns show several labels on one line."""
_EMPTY = "no member clusters; add one with: fedctl join NAME --kubeconfig FILE"
_HEADINGS = "NAME, STATUS, SINCE, NODES, CPU FREE, MEMORY FREE, AGE"
_WIDE_HEADINGS = "NAME, STATUS, SINCE, VERSION, REGION, NODES, CPU FREE, MEMORY FREE, HEARTBEAT, AGE"
_LABEL_WIDTH = 14
_NAMED_MAX = 5
"""Clusters that a line names."""


def clusters_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]",
            autocompletion=candidates.clusters,
            show_default=False,
            help="Only this member, in detail.",
        ),
    ] = "",
    selector: flags.Selector = "",
    watch: flags.Watch = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.ListFormat = "table",
) -> None:
    """List the members, their health, taints and free resources.

    SINCE says for how long a cluster has been ready or not. With -o wide also the version of Kubernetes, the region,
    and HEARTBEAT: how long ago an answer of the cluster was recorded.

    \b
    fedctl clusters -l region=eu
    fedctl clusters frankfurt
    """  # noqa: D301  # the backspace keeps lines apart in the help
    if name and (selector or watch):
        raise typer.BadParameter("NAME excludes --selector and --watch")
    target = KubeconfigContext(kubeconfig, context)
    execute(show(target, name, selector, output, is_watched=watch))


async def show(context: KubeconfigContext, name: str, selector: str, output: str, *, is_watched: bool) -> None:
    """Print the members that the selector selects, or one in detail."""
    if name:
        await _show_one(context, name, output)
        return
    console = make_console()
    separator = "," if not console.is_terminal else ", " if console.width >= _WIDE else "\n"
    is_wide = output == "wide"
    listing = Listing(
        FEDERATED_CLUSTERS,
        _WIDE_HEADINGS if is_wide else _HEADINGS,
        "TAINTS, LABELS",
        f"no member cluster has the labels {selector}" if selector else _EMPTY,
        partial(_row, separator="," if is_watched else separator, is_wide=is_wide),
        selector,
    )
    async with context.client() as host:
        items = await print_listing(host, listing, output, is_watched=is_watched)
    if output in ("table", "wide"):
        for line in (*filter(None, (*map(_fault, items), *map(_halt, items))), *missing_rights(items)):
            print(line)


async def _show_one(context: KubeconfigContext, name: str, output: str) -> None:
    async with context.client() as host:
        cluster = await host.get(FEDERATED_CLUSTERS, name)
    if output in ("json", "yaml"):
        print_document(cluster, output)
    elif output == "name":
        print(to_name(cluster))
    else:
        _print_one(cluster, SystemClock().now())


def _print_one(cluster: Object, now: datetime) -> None:
    """Print everything that is of use about a member; what is unknown is left out."""
    console, status, spec = make_console(), cluster.get("status") or {}, cluster.get("spec") or {}
    metadata, credential = cluster["metadata"], status.get("credential") or {}
    conditions = status.get("conditions") or ()
    address = str(spec.get("apiEndpoint") or "")
    taints = ", ".join(map(describe_taint, spec.get("taints") or ()))
    labels = ", ".join(f"{key}={value}" for key, value in sorted((metadata.get("labels") or {}).items()))
    fields = {
        "name": metadata["name"],
        "status": f"{_state(conditions)}{_silence(conditions, now)}",
        "since": _since(conditions, now),
        "heartbeat": _heartbeat(conditions, now),
        "version": status.get("kubernetesVersion"),
        "region": status.get("region"),
        "address": address,
        "credential": _credential(credential, now),
        "labels": labels,
        "taints": taints,
        "age": to_age(now, from_rfc3339(metadata["creationTimestamp"])),
        "not lost": fault_of(cluster),
        "failover halts": _halt(cluster),
    }
    for label, text in fields.items():
        if text and text != "-":
            print_field(console, f"{label}:", str(text), width=_LABEL_WIDTH + 2)
    resources = status.get("resources") or {}
    if resources:
        print()
        total, free = resources.get("allocatable") or {}, resources.get("available") or {}
        rows = [["nodes", str(resources.get("schedulableNodes", "-")), "-"]]
        rows += [[each, _amount(total.get(each), each), _amount(free.get(each), each)] for each in sorted(total)]
        print_rows(rows, "table", "", rows, "RESOURCE, CAPACITY, FREE", "")
    if conditions:
        print()
        rows = [
            [
                each["type"],
                each["status"],
                _age(each.get("lastTransitionTime"), now),
                each.get("reason") or "-",
                each.get("message") or "-",
            ]
            for each in conditions
        ]
        print_rows(rows, "table", "", rows, "CONDITION, STATUS, SINCE, REASON", "MESSAGE")


def _credential(credential: Mapping[str, Any], now: datetime) -> str:
    """Return the account that is used in the member, and how long its token is valid."""
    if not credential:
        return ""
    account = f"service account {credential.get('serviceAccount')}"
    expires = credential.get("expires")
    if not expires:
        return account
    end = from_rfc3339(expires)
    left = f"expires in {to_age(end, now)}" if end > now else f"expired {to_age(now, end)} ago"
    return f"{account}, token {left}"


def _halt(cluster: Object) -> str:
    """Return why no replicas leave a lost or drained cluster, "" if they may."""
    reason = halt_of(cluster)
    return f"failover of {cluster['metadata']['name']} halts: {reason}" if reason else ""


def _fault(cluster: Object) -> str:
    """Return why a cluster is not ready for a reason of ours, and the remedy, "" for any other cluster."""
    reason = fault_of(cluster)
    return f"{cluster['metadata']['name']} is not lost, nothing leaves it: {reason}" if reason else ""


def missing_rights(clusters: Sequence[Object]) -> list[str]:
    """Return a line for each set of missing rights, with the clusters and the command that grants them to all."""
    lacking: dict[str, list[str]] = {}
    for cluster in filter(lacks_rights, clusters):
        condition = find(cluster["status"]["conditions"], names.CLUSTER_AUTHORIZED) or {}
        what = str(condition.get("message") or condition.get("reason") or "").partition("; grant them with")[0]
        lacking.setdefault(what, []).append(cluster["metadata"]["name"])
    return [
        f"{first_of(listed, _NAMED_MAX)}: {what}; grant them with: {UPDATE_ALL}" for what, listed in lacking.items()
    ]


def _row(cluster: Object, now: datetime, *, separator: str, is_wide: bool) -> list[str]:
    status = cluster.get("status") or {}
    resources, conditions = status.get("resources") or {}, status.get("conditions")
    free, total = resources.get("available") or {}, resources.get("allocatable") or {}
    # The domain of our own keys would make the column too wide for a terminal.
    described = map(describe_taint, cluster["spec"].get("taints") or ())
    taints = separator.join(text.removeprefix(names.TAINT_PREFIX) for text in described)
    labels = separator.join(f"{k}={v}" for k, v in sorted((cluster["metadata"].get("labels") or {}).items()))
    about = (status.get("kubernetesVersion") or "-", status.get("region") or "-") if is_wide else ()
    return [
        cluster["metadata"]["name"],
        _state(conditions) + _silence(conditions, now),
        _since(conditions, now),
        *about,
        str(resources.get("schedulableNodes", "-")),
        *(f"{_amount(free.get(each), each)}/{_amount(total.get(each), each)}" for each in ("cpu", "memory")),
        *((_heartbeat(conditions, now),) if is_wide else ()),
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


def _since(conditions: Sequence[Mapping[str, Any]] | None, now: datetime) -> str:
    """Return for how long the cluster has been ready or not, "-" before the first probe."""
    return _age((find(conditions, names.CLUSTER_READY) or {}).get("lastTransitionTime"), now)


def _heartbeat(conditions: Sequence[Mapping[str, Any]] | None, now: datetime) -> str:
    """Return how long ago the control plane recorded an answer of the cluster, "-" before the first probe."""
    return _age((find(conditions, names.CLUSTER_READY) or {}).get("lastProbeTime"), now)


def _age(time: str | None, now: datetime) -> str:
    return to_age(now, from_rfc3339(time)) if time else "-"


def _silence(conditions: Sequence[Mapping[str, Any]] | None, now: datetime) -> str:
    """Return a note if the control plane has missed two of its reports: it may not be running."""
    probed = (find(conditions, names.CLUSTER_READY) or {}).get("lastProbeTime")
    if not probed or (now - from_rfc3339(probed)).total_seconds() < 2 * PROBE_TIME_REFRESH_S:
        return ""
    return f" (not probed for {to_age(now, from_rfc3339(probed))})"


def _amount(quantity: object, resource: str) -> str:
    """Return an amount of a resource, "-" if it is unknown."""
    if quantity is None:
        return "-"
    return to_amount(resource, (to_milli if resource == "cpu" else to_int_ceil)(str(quantity)))
