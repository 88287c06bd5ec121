"""The command `fedctl rebalance`: divide replicas again, without regard to where they are now.

It plans an annotation of the user's objects as `fedctl plan` does, prints the moves, and writes it. The scheduler then
ignores `avoidDisruption` for one decision. The guard, budgets and make before break hold as for every other move.
"""

from collections.abc import Sequence
from typing import Annotated

import typer

from federation.api import names
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ConfigurationError
from federation.cli.plan.command import make_planner, wait_as_planned
from federation.cli.plan.output import print_plan
from federation.plans.edits import Edit, Verb, describe_object, dry_run
from federation.plans.inventory import read_inventory
from federation.plans.kinds import ServedKinds, split_target
from federation.plans.planfile import to_plan_file
from federation.plans.planner import Planner, apply_edits
from federation.scheduling.whatif.state import ObjectSet, federated_types
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.printing import make_console

_OBJECTS_MAX = 50


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
    can be uneven. Prints what moves, moves it once, and waits until the members are as planned. Exit code: 0 done or
    nothing to move, 1 not done in time.

    \b
    fedctl rebalance deployment/web --dry-run
    fedctl rebalance deployment/web statefulset/db
    """  # noqa: D301  # the backspace keeps lines apart in the help
    host = KubeconfigContext(kubeconfig, context)
    execute(rebalance(host, targets, namespace, is_dry_run=dry_run, timeout_s=timeout))


async def rebalance(
    context: KubeconfigContext, targets: Sequence[str], namespace: str, *, is_dry_run: bool, timeout_s: float
) -> int:
    """Print what moves and, unless it is a dry run, move it; return 1 if members are not as planned in time."""
    async with make_planner(context) as planner:
        world = await read_inventory(planner.host)
        edits = await _edits(planner, world, targets, namespace)
        changes = [await dry_run(planner.host, edit) for edit in edits]
        result = await planner.plan(world, changes)
        took = f"{to_count(result.examined, 'object')} examined"
        print_plan(make_console(), result, has_diffs=False, is_explained=False, objects_max=_OBJECTS_MAX, took=took)
        if is_dry_run or not result.changed:
            return 0
        saved = to_plan_file(result, world, edits, changes, ())
        await apply_edits(planner.host, edits, changes)
        return await wait_as_planned(planner, saved, timeout_s)


async def _edits(planner: Planner, world: ObjectSet, targets: Sequence[str], namespace: str) -> list[Edit]:
    """Return the writes that ask for the division of each object."""
    kinds, edits = ServedKinds(planner.host), list[Edit]()
    divided = {key for key, type_ in federated_types(world, []).items() if type_.paths.replicas_spec}
    body = {"metadata": {"annotations": {names.REBALANCE: to_rfc3339(planner.clock.now())}}}
    for target in targets:
        kind, name = split_target(target, repr(target))
        resource = await kinds.named(kind)
        where = namespace if resource.namespaced else ""
        if (resource.api_version, resource.kind) not in divided:
            title = describe_object(resource, where, name)
            raise ConfigurationError(f"{title}: replicas of {resource.plural} are not divided; give a workload")
        edits.append(Edit(target, Verb.MERGE, resource, where, name, body))
    return edits
