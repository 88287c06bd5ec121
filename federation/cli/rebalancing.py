"""The command `fedctl rebalance`: divide replicas again, without regard to where they are now.

It plans an annotation of the user's objects as `fedctl plan` does, prints the moves, and writes it. The scheduler then
ignores `avoidDisruption` for one decision. The guard, budgets and make before break hold as for every other move.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated

import typer

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Object, Resource
from federation.cli.workloadedits import Intent, accept, plan_and_apply
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext


def rebalance_command(
    targets: Annotated[
        list[str],
        typer.Argument(metavar="KIND/NAME...", autocompletion=candidates.objects, help="Divided workloads."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would move.")] = False,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: flags.Timeout = 60,
) -> None:
    """Divide replicas again, as if the object were new.

    A policy with avoidDisruption leaves replicas where they are, so after a cluster joined or came back the division
    can be uneven. Prints what moves, moves it once, and waits until its pods run. Exit code: 0 pods run or nothing to
    move, 1 they do not in time.

    \b
    fedctl rebalance deployment/web --dry-run
    fedctl rebalance deployment/web statefulset/db
    """  # noqa: D301  # the backspace keeps lines apart in the help
    host = KubeconfigContext(kubeconfig, context)
    execute(rebalance(host, targets, namespace, is_dry_run=dry_run, timeout_s=timeout))


async def rebalance(
    context: KubeconfigContext, targets: Sequence[str], namespace: str, *, is_dry_run: bool, timeout_s: float
) -> int:
    """Print what moves and, unless it is a dry run, move it; return 1 if pods do not run as planned in time."""
    return await plan_and_apply(
        context,
        targets,
        namespace,
        prepare=lambda _, __, now: Intent(partial(_patch_at, now), accept),
        is_divided=True,
        is_only_moves=True,
        is_dry_run=is_dry_run,
        timeout_s=timeout_s,
    )


async def _patch_at(now: datetime, _: Resource, __: str, ___: str) -> Object:
    return {"metadata": {"annotations": {names.REBALANCE: to_rfc3339(now)}}}
