"""The commands `fedctl taint`, `cordon` and `uncordon`: the taints of one member (docs/reference/clusters.md)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import Conflict
from federation.client.client import Client
from federation.planning.clusters.taintedits import (
    apply_edits,
    cordoned,
    parse_edit,
    uncordoned,
)
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

Taints = Sequence[Mapping[str, Any]]
_ATTEMPTS_MAX = 10
"""The control plane writes the status of a cluster at any time, and the condition on the version may fail."""
Cluster = Annotated[
    str, typer.Argument(metavar="CLUSTER", autocompletion=candidates.clusters, help="Name of the member.")
]


def taint_command(
    name: Cluster,
    taints: Annotated[list[str], typer.Argument(metavar="TAINT...", help="Taints to add or, with -, to remove.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the value of a taint that exists.")] = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Add or remove taints of a member.

    The syntax is that of `kubectl taint`. NoSchedule keeps new replicas out; NoExecute also moves the present ones,
    those of policies that tolerate the taint when their toleration ends.

    \b
    fedctl taint frankfurt dedicated=gpu:NoSchedule
    fedctl taint frankfurt dedicated:NoSchedule-
    """  # noqa: D301  # the backspace keeps lines apart in the help
    execute(taint(KubeconfigContext(kubeconfig, context), name, taints, overwrite=overwrite))


def cordon_command(name: Cluster, kubeconfig: flags.Kubeconfig = None, context: flags.Context = "") -> None:
    """Keep new replicas out of a member.

    What is there stays. `fedctl uncordon` ends it.
    """
    execute(cordon(KubeconfigContext(kubeconfig, context), name))


def uncordon_command(name: Cluster, kubeconfig: flags.Kubeconfig = None, context: flags.Context = "") -> None:
    """Let a member take replicas again.

    Ends `fedctl cordon` and `fedctl drain`.
    """
    execute(uncordon(KubeconfigContext(kubeconfig, context), name))


async def taint(context: KubeconfigContext, name: str, texts: Sequence[str], *, overwrite: bool) -> None:
    """Add and remove taints; ConfigurationError names the wrong one, and nothing is changed then."""
    edits = [parse_edit(text) for text in texts]
    changed = await change_taints(
        context, name, lambda taints, now: apply_edits(taints, edits, now, overwrite=overwrite)
    )
    print(f'cluster "{name}" ' + ("tainted" if changed else "unchanged"))


async def cordon(context: KubeconfigContext, name: str) -> None:
    """Keep new replicas out of a member."""
    changed = await change_taints(context, name, cordoned)
    print(f'cluster "{name}" ' + ("cordoned" if changed else "already cordoned"))


async def uncordon(context: KubeconfigContext, name: str) -> None:
    """Remove the taints of `cordon` and `drain` from a member."""
    changed = await change_taints(context, name, lambda taints, now: uncordoned(taints))  # noqa: ARG005  # see `change_taints`
    print(f'cluster "{name}" ' + ("uncordoned" if changed else "already uncordoned"))


async def change_taints(context: KubeconfigContext, name: str, edit: Callable[[Taints, datetime], Taints]) -> bool:
    """Write the taints that `edit` returns for the present ones and the time; return False if nothing changes."""
    async with context.client() as host:
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                return await _write(host, name, edit)
            except Conflict:
                if attempt == _ATTEMPTS_MAX:
                    raise
    raise AssertionError


async def _write(host: Client, name: str, edit: Callable[[Taints, datetime], Taints]) -> bool:
    cluster = await host.get(FEDERATED_CLUSTERS, name)
    present = (cluster.get("spec") or {}).get("taints") or []
    wanted = list(edit(present, SystemClock().now()))
    if wanted == present:
        return False
    # A merge patch replaces the whole list: the version keeps the taints that somebody else adds at the same time.
    patch = {
        "metadata": {"resourceVersion": cluster["metadata"]["resourceVersion"]},
        "spec": {"taints": wanted or None},
    }
    await host.patch(FEDERATED_CLUSTERS, name, patch)
    return True
