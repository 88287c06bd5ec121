"""The command `fedctl queue`: the queues of a namespace, and the jobs that wait in one (docs/reference/queues.md)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import typer

from federation.api.resources import JOB_QUEUES
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.resources import Object
from federation.planning.waitingjobs import start_of, waiting_jobs
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.plaintext import print_document
from federation.terminal.printing import print_rows


def queue_command(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="A JobQueue; without it, all are listed.")] = "",
    namespace: flags.Namespace = "",
    everywhere: flags.AllNamespaces = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """List queues, or the jobs that wait in one and when they may start.

    Shows the position of each job and what it lacks.

    \b
    fedctl queue              the queues of the namespace
    fedctl queue -A           all queues
    fedctl queue team         the first jobs that wait in the queue
    """  # noqa: D301  # the backspace keeps lines apart in the help
    if name and everywhere:
        raise typer.BadParameter("NAME excludes -A")
    host = KubeconfigContext(kubeconfig, context)
    if name:
        execute(_show_one(host, namespace, name, output))
    else:
        execute(_show_all(host, "" if everywhere else namespace, output))


async def _show_all(context: KubeconfigContext, namespace: str, output: str) -> None:
    async with context.client() as host:
        items = (await host.list(JOB_QUEUES, namespace)).items
    items = sorted(items, key=lambda item: (item["metadata"]["namespace"], item["metadata"]["name"]))
    columns = "NAMESPACE, NAME, CLUSTER-QUEUE, PENDING, ADMITTED, NEXT"
    print_rows(items, output, "no queues", map(_row, items), columns, "MESSAGE")


def _row(queue: Object) -> list[str]:
    metadata, status = queue["metadata"], queue.get("status") or {}
    first = next(iter(waiting_jobs(queue)), None)
    return [
        metadata["namespace"],
        metadata["name"],
        str((queue.get("spec") or {}).get("clusterJobQueue")),
        str(status.get("pending", "")),
        str(status.get("admitted", "")),
        f"{first['kind']}/{first['name']}" if first else "",
        str(status.get("message") or ""),
    ]


async def _show_one(context: KubeconfigContext, namespace: str, name: str, output: str) -> None:
    async with context.client() as host:
        queue = await host.get(JOB_QUEUES, name, namespace)
    if output != "table":
        print_document(queue, output)
        return
    now, status = SystemClock().now(), queue.get("status") or {}
    jobs = waiting_jobs(queue)
    more = int(status.get("pending") or 0) - len(jobs)
    print_rows(
        jobs,
        output,
        str(status.get("message") or ("nothing waits" if not more else "the jobs that wait are not listed yet")),
        [_waiting_row(job, now) for job in jobs],
        "POSITION, KIND, NAME, START",
        "WAITS FOR",
    )
    if more > 0 and jobs:
        print(f"and {more} more")


def _waiting_row(job: Mapping[str, Any], now: datetime) -> list[str]:
    return [str(job["position"]), str(job["kind"]), str(job["name"]), start_of(job, now), str(job["waitsFor"])]
