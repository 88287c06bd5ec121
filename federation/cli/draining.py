"""The command `fedctl drain`: add the drain taint, and follow the replicas until nothing more can leave.

The control plane moves them, make before break, and records in annotation `names.EVICTION` of each federated object why
replicas stay (docs/reference/failover.md). This module writes nothing but the taint.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from federation.api.resources import (
    FEDERATED_CLUSTERS,
)
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.listening import Patience
from federation.cli.drainitems import Item, items_in, read_types
from federation.cli.tainting import change_taints
from federation.planning.clusters.taintedits import drained
from federation.planning.failover.halts import halt_of
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

_POLL_S = 0.5
_STILL_S = 10.0
"""After this time without progress the objects that have not left are named."""
_SHOWN_MAX = 20
Cluster = Annotated[
    str, typer.Argument(metavar="CLUSTER", autocompletion=candidates.clusters, help="Name of the member.")
]


def _seconds(given: str | float) -> float:
    """Return a duration in seconds; a number without a unit is seconds. The default passes through here, too."""
    text = str(given)
    try:
        seconds = float(text) if text.replace(".", "", 1).isdigit() else parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if seconds < 0:
        raise typer.BadParameter(f"{text!r} is negative")
    return seconds


def drain_command(
    name: Cluster,
    timeout: Annotated[
        float,
        typer.Option("--timeout", parser=_seconds, metavar="DURATION", help="How long to wait, such as 90s."),
    ] = 600.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would leave and what would stay.")] = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Move the workloads of a member to other members.

    New replicas run elsewhere before the present ones end. Workloads with state, volumes, CustomResourceDefinitions and
    namespaces stay. Ends when nothing more can leave, and lists what stays and why. Exit code: 0 no workload is left in
    the member, 1 one is, by design or for lack of room, a budget or time. `fedctl uncordon` undoes it.
    """
    target = KubeconfigContext(kubeconfig, context)
    if dry_run:
        from federation.cli.drainpreview import preview  # noqa: PLC0415  # the scheduler, which a drain does not need

        execute(preview(target, name))
    else:
        execute(drain(target, name, timeout_s=timeout))


async def drain(context: KubeconfigContext, name: str, *, timeout_s: float) -> int:
    """Drain a member and print the progress; return 1 if something stays that should have left."""
    await change_taints(context, name, drained)
    print(f'cluster "{name}" is being drained; to undo it: fedctl uncordon {name}')
    async with context.client() as host:
        types = await read_types(host)
        clock, last = SystemClock(), ""
        changed_s = clock.monotonic()
        patience, is_named = Patience(clock, timeout_s), False
        while True:
            cluster = await host.get(FEDERATED_CLUSTERS, name)
            items = await items_in(host, name, types)
            moving = [item for item in items if not item.stay]
            text = _progress(moving, halt_of(cluster))
            if text != last:
                print(text)
                last, changed_s, is_named = text, clock.monotonic(), False
            elif not is_named and clock.monotonic() - changed_s >= _STILL_S:
                is_named = True
                for line in _shown([item.to_text("not gone yet") for item in moving]):
                    print(f"  {line}")
            if not moving or patience.is_over():
                break
            await asyncio.sleep(_POLL_S)
    why = f"did not leave within {timeout_s:g} s"
    late = [replace(item, stay=why, is_expected=False) for item in moving]
    for line in _shown(
        [
            item.to_text(f"{'stay' if item.replicas > 1 else 'stays'}: {item.stay}")
            for item in (*filter(_stays, items), *late)
        ]
    ):
        print(line)
    in_it = [item for item in (*items, *late) if item.stay and not item.is_expected]
    if not in_it:
        print(f'cluster "{name}" is drained')
        return 0
    replicas = sum(item.replicas for item in in_it)
    running = f" with {to_count(replicas, 'replica')}" if replicas else ""
    print(f'cluster "{name}" is not empty: {to_count(len(in_it), "object")}{running} still in it')
    return 1


def _stays(item: Item) -> bool:
    return bool(item.stay)


def _progress(moving: Sequence[Item], halt: str) -> str:
    replicas = sum(item.replicas for item in moving)
    if not moving:
        return "nothing more leaves"
    left = f"; {to_count(replicas, 'replica')} left" if replicas else ""
    return f"{to_count(len(moving), 'object')} to leave{left}" + (f"; waiting: {halt}" if halt else "")


def _shown(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _SHOWN_MAX
    return [*lines[:_SHOWN_MAX], *([f"and {more} more"] if more > 0 else [])]
