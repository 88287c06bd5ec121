"""The command `fedctl migrate`: move workloads to other members, and let their policy decide again afterwards.

It writes annotations of the user's objects, `placements` or `migration-configuration`, which may also be set with
kubectl or from Git, and lists the parts of the application in `followers`, so that they go along. The moves, and what
would be missing in the new place, are shown first. Replicas start there before they stop in the old one, and the guard
and the budgets hold as for every other move (docs/reference/applications.md).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object, Resource
from federation.cli.applications.surroundings import find_missing, read_surroundings
from federation.cli.plan.onhost import NOT_CHECKED
from federation.cli.workloadedits import Intent, plan_and_apply
from federation.planning.applications.graph import shared_parts
from federation.planning.applications.moving import followers_to_list
from federation.planning.followers.references import Identity
from federation.plans.migration import Wish, copies_to_ask_for, moves_with_volumes, refusal, volumes_left
from federation.plans.unknownnames import unknown_cluster
from federation.scheduling.whatif.planresult import ObjectPlan, Plan
from federation.scheduling.whatif.state import ObjectChange, ObjectSet
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

if TYPE_CHECKING:
    from federation.client.http import HTTPClient


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
        bool, typer.Option("--leave-volumes", help="Leave the data in its volumes behind.")
    ] = False,
    leave_behind: Annotated[
        bool,
        typer.Option("--leave-behind", help="Move it although parts of it, or what it needs, would be missing there."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would move.")] = False,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: flags.Timeout = 300,
) -> None:
    """Move workloads to other members.

    New replicas run before the present ones end, and the whole application goes along: what the workload needs, and
    what exposes, scales or protects it. A StatefulSet with volumes is stopped, and starts there with copies of them.
    Prints what moves, and refuses what does not fit, or would not work there.
    `--to` holds until `--end`, `--from` for a time. Exit code: 0 pods run or nothing to move, 1 refused or pods do not
    run in time.

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
            leaving=Leaving(volumes=leave_volumes, parts=leave_behind),
            is_dry_run=dry_run,
            timeout_s=timeout,
        )
    )


@dataclass(frozen=True, slots=True)
class Leaving:
    """What may stay behind: data in volumes, and parts of the application or what it needs in a cluster."""

    volumes: bool = False
    parts: bool = False


@dataclass(frozen=True, slots=True)
class Given:
    """The options that say where to."""

    to: str
    leave: str
    duration: str
    is_end: bool

    def wish(self, clusters: Collection[str] | None, now: datetime) -> Wish:
        """Return the wish; ConfigurationError names the option that is wrong. The clusters are None if not known."""
        if [bool(self.to), bool(self.leave), self.is_end].count(True) != 1:
            raise ConfigurationError("give one of --to, --from and --end")
        to, leaves = _names(self.to), _names(self.leave)
        for option, listed in (("--to", to), ("--from", leaves)):
            if clusters is not None and (missing := sorted(listed - set(clusters))):
                raise unknown_cluster(option, missing[0], clusters)
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
    leaving: Leaving,
    is_dry_run: bool,
    timeout_s: float,
) -> int:
    """Print what moves and, unless it is a dry run, move it; return 1 if its pods do not run as planned in time."""

    def prepare(host: "HTTPClient", world: ObjectSet | None, now: datetime) -> Intent:
        listed = None if world is None else world.list(FEDERATED_CLUSTERS)
        wish = given.wish(None if listed is None else [cluster["metadata"]["name"] for cluster in listed], now)
        move = _Move(host, world, wish, leaving, now, is_end=given.is_end)
        return Intent(move.patch_of, move.check)

    return await plan_and_apply(
        context,
        targets,
        namespace,
        prepare=prepare,
        is_dry_run=is_dry_run,
        timeout_s=timeout_s,
    )


@dataclass(frozen=True, slots=True)
class _Move:
    """Workloads that move with their applications."""

    host: "HTTPClient"
    world: ObjectSet | None
    """None for a user who may not list all that applications consist of."""
    wish: Wish
    leaving: Leaving
    now: datetime
    is_end: bool

    async def patch_of(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return the patch of a workload: the wish, and the parts of its application that go along."""
        patch = self.wish.to_patch()
        if not self.is_end:
            patch["metadata"]["annotations"] |= await self._volumes(resource, namespace, name)
        if self.world is None:
            return patch
        around = await read_surroundings(self.host, self.world, namespace, ())
        identity = Identity(resource.group, resource.kind, namespace, name)
        if identity in around.federated and not self.is_end:
            application, _ = around.application(identity)
            followers = followers_to_list(application, around.federated, around.find_type)
            if followers is not None:
                patch["metadata"]["annotations"][names.FOLLOWERS] = followers
        return patch

    async def _volumes(self, resource: Resource, namespace: str, name: str) -> dict[str, str | None]:
        """Return the annotation that says whether its volumes move with the workload."""
        obj = await self.host.get(resource, name, namespace)
        if not self.leaving.volumes:
            return copies_to_ask_for(obj, self.now)
        return {names.MOVE_VOLUMES: None} if moves_with_volumes(obj) else {}

    async def check(self, plan: Plan, changes: Sequence[ObjectChange]) -> None:
        """Refuse a plan that is not what was wished, or that leaves data, parts or needs behind."""
        if not self.is_end:
            _check(self.wish, plan, changes, may_leave_volumes=self.leaving.volumes)
        if self.world is None:
            if not self.is_end:
                print(NOT_CHECKED)
            return
        is_broken = False
        for obj in plan.changed:
            if (obj.resource, obj.namespace, obj.name) in {
                (each.resource, each.namespace, each.name) for each in changes
            }:
                is_broken |= await self._report(self.world, obj)
        if is_broken and not self.leaving.parts:
            raise ConfigurationError(
                "it would not work there, so nothing was changed; bring what is missing there, or give --leave-behind"
            )

    async def _report(self, world: ObjectSet, obj: ObjectPlan) -> bool:
        """Name what a workload leaves behind, and what is shared; return whether it would not work."""
        before = {row.cluster for row in obj.rows if row.before is not None}
        after = {row.cluster: row.after for row in obj.rows if row.after is not None and row.cluster not in before}
        if not after:
            return False
        around = await read_surroundings(self.host, world, obj.namespace, before | after.keys())
        identity = Identity(obj.resource.group, obj.resource.kind, obj.namespace, obj.name)
        application, owners = around.application(identity)
        counts = {name: 1 if there.replicas is None else there.replicas for name, there in after.items()}
        missing = await find_missing(self.host, around, application, counts)
        for part, others in shared_parts(application, owners).items():
            print(f"{part} is also a part of {', '.join(map(str, others))}, and stays reachable from there")
        for line in missing.lines(str(identity)):
            print(line)
        return missing.is_broken


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
            f"{'; '.join(left)}: these volumes do not move; copy the data first and give --leave-volumes"
        )
    for change in changes:
        is_moved = (change.resource, change.namespace, change.name) in moved
        if is_moved and change.after is not None and moves_with_volumes(change.after):
            print(
                f"{change.resource.kind.lower()}/{change.name}: its volumes are copied first; it is stopped meanwhile"
            )
