"""The command `fedctl migrate`: move workloads to other members, and let their policy decide again afterwards.

It writes annotations of the user's objects, `placements` or `migration-configuration`, which may also be set with
kubectl or from Git. The moves are shown first. Replicas start in the new place before they stop in the old one, what
the workload needs goes along (docs/reference/followers.md), and the guard and the budgets hold as for every other move.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated

import typer

from federation.apimachinery.durations import parse_duration
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.cli.workloadedits import Check, accept, plan_and_apply
from federation.plans.migration import Wish, refusal, volumes_left
from federation.scheduling.whatif.planresult import Plan
from federation.scheduling.whatif.state import ObjectChange
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext


def migrate_command(
    targets: Annotated[
        list[str],
        typer.Argument(metavar="KIND/NAME...", autocompletion=candidates.objects, help="Workloads."),
    ],
    to: Annotated[
        str,
        typer.Option("--to", metavar="CLUSTER[,CLUSTER]", autocompletion=candidates.clusters, help="Run only there."),
    ] = "",
    leave: Annotated[
        str,
        typer.Option("--from", metavar="CLUSTER[,CLUSTER]", autocompletion=candidates.clusters, help="Leave these."),
    ] = "",
    duration: Annotated[str, typer.Option("--for", metavar="DURATION", help="How long to stay away.")] = "24h",
    end: Annotated[bool, typer.Option("--end", help="Let the policy decide again.")] = False,
    leave_volumes: Annotated[
        bool, typer.Option("--leave-volumes", help="Move it although data in volumes stays behind.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would move.")] = False,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: flags.Timeout = 300,
) -> None:
    """Move workloads to other members.

    New replicas run before the present ones end, and ConfigMaps, Secrets and other objects that the workload needs go
    along. Prints what moves, and refuses what does not fit. `--to` holds until `--end`, `--from` for a time. Exit code:
    0 done or nothing to move, 1 refused or not done in time.

    \b
    fedctl migrate deployment/web --to member-2 --dry-run
    fedctl migrate deployment/web --from member-1 --for 2h
    fedctl migrate deployment/web --end
    """  # noqa: D301  # the backspace keeps lines apart in the help
    host = KubeconfigContext(kubeconfig, context)
    execute(
        migrate(
            host,
            targets,
            namespace,
            given=Given(to, leave, duration, is_end=end),
            may_leave_volumes=leave_volumes,
            is_dry_run=dry_run,
            timeout_s=timeout,
        )
    )


@dataclass(frozen=True, slots=True)
class Given:
    """The options that say where to."""

    to: str
    leave: str
    duration: str
    is_end: bool

    def wish(self, clusters: Collection[str], now: datetime) -> Wish:
        """Return the wish; ConfigurationError names the option that is wrong."""
        if [bool(self.to), bool(self.leave), self.is_end].count(True) != 1:
            raise ConfigurationError("give one of --to, --from and --end")
        to, leaves = _names(self.to), _names(self.leave)
        for option, listed in (("--to", to), ("--from", leaves)):
            if missing := sorted(listed - set(clusters)):
                known = ", ".join(sorted(clusters)) or "none"
                raise ConfigurationError(f"{option}: there is no cluster {missing[0]}; the clusters are: {known}")
        if not self.leave:
            return Wish(to)
        try:
            seconds = parse_duration(self.duration)
        except ValueError as error:
            raise ConfigurationError(f"--for: {error}") from error
        if seconds <= 0:
            raise ConfigurationError(f"--for: {self.duration!r} is no time; give one such as 2h")
        return Wish(leaves=leaves, until=now + timedelta(seconds=seconds))


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


async def migrate(
    context: KubeconfigContext,
    targets: Sequence[str],
    namespace: str,
    *,
    given: Given,
    may_leave_volumes: bool,
    is_dry_run: bool,
    timeout_s: float,
) -> int:
    """Print what moves and, unless it is a dry run, move it; return 1 if members are not as planned in time."""

    def prepare(clusters: Collection[str], now: datetime) -> tuple[Object, Check]:
        wish = given.wish(clusters, now)
        check = accept if given.is_end else partial(_check, wish, may_leave_volumes=may_leave_volumes)
        return wish.to_patch(), check

    return await plan_and_apply(
        context,
        targets,
        namespace,
        prepare=prepare,
        is_dry_run=is_dry_run,
        timeout_s=timeout_s,
    )


def _check(wish: Wish, plan: Plan, changes: Sequence[ObjectChange], *, may_leave_volumes: bool) -> None:
    """Refuse a plan that is not what was wished, or that leaves data behind."""
    wished = {(change.resource, change.namespace, change.name) for change in changes}
    if problem := refusal(plan, wish, wished):
        raise ConfigurationError(f"{problem}; nothing was changed")
    moved = {(obj.resource, obj.namespace, obj.name) for obj in plan.changed}
    left = volumes_left(
        change.after
        for change in changes
        if change.after is not None and (change.resource, change.namespace, change.name) in moved
    )
    if left and not may_leave_volumes:
        raise ConfigurationError(
            f"{'; '.join(left)}: volumes do not move; copy the data first and give --leave-volumes"
        )
