"""The command `fedctl leftovers`: objects of the federation that are still in members, and what happens to them."""

from datetime import datetime
from typing import Annotated

import typer

from federation.api.resources import FEDERATED_CLUSTERS, LEFTOVERS
from federation.apimachinery import conditions
from federation.apimachinery.clock import SystemClock, from_rfc3339
from federation.apimachinery.resources import Object
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.plaintext import to_age
from federation.terminal.printing import print_rows

_WHEN = {
    "Delete": "is deleted",
    "Release": "is released, it stays without our label",
    "ReleaseAdopted": "is deleted, or released if it was there before",
    "Keep": 'stays; to delete it: kubectl patch leftover {name} --type merge -p \'{{"spec":{{"action":"Delete"}}}}\'',
}
_ADOPT = "; to manage it where a policy places it: fedctl adopt {target} --cluster {cluster}"


def leftovers_command(
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster", metavar="NAME", autocompletion=candidates.clusters, help="Only those of this cluster."
        ),
    ] = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """List what is left in members.

    Objects that were deleted while their cluster did not answer, objects that clusters kept when they left, managed
    objects that the federation does not know, and those that are too many to be removed at once. To forget one: kubectl
    delete leftover NAME.
    """
    execute(show(KubeconfigContext(kubeconfig, context), cluster, output))


async def show(context: KubeconfigContext, cluster: str, output: str) -> None:
    """Print the leftovers of one cluster, or of all for ""."""
    async with context.client() as host:
        found = (await host.list(LEFTOVERS)).items
        members = {item["metadata"]["name"]: item for item in (await host.list(FEDERATED_CLUSTERS)).items}
    items = [item for item in found if _is_left(item["spec"], cluster)]
    now = SystemClock().now()
    empty = "nothing is left behind" + (f' in cluster "{cluster}"' if cluster else "")
    rows = (_row(item, members.get(str(item["spec"].get("cluster"))), now) for item in sorted(items, key=_order))
    print_rows(items, output, empty, rows, "CLUSTER, KIND, OBJECT, REASON, AGE", "WHAT HAPPENS")


def _is_left(spec: Object, cluster: str) -> bool:
    """Return whether the record is about an object in this cluster, or in any for ""; a deleted Secret's is not."""
    return spec.get("reason") != "Revoked" and cluster in ("", spec.get("cluster"))


def _order(leftover: Object) -> tuple[str, ...]:
    spec = leftover["spec"]
    return (*(str(spec.get(field) or "") for field in ("cluster", "namespace", "name")), _kind(spec))


def _kind(spec: Object) -> str:
    return str((spec.get("resource") or {}).get("kind", ""))


def _target(spec: Object) -> str:
    """Return the object as commands name it."""
    namespace = f" -n {spec['namespace']}" if spec.get("namespace") else ""
    return f"{_kind(spec).lower()}/{spec.get('name')}{namespace}"


def _row(leftover: Object, member: Object | None, now: datetime) -> list[str]:
    spec = leftover["spec"]
    what = _WHEN.get(str(spec.get("action")), str(spec.get("action"))).format(name=leftover["metadata"]["name"])
    if spec.get("action") == "Keep" and spec.get("reason") == "Kept":
        what += _ADOPT.format(target=_target(spec), cluster=spec.get("cluster"))
    return [
        str(spec.get("cluster")),
        _kind(spec),
        "/".join(filter(None, (spec.get("namespace"), spec.get("name")))),
        str(spec.get("reason")),
        to_age(now, from_rfc3339(leftover["metadata"]["creationTimestamp"])),
        what if spec.get("action") == "Keep" else f"{what} {_when(member)}",
    ]


def _when(member: Object | None) -> str:
    """Return when the action is taken."""
    if member is None:
        return "when the cluster joins again"
    is_ready = conditions.is_true((member.get("status") or {}).get("conditions"), "Ready")
    return "now" if is_ready else "when the cluster answers"
