"""`fedctl top pods|nodes`: the use of CPU and memory in all members, as their metrics servers measure it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import typer

from federation.apimachinery.errors import ClusterError, NotFound
from federation.apimachinery.quantity import to_milli
from federation.apimachinery.resources import NODES, POD_METRICS, Object, Resource
from federation.cli.members import memberflags
from federation.cli.members.access import Member
from federation.cli.members.fanout import ask, find_members, print_problems
from federation.cli.members.lookup import Scope, not_found, read_items, read_one
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.plaintext import print_columns, print_document

_NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", namespaced=False)
_MEBI = 1000 * 2**20
"""Thousandths of a byte in a MiB."""
KINDS = {"pod": POD_METRICS, "pods": POD_METRICS, "po": POD_METRICS}
KINDS |= {"node": _NODE_METRICS, "nodes": _NODE_METRICS, "no": _NODE_METRICS}


def top_command(
    kind: Annotated[str, typer.Argument(metavar="pods|nodes", help="What to measure.")],
    name: Annotated[str, typer.Argument(metavar="[NAME]", show_default=False, help="Only this one.")] = "",
    clusters: memberflags.Clusters = None,
    namespace: flags.Namespace = "",
    everywhere: flags.AllNamespaces = False,
    selector: flags.Selector = "",
    order: Annotated[
        Literal["cpu", "memory", ""], typer.Option("--sort-by", metavar="RESOURCE", help="cpu or memory.")
    ] = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: memberflags.Patience = None,
    output: flags.OutputFormat = "table",
) -> None:
    """Show the CPU and memory that pods or nodes of the members use.

    Needs a metrics server in each member.

    \b
    fedctl top nodes
    fedctl top pods -A --sort-by memory
    """  # noqa: D301  # the backspace keeps lines apart in the help
    kind, _, given = kind.partition("/")
    if kind.lower() not in KINDS:
        raise typer.BadParameter(f"{kind!r}: give pods or nodes")
    scope = memberflags.to_scope(namespace, clusters, selector, timeout, name or given, everywhere=everywhere)
    target = KubeconfigContext(kubeconfig, context)
    execute(top(target, KINDS[kind.lower()], name or given, scope, order, output))


class Use(NamedTuple):
    """The use of a pod or a node, in thousandths of a CPU and of a byte; -1 if it is unknown."""

    cluster: str
    namespace: str
    name: str
    cpu: int
    memory: int
    cpu_total: int = -1
    memory_total: int = -1


_ORDERS: Mapping[str, Callable[[Use], tuple[Any, ...]]] = {
    "": lambda use: (use.cluster, use.namespace, use.name),
    "cpu": lambda use: (-use.cpu, use.cluster, use.name),
    "memory": lambda use: (-use.memory, use.cluster, use.name),
}


async def top(context: KubeconfigContext, kind: Resource, name: str, scope: Scope, order: str, output: str) -> int:
    """Print the use of pods or nodes; return the exit code."""
    async with context.client() as host:
        members = await find_members(host, scope.clusters, scope.patience_s, scope.namespace)
        found = await ask(members, partial(_uses, kind=kind, scope=scope, name=name))
    uses = sorted((use for each in found.values.values() for use in each), key=_ORDERS[order])
    if output != "table":
        print_document([_to_document(use) for use in uses], output)
    elif uses:
        _print_table(uses, kind, has_namespace=kind.namespaced and not scope.namespace)
    print_problems(found.problems)
    return found.code if uses else not_found(f"metrics of {kind.plural}", name, found.values) or found.code


async def _uses(member: Member, kind: Resource, scope: Scope, name: str) -> list[Use]:
    try:
        if name:
            one = await read_one(member, kind, scope.namespace, name)
            items = [one] if one is not None else []
        else:
            items = await read_items(member, kind, scope)
    except NotFound as error:
        if error.message.startswith("cluster "):  # the host's own words: the member was not asked
            raise
        raise ClusterError(f"serves no metrics of {kind.plural}; a metrics server is needed there") from error
    totals: dict[str, Mapping[str, str]] = {}
    if kind == _NODE_METRICS:
        nodes = await read_items(member, NODES, Scope(""))
        totals = {node["metadata"]["name"]: (node.get("status") or {}).get("allocatable") or {} for node in nodes}
    return [to_use(member.name, item, totals.get(item["metadata"]["name"]) or {}) for item in items]


def to_use(cluster: str, metrics: Object, total: Mapping[str, str]) -> Use:
    """Return the use in PodMetrics or NodeMetrics; a node's also against what pods can have there."""
    metadata = metrics["metadata"]
    usages = (
        [metrics["usage"]] if "usage" in metrics else [c.get("usage") or {} for c in metrics.get("containers") or ()]
    )
    cpu, memory = (_sum(usages, resource) for resource in ("cpu", "memory"))
    cpu_total, memory_total = (to_milli(total[each]) if each in total else -1 for each in ("cpu", "memory"))
    return Use(cluster, metadata.get("namespace") or "", metadata["name"], cpu, memory, cpu_total, memory_total)


def _sum(usages: Sequence[Mapping[str, str]], resource: str) -> int:
    amounts = [to_milli(str(usage[resource])) for usage in usages if resource in usage]
    return sum(amounts) if amounts else -1


def _print_table(uses: Sequence[Use], kind: Resource, *, has_namespace: bool) -> None:
    is_node = kind == _NODE_METRICS
    headings = ["CLUSTER", *(["NAMESPACE"] if has_namespace else []), "NAME"]
    headings += ["CPU", "CPU%", "MEMORY", "MEMORY%"] if is_node else ["CPU", "MEMORY"]
    lines = []
    for use in uses:
        cpu, memory = _amount(use.cpu, 1, "m"), _amount(use.memory, _MEBI, "Mi")
        amounts = [cpu, memory]
        if is_node:
            amounts = [cpu, _percent(use.cpu, use.cpu_total), memory, _percent(use.memory, use.memory_total)]
        lines.append([use.cluster, *([use.namespace] if has_namespace else []), use.name, *amounts])
    print_columns(headings, lines)


def _amount(value: int, unit: int, suffix: str) -> str:
    return f"{value // unit}{suffix}" if value >= 0 else "-"


def _percent(value: int, total: int) -> str:
    return f"{100 * value // total}%" if value >= 0 and total > 0 else "-"


def _to_document(use: Use) -> dict[str, Any]:
    return {
        "cluster": use.cluster,
        **({"namespace": use.namespace} if use.namespace else {}),
        "name": use.name,
        "cpu": _amount(use.cpu, 1, "m"),
        "memory": _amount(use.memory, _MEBI, "Mi"),
    }
