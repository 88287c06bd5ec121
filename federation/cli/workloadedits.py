"""Change workloads by one patch each: show the plan, then write it, and wait until the pods run as planned.

`fedctl rebalance` and `fedctl migrate` differ in the patch, and in what they refuse.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from federation.apimachinery.amounts import to_count
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.listening import Patience
from federation.apimachinery.resources import Object, Resource
from federation.cli.applications.running import Workload, wait_running
from federation.cli.plan.command import make_planner, wait_as_planned
from federation.cli.plan.onhost import plan_edits, wait_placed
from federation.cli.plan.output import print_plan
from federation.plans.edits import Edit, Verb, describe_object, dry_run
from federation.plans.inventory import read_if_allowed
from federation.plans.kinds import ServedKinds, split_target
from federation.plans.planfile import to_plan_file
from federation.plans.planner import Planner, apply_edits
from federation.plans.unknownnames import check_namespace
from federation.scheduling.whatif.planresult import Plan
from federation.scheduling.whatif.state import ObjectChange, ObjectSet, federated_types
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.printing import make_console

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_OBJECTS_MAX = 50
PatchOf = Callable[[Resource, str, str], Awaitable[Object]]
"""Returns the merge patch of a workload by kind, namespace and name."""
Check = Callable[[Plan, Sequence[ObjectChange]], Awaitable[None]]
"""Raises ConfigurationError to refuse a plan."""


class Intent(NamedTuple):
    """The patches of the workloads, and the check of the plan that follows from them."""

    patch_of: PatchOf
    check: Check


async def accept(_: Plan, __: Sequence[ObjectChange]) -> None:
    """Accept every plan."""


async def plan_and_apply(
    context: KubeconfigContext,
    targets: Sequence[str],
    namespace: str,
    *,
    prepare: Callable[["HTTPClient", ObjectSet | None, datetime], Intent],
    is_divided: bool = False,
    is_only_moves: bool = False,
    is_dry_run: bool,
    timeout_s: float,
) -> int:
    """Print what moves and, unless it is a dry run, move it; return 1 if its pods do not run as planned in time.

    `prepare` returns what is intended, for the objects at a time; they are None for a user who may not list all of
    them, and then the host computes the plan. `is_divided`: kinds without replicas to divide are
    refused. `is_only_moves`: without a move nothing is written, and nothing is waited for. Without it, a move that was
    decided earlier is waited for, so that a script may repeat the command.
    """
    async with make_planner(context) as planner, context.client() as host:
        read, now = await read_if_allowed(planner.host, planner.chain), planner.clock.now()
        world = read if isinstance(read, ObjectSet) else None
        await check_namespace(host, namespace)
        intent = prepare(host, world, now)
        edits = await _edits(planner, world, targets, namespace, intent.patch_of, is_divided=is_divided)
        changes = [await dry_run(planner.host, edit) for edit in edits]
        if isinstance(read, ObjectSet):
            result = await planner.plan(read, changes)
        else:
            result = await plan_edits(host, edits, namespace, read)
        took = f"{to_count(result.examined, 'object')} examined"
        print_plan(make_console(), result, has_diffs=False, is_explained=False, objects_max=_OBJECTS_MAX, took=took)
        await intent.check(result, changes)
        is_changed = not is_only_moves and any(change.before != change.after for change in changes)
        has_work = bool(result.changed or is_changed)
        if is_dry_run or (is_only_moves and not has_work):
            return 0
        patience = Patience(planner.clock, timeout_s)
        if has_work:
            saved = None if world is None else to_plan_file(result, world, edits, changes, ())
            await apply_edits(planner.host, edits, [change.before for change in changes])
            waiting = (
                wait_placed(host, result, edits, patience)
                if saved is None
                else wait_as_planned(planner, saved, patience)
            )
            if code := await waiting:
                return code
        workloads = [Workload(edit.resource, edit.namespace, edit.name) for edit in edits]
        return await wait_running(host, workloads, planner.clock, patience)


async def _edits(
    planner: Planner,
    world: ObjectSet | None,
    targets: Sequence[str],
    namespace: str,
    patch_of: PatchOf,
    *,
    is_divided: bool,
) -> list[Edit]:
    """Return the write of each object; without a world, the host checks that its kind is federated."""
    kinds, edits = ServedKinds(planner.host), list[Edit]()
    federated = federated_types(world, []) if world is not None else {}
    for target in targets:
        kind, name = split_target(target, repr(target))
        resource = await kinds.named(kind)
        where = namespace if resource.namespaced else ""
        if world is None:
            edits.append(Edit(target, Verb.MERGE, resource, where, name, await patch_of(resource, where, name)))
            continue
        type_ = federated.get(resource.group_kind)
        if type_ is None or (is_divided and not type_.paths.replicas_spec):
            title = describe_object(resource, where, name)
            lacks = f"replicas of {resource.plural} are not divided" if is_divided else "the kind is not federated"
            raise ConfigurationError(f"{title}: {lacks}; give a workload")
        # In the version in which the federation reads the kind, or the plan would compare two versions.
        edits.append(Edit(target, Verb.MERGE, type_.resource, where, name, await patch_of(resource, where, name)))
    return edits
