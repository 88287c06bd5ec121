"""`fedctl rollout` for workloads without waves: the pods of each cluster, the budget that they share, and pauses.

A pause is that of the workload on the host, which `kubectl rollout pause` writes, too.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.errors import ApiError, ClusterError, ConfigurationError
from federation.apimachinery.resources import PODS, Object, Resource
from federation.apimachinery.selectors import format_label_selector
from federation.cli.applications.deliveryview import read_delivery
from federation.planning.status.podproblems import find_problem
from federation.planning.steps.strategy import is_paused as is_workload_paused
from federation.planning.steps.strategy import pause_patch
from federation.planning.waves.rolloutpart import replaces_pods
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console, print_field, print_rows

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_OK = "OK"
_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"


async def status(host: "HTTPClient", resource: Resource, workload: Object, text: str, output: str) -> int:
    """Print the pods of each cluster and why its update is not complete; return 0 if all are complete, 1 otherwise."""
    if not replaces_pods({"apiVersion": resource.api_version, "kind": resource.kind}):
        raise ConfigurationError(f"{text}: a {resource.kind} has no rollout, because it does not replace its pods")
    metadata = workload["metadata"]
    delivery = await read_delivery(host, resource, metadata.get("namespace", ""), metadata["name"])
    rows = delivery["clusters"]
    if any((row.get("rollout") or {}).get("problem") for row in rows):
        explain_rows(rows, await _pods(host, workload))
    waits = {row["cluster"]: _waits(row) for row in rows}
    is_complete = bool(rows) and not any(waits.values())
    if output != "table":
        print_document({**delivery, "state": _state(resource, workload, is_complete=is_complete)}, output)
        return 0 if is_complete else 1
    console = make_console()
    done = sum(not wait for wait in waits.values())
    console.print(f"{text}: {_state(resource, workload, is_complete=is_complete)}, {done}/{len(rows)} clusters")
    if budget := delivery.get("budget"):
        least = max(0, budget["replicas"] - budget["maxUnavailable"])
        most = budget["replicas"] + budget["maxSurge"]
        print_field(console, "budget:", f"in all clusters together at least {least} available and at most {most} pods")
    if failure := _failure(workload):
        print_field(console, "failure:", failure)
    listed = ([row["cluster"], *_counts(row), waits[row["cluster"]]] for row in rows)
    print_rows(rows, "table", "it runs in no cluster", listed, "CLUSTER, WANTED, UPDATED, READY, AVAILABLE", "WAITS")
    return 0 if is_complete else 1


async def pause(host: "HTTPClient", resource: Resource, workload: Object, *, is_paused: bool) -> None:
    """Pause or resume the updates of a workload; ConfigurationError for kinds without a pause."""
    patch, metadata = pause_patch(resource, is_paused=is_paused), workload["metadata"]
    if patch is None:
        raise ConfigurationError(
            f"{resource.kind} {metadata['name']}: a {resource.kind} has no field to pause its updates; pause them in"
            " waves: set spec.rollout in its policy"
        )
    await host.patch(resource, metadata["name"], patch, namespace=metadata.get("namespace", ""))


def _state(resource: Resource, workload: Object, *, is_complete: bool) -> str:
    if is_complete:
        return "Complete"
    return "Paused" if is_workload_paused(resource, workload) else "Progressing"


def _waits(row: Mapping[str, Any]) -> str:
    """Return why the update of a cluster is not complete, "" when it is."""
    if row["status"] not in ("", _OK):
        return str(row["message"] or row["status"])
    rollout = row.get("rollout")
    return str(row["message"] or "its state is not known") if rollout is None else str(rollout["problem"])


async def _pods(host: "HTTPClient", workload: Object) -> list[Object]:
    """Return the workload's pods of all members; [] where the user may not read them or the host has none."""
    selector = format_label_selector(workload["spec"].get("selector") or {})
    try:
        return (await host.list(PODS, workload["metadata"]["namespace"], label_selector=selector)).items
    except (ApiError, ClusterError):
        return []


def explain_rows(rows: Sequence[dict[str, Any]], pods: Sequence[Object]) -> None:
    """Add to each problem what is wrong with the pods in its cluster."""
    for row in rows:
        rollout, cluster = row.get("rollout") or {}, row["cluster"]
        here = [pod for pod in pods if (pod["metadata"].get("annotations") or {}).get(names.MEMBER_CLUSTER) == cluster]
        if rollout.get("problem") and (found := find_problem(here)) is not None:
            rollout["problem"] = f"{rollout['problem']}: {found.text}"


def _counts(row: Mapping[str, Any]) -> list[str]:
    rollout = row.get("rollout") or {}
    return [str(rollout.get(field, "-")) for field in ("wanted", "updated", "ready", "available")]


def _failure(workload: Object) -> str:
    """Return the message of an exceeded progress deadline, "" without one."""
    found = conditions.find((workload.get("status") or {}).get("conditions"), "Progressing") or {}
    return str(found.get("message") or "") if found.get("reason") == _DEADLINE_EXCEEDED else ""
