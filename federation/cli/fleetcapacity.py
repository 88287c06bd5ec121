"""The command `fedctl capacity`: free room of the members, and what the loss of one would do.

The control plane computes it (`/federation/v1/capacity`); the web UI shows the same answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federation.apimachinery.amounts import to_amount, to_count
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext, get_json
from federation.terminal.plaintext import print_document
from federation.terminal.printing import print_rows

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_PATH = "/federation/v1/capacity"
_PAGE = "500"


def capacity_command(
    without: Annotated[
        str,
        typer.Option(
            "--without",
            metavar="CLUSTER",
            autocompletion=candidates.clusters,
            help="Only this cluster: the workloads in it, and which replicas find no room without it.",
        ),
    ] = "",
    cpu: Annotated[str, typer.Option("--cpu", metavar="AMOUNT", help="CPU of a pod, for the column FITS.")] = "500m",
    memory: Annotated[str, typer.Option("--memory", metavar="AMOUNT", help="Memory of that pod.")] = "512Mi",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """Show the free room of the members, and which of them can be lost.

    FITS is the number of pods of --cpu and --memory that a member takes. NO ROOM counts the divided replicas of the
    member that fit into no other one, STAY those that may not leave by their policy. It is an estimate by requests;
    `fedctl plan --taint CLUSTER=lost:NoExecute` schedules each workload.

    Exit code: 1 if replicas of the member --without find no room, 0 otherwise.

    \b
    fedctl capacity --cpu 2 --memory 4Gi
    fedctl capacity --without frankfurt
    """  # noqa: D301  # the backspace keeps lines apart in the help
    pod = PodSize(cpu, memory)
    execute(show(KubeconfigContext(kubeconfig, context), pod, without, output))


@dataclass(frozen=True, slots=True)
class PodSize:
    """The pod to fit into clusters, as quantities."""

    cpu: str
    memory: str


async def show(context: KubeconfigContext, pod: PodSize, without: str, output: str) -> int:
    """Print all members, or the one that is lost; return 1 if its replicas find no room."""
    query = {"cpu": pod.cpu, "memory": pod.memory, "limit": _PAGE}
    async with context.client() as host:
        items = await _read(host, {**query, "without": without} if without else query)
    if not without:
        rows = map(_row, items)
        headings = "CLUSTER, READY, CPU FREE, MEMORY FREE, FITS, REPLICAS, NO ROOM, STAY"
        print_rows(items, output, "no cluster has joined", rows, headings, "")
        return 0
    (item,) = items
    if output == "table":
        _print_loss(item)
    else:
        print_document(item, output)
    return 1 if item["loss"]["homeless"] else 0


async def _read(host: "HTTPClient", query: Mapping[str, str]) -> list[Any]:
    items: list[Any] = []
    more = dict(query)
    while True:
        answer: Any = await get_json(host, _PATH, more)
        items += answer["items"]
        if not (after := answer["metadata"].get("continue")):
            return items
        more["continue"] = after


def _row(item: Mapping[str, Any]) -> list[str]:
    free = (
        f"{to_amount(name, item['available'][name])} of {to_amount(name, item['allocatable'][name])}"
        for name in ("cpu", "memory")
    )
    loss = item["loss"]
    fits = f"{item['fits']} ({waiting} wait)" if (waiting := item.get("waiting")) else str(item["fits"])
    counts = (loss["replicas"], loss["homeless"], loss["staying"])
    return [item["cluster"], "yes" if item["isReady"] else "no", *free, fits, *map(str, counts)]


def _print_loss(item: Mapping[str, Any]) -> None:
    loss, name = item["loss"], item["cluster"]
    rows = (
        [
            f"{each['kind']} {each['namespace']}/{each['name']}",
            *(str(each[field]) for field in ("replicas", "homeless", "staying")),
        ]
        for each in item["workloads"]
    )
    headings = "WORKLOAD, REPLICAS, NO ROOM, STAY"
    print_rows(item["workloads"], "table", f"{name} has no divided replicas", rows, headings, "")
    if not loss["replicas"]:
        return
    if loss["homeless"]:
        print(f"without {name}, {loss['homeless']} of {to_count(loss['replicas'], 'replica')} would find no room")
    else:
        leaving = to_count(loss["replicas"] - loss["staying"], "replica")
        print(f"{name} can be lost: the {leaving} that may leave fit into other clusters")
    if loss["staying"]:
        print(f"{to_count(loss['staying'], 'replica')} may not leave it, and would be down")
