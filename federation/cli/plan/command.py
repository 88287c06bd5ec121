"""The steps of `fedctl plan` and `fedctl apply-plan`. Both compute the plan from the federation's current objects.

Exit codes of `plan` are those of `kubectl diff`: 0 nothing changes, 1 something changes, more than 1 an error. Exit
codes of `apply-plan`: 0 applied (and, with --wait, members match the plan), 1 not.
"""

import asyncio
import contextlib
import shlex
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.errors import ApiError, ConfigurationError
from federation.apimachinery.resources import Object, Resource
from federation.apimachinery.webhookclient import WebhookClient
from federation.cli.plan.edits import Edit, Verb, apply_edit, created_namespaces, dry_run, get_or_none
from federation.cli.plan.inventory import read_inventory
from federation.cli.plan.output import print_plan, without_secrets
from federation.cli.plan.planfile import (
    ExpectedObject,
    PlanFile,
    describe,
    differences,
    read_plan_file,
    to_plan_file,
    write_plan_file,
)
from federation.cli.plan.requestedchanges import RequestedChanges, resolve_changes
from federation.cli.terminal.kubeconfigcontext import KubeconfigContext
from federation.cli.terminal.printing import make_console, print_document
from federation.client.client import Client
from federation.client.retryingwebhookclient import RetryingWebhookClient
from federation.controllers.schedule.enginedriver import PluginCaller, drive
from federation.controllers.schedule.remoteplugins import RemoteCaller
from federation.planning.federatedobject import pendingcontrollers
from federation.scheduling.framework.registry import PluginRegistry, load_plugins
from federation.scheduling.whatif.compute import compute
from federation.scheduling.whatif.planresult import Plan, to_json
from federation.scheduling.whatif.rendered import member_objects_of
from federation.scheduling.whatif.state import ObjectChange, ObjectSet, federated_types

NOTHING_CHANGES, SOMETHING_CHANGES = 0, 1
_POLL_S = 0.3
_NAMED_MAX = 3
"""Objects that the final line of `apply-plan` names."""


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How a plan is printed, and the file that it is saved in."""

    form: str = "table"
    has_diffs: bool = False
    is_explained: bool = False
    objects_max: int = 50
    out: Path | None = None


@dataclass(frozen=True, slots=True)
class Planner:
    """Computes plans; `caller` sends requests to remote plugins, None when there are none."""

    host: Client
    plugins: PluginRegistry
    caller: PluginCaller | None
    clock: Clock

    async def plan(self, world: ObjectSet, changes: Sequence[ObjectChange], *, is_explained: bool = False) -> Plan:
        """Return the result of the changes."""
        run = compute(world, changes, self.plugins, now=self.clock.now(), is_explained=is_explained)
        result, _ = await drive(run, self.caller)
        return result


@contextlib.asynccontextmanager
async def make_planner(context: KubeconfigContext) -> AsyncIterator[Planner]:
    """Yield a planner with the plugins installed beside fedctl; it also calls webhook plugins from here."""
    webhooks, clock = WebhookClient(), SystemClock()
    try:
        async with context.client() as host:
            yield Planner(host, load_plugins(), RemoteCaller(RetryingWebhookClient(webhooks, clock=clock)), clock)
    finally:
        await webhooks.close()


async def plan(context: KubeconfigContext, requested: RequestedChanges, output: OutputOptions) -> int:
    """Compute, print and save a plan; return the exit code."""
    async with make_planner(context) as planner:
        started_s = time.perf_counter()
        world = await read_inventory(planner.host)
        resolved = await resolve_changes(planner.host, world, requested)
        read_s = time.perf_counter()
        result = await planner.plan(world, resolved.changes, is_explained=output.is_explained)
        computed_s = time.perf_counter()
    if output.out is not None:
        saved = to_plan_file(result, world, resolved.edits, resolved.changes, resolved.hypothetical)
        write_plan_file(output.out, saved)
    took = (
        f"{to_count(result.examined, 'object')} examined in {computed_s - read_s:.2f} s"
        f" (all objects read in {read_s - started_s:.2f} s)"
    )
    if output.form == "table":
        _print_table(make_console(), result, output, took, resolved.hypothetical)
    else:
        print_document(without_secrets(to_json(result)), output.form)
    return SOMETHING_CHANGES if result.changed else NOTHING_CHANGES


def _print_table(console: Console, result: Plan, output: OutputOptions, took: str, hypothetical: Sequence[str]) -> None:
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
        if hypothetical:
            then = f"it cannot be applied: {', '.join(hypothetical)} is hypothetical"
        console.print(f"saved in {path}; {then}", markup=False, soft_wrap=True)


async def apply_plan(context: KubeconfigContext, path: Path, *, wait: bool, timeout_s: float) -> int:
    """Check that a saved plan is still valid, apply it, and wait for the members; return the exit code."""
    saved = read_plan_file(path)
    async with make_planner(context) as planner:
        lines = await check_and_apply(planner, saved)
        if lines:
            print("\n".join(lines))
            return 1
        for edit in saved.edits:
            print(f"{edit} {_DONE[edit.verb]}")
        return await wait_as_planned(planner, saved, timeout_s) if wait else 0


_DONE = {Verb.APPLY: "applied", Verb.MERGE: "changed", Verb.DELETE: "deleted"}


async def check_and_apply(planner: Planner, saved: PlanFile) -> list[str]:
    """Apply a plan if it is still valid; return one line per difference, [] when it was applied.

    ConfigurationError when it is hypothetical, or when the server rejects a write after earlier ones were made.
    """
    if saved.hypothetical:
        raise ConfigurationError(f"this plan cannot be applied: {', '.join(saved.hypothetical)} is hypothetical")
    world = await read_inventory(planner.host)
    created = created_namespaces(saved.edits)
    changes = [await dry_run(planner.host, edit, created) for edit in saved.edits]
    result = await planner.plan(world, changes)
    edited = {(change.resource, change.namespace, change.name): change.before for change in changes}

    def get(resource: Resource, namespace: str, name: str) -> Object | None:
        key = (resource, namespace, name)
        return edited[key] if key in edited else world.get(*key)

    lines = differences(saved, get, world, result)
    if lines:
        return [*lines, "nothing was applied; make the plan again"]
    await apply_edits(planner.host, saved.edits, changes)
    return []


async def apply_edits(host: Client, edits: Sequence[Edit], changes: Sequence[ObjectChange]) -> None:
    """Write the edits; ConfigurationError names what was written before one that the server rejects."""
    done: list[str] = []
    for edit, change in zip(edits, changes, strict=True):
        try:
            await apply_edit(host, edit, change.before)
        except ApiError as error:
            applied = f"applied before it: {', '.join(done)}" if done else "nothing was applied"
            raise ConfigurationError(f"{edit}: {error.message}; {applied}") from error
        done.append(str(edit))


async def wait_as_planned(planner: Planner, saved: PlanFile, timeout_s: float) -> int:
    """Wait until the members match the plan, and print whether they do; return 1 if not."""
    deadline_s = planner.clock.monotonic() + timeout_s
    while lines := await unmet_expectations(planner.host, saved.expected):
        if planner.clock.monotonic() > deadline_s:
            print("\n".join(lines))
            print(f"members do not match the plan after {timeout_s:g} s")
            return 1
        await asyncio.sleep(_POLL_S)
    more = len(saved.expected) - _NAMED_MAX
    named = "; ".join(map(str, saved.expected[:_NAMED_MAX])) + (f" and {more} more" if more > 0 else "")
    print(f"as planned: {named}" if named else "as planned: no member had to change")
    return 0


async def unmet_expectations(host: Client, expected: Sequence[ExpectedObject]) -> list[str]:
    """Return one line per object whose state differs from the expected one."""
    configs = ObjectSet({FEDERATED_TYPE_CONFIGS: (await host.list(FEDERATED_TYPE_CONFIGS)).items})
    types = federated_types(configs, [])
    lines = []
    for wanted in expected:
        type_ = types[wanted.resource.api_version, wanted.resource.kind]
        found = await get_or_none(host, type_.federated_resource, wanted.namespace, wanted.federated_name)
        if found is None:
            if wanted.clusters:
                lines.append(f"{wanted}: does not exist yet")
            continue
        if not _is_processed(found) and wanted.clusters:
            lines.append(f"{wanted}: still being processed by controllers")
            continue
        clusters = {name: (copy.replicas, copy.digest) for name, copy in member_objects_of(found, type_).items()}
        if clusters != wanted.clusters:
            lines.append(f"{wanted}: {describe(wanted.clusters, clusters)}")
    return lines


def _is_processed(found: dict[str, object]) -> bool:
    """Return True when every controller has finished with the federated object, so that sync may dispatch it."""
    try:
        return pendingcontrollers.may_dispatch(pendingcontrollers.pending_stages(found))
    except pendingcontrollers.PipelineError:
        return False
