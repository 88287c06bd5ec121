"""The way through `fedctl plan` and `fedctl apply-plan`. Both compute with the same function on the world as it is.

Exit codes of `plan` are those of `kubectl diff`: 0 nothing changes, 1 something does, more than 1 an error. Of
`apply-plan`: 0 applied (and, with --wait, as planned), 1 not.
"""

import asyncio
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import yaml
from rich.console import Console

from federation.api.resources import FEDERATED_TYPE_CONFIGS, Object, Resource
from federation.base.clock import Clock, SystemClock
from federation.base.errors import ApiError, ConfigurationError
from federation.cli.plan.edits import Edit, Verb, carry_out, find, namespaces_of, try_out
from federation.cli.plan.planfile import (
    Expected,
    PlanFile,
    describe,
    differences,
    read_plan_file,
    to_plan_file,
    write_plan_file,
)
from federation.cli.plan.reading import read_world
from federation.cli.plan.show import print_plan
from federation.cli.plan.wishes import Wanted, Wishes, to_wanted
from federation.cli.printing import to_console, to_count
from federation.cli.session import Session
from federation.client.outcalls import Outcalls
from federation.client.protocol import Client
from federation.client.services import Services
from federation.controllers.schedule.driving import PluginCaller, drive
from federation.controllers.schedule.webhooks import RemoteCaller
from federation.planning import pipeline
from federation.scheduling.framework.registry import PluginRegistry, load_plugins
from federation.scheduling.whatif.compute import compute
from federation.scheduling.whatif.copies import copies_of
from federation.scheduling.whatif.result import Plan, to_json
from federation.scheduling.whatif.world import Change, World, federated_types

NOTHING_CHANGES, SOMETHING_CHANGES = 0, 1
_POLL_S = 0.3
_NAMED_MAX = 3
"""Objects that are named when all is as planned."""


@dataclass(frozen=True, slots=True)
class Output:
    """How a plan is shown and kept."""

    form: str = "table"
    has_diffs: bool = False
    is_explained: bool = False
    objects_max: int = 50
    out: Path | None = None


@dataclass(frozen=True, slots=True)
class Planner:
    """What computes plans: the host, installed plugins, and whoever calls remote ones."""

    host: Client
    plugins: PluginRegistry
    caller: PluginCaller | None
    clock: Clock

    async def plan(self, world: World, changes: Sequence[Change], *, is_explained: bool = False) -> Plan:
        """Return what would come of the changes."""
        run = compute(world, changes, self.plugins, now=self.clock.now(), is_explained=is_explained)
        result, _ = await drive(run, self.caller)
        return result


def to_planner(host: Client, outcalls: Outcalls) -> Planner:
    """Return a planner with the plugins that are installed here; webhooks are called from here, too."""
    clock = SystemClock()
    return Planner(host, load_plugins(), RemoteCaller(Services(outcalls, clock=clock)), clock)


async def plan(session: Session, wishes: Wishes, output: Output) -> int:
    """Plan, print, keep; return the exit code."""
    outcalls = Outcalls()
    try:
        async with session.client() as host:
            planner = to_planner(host, outcalls)
            started_s = time.perf_counter()
            world = await read_world(host)
            wanted = await to_wanted(host, world, wishes)
            read_s = time.perf_counter()
            result = await planner.plan(world, wanted.changes, is_explained=output.is_explained)
            computed_s = time.perf_counter()
    finally:
        await outcalls.close()
    if output.out is not None:
        _keep(output.out, result, world, wanted)
    took = (
        f"{to_count(result.looked_at, 'object')} looked at in {computed_s - read_s:.2f} s"
        f" (the world read in {read_s - started_s:.2f} s)"
    )
    _print(to_console(), result, output, took, wanted.thoughts)
    return SOMETHING_CHANGES if result.changed else NOTHING_CHANGES


def _keep(path: Path, result: Plan, world: World, wanted: Wanted) -> None:
    write_plan_file(path, to_plan_file(result, world, wanted.edits, wanted.changes, wanted.thoughts))


def _print(console: Console, result: Plan, output: Output, took: str, thoughts: Sequence[str]) -> None:
    if output.form == "json":
        print(orjson.dumps(to_json(result), option=orjson.OPT_INDENT_2).decode())
    elif output.form == "yaml":
        print(yaml.safe_dump(orjson.loads(orjson.dumps(to_json(result))), sort_keys=False), end="")
    else:
        print_plan(
            console,
            result,
            has_diffs=output.has_diffs,
            is_explained=output.is_explained,
            objects_max=output.objects_max or len(result.objects),
            took=took,
        )
        if output.out is not None:
            path = shlex.quote(str(output.out))
            then = f"apply it with: fedctl apply-plan {path}"
            if thoughts:
                then = f"it cannot be applied: {', '.join(thoughts)} is only a thought"
            console.print(f"kept in {path}; {then}", markup=False, soft_wrap=True)


async def apply_plan(session: Session, path: Path, *, wait: bool, timeout_s: float) -> int:
    """Check that a plan file still holds, apply it, and see that it comes true; return the exit code."""
    held = read_plan_file(path)
    outcalls = Outcalls()
    try:
        async with session.client() as host:
            planner = to_planner(host, outcalls)
            lines = await check_and_apply(planner, held)
            if lines:
                for line in lines:
                    print(line)
                return 1
            for edit in held.edits:
                print(f"{edit} {_DONE[edit.verb]}")
            return await _see_through(planner, held, timeout_s) if wait else 0
    finally:
        await outcalls.close()


_DONE = {Verb.APPLY: "applied", Verb.MERGE: "changed", Verb.DELETE: "deleted"}


async def check_and_apply(planner: Planner, held: PlanFile) -> list[str]:
    """Apply a plan when all that it saw still holds; return why not, [] when it is applied.

    ConfigurationError when it cannot be applied at all, or when a write is refused after others were made.
    """
    if held.thoughts:
        raise ConfigurationError(f"this plan cannot be applied: {', '.join(held.thoughts)} is only a thought")
    world = await read_world(planner.host)
    made = namespaces_of(held.edits)
    changes = [await try_out(planner.host, edit, made) for edit in held.edits]
    result = await planner.plan(world, changes)
    touched = {(change.resource, change.namespace, change.name): change.before for change in changes}

    def now(resource: Resource, namespace: str, name: str) -> Object | None:
        key = (resource, namespace, name)
        return touched[key] if key in touched else world.get(*key)

    lines = differences(held, now, world, result)
    if lines:
        return [*lines, "nothing was applied; make the plan again"]
    await _carry_out_all(planner.host, held.edits, changes)
    return []


async def _carry_out_all(host: Client, edits: Sequence[Edit], changes: Sequence[Change]) -> None:
    done: list[str] = []
    for edit, change in zip(edits, changes, strict=True):
        try:
            await carry_out(host, edit, change.before)
        except ApiError as error:
            applied = f"applied before it: {', '.join(done)}" if done else "nothing was applied"
            raise ConfigurationError(f"{edit}: {error.message}; {applied}") from error
        done.append(str(edit))


async def _see_through(planner: Planner, held: PlanFile, timeout_s: float) -> int:
    deadline_s = planner.clock.monotonic() + timeout_s
    while lines := await unfulfilled(planner.host, held.expected):
        if planner.clock.monotonic() > deadline_s:
            print("\n".join(lines))
            print(f"not as planned after {timeout_s:g} s")
            return 1
        await asyncio.sleep(_POLL_S)
    more = len(held.expected) - _NAMED_MAX
    named = "; ".join(map(str, held.expected[:_NAMED_MAX])) + (f" and {more} more" if more > 0 else "")
    print(f"as planned: {named}" if named else "as planned: nothing else was to change")
    return 0


async def unfulfilled(host: Client, expected: Sequence[Expected]) -> list[str]:
    """Return one line per object that is not, or not yet, as expected."""
    types = federated_types(await _types(host), [])
    lines = []
    for wanted in expected:
        type_ = types[wanted.resource.api_version, wanted.resource.kind]
        found = await find(host, type_.federated_resource, wanted.namespace, wanted.federated_name)
        if found is None:
            if wanted.clusters:
                lines.append(f"{wanted}: not there yet")
            continue
        if not _is_through(found) and wanted.clusters:
            lines.append(f"{wanted}: still on its way through the pipeline")
            continue
        clusters = {name: (copy.replicas, copy.digest) for name, copy in copies_of(found, type_).items()}
        if clusters != wanted.clusters:
            lines.append(f"{wanted}: {describe(wanted.clusters, clusters)}")
    return lines


def _is_through(found: dict[str, object]) -> bool:
    try:
        return pipeline.may_dispatch(pipeline.pending(found))
    except pipeline.PipelineError:
        return False


async def _types(host: Client) -> World:
    return World({FEDERATED_TYPE_CONFIGS: (await host.list(FEDERATED_TYPE_CONFIGS)).items})
