"""The commands `fedctl taint`, `cordon` and `uncordon`: the taints of one member (docs/reference/clusters.md)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

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
from federation.terminal.kubeconfigcontext import KubeconfigContext

Taints = Sequence[Mapping[str, Any]]
_ATTEMPTS_MAX = 10
"""The control plane writes the status of a cluster at any time, and the condition on the version may fail."""


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
