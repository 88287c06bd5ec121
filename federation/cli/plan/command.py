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

from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.webhookclient import WebhookClient
from federation.cli.plan.output import print_plan
from federation.client.retryingwebhookclient import RetryingWebhookClient
from federation.features.catalogue import spread_compiler
from federation.plans.diffs import without_secrets
from federation.plans.edits import Verb
from federation.plans.inventory import read_inventory
from federation.plans.planfile import (
    PlanFile,
    read_plan_file,
    to_plan_file,
    write_plan_file,
)
from federation.plans.planner import Planner, check_and_apply, unmet_expectations
from federation.plans.plugincalls import RemoteCaller
from federation.plans.requestedchanges import RequestedChanges, resolve_changes
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.whatif.planresult import Plan, to_json
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.printing import make_console, print_document

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


@contextlib.asynccontextmanager
async def make_planner(context: KubeconfigContext) -> AsyncIterator[Planner]:
    """Yield a planner with the plugins installed beside fedctl; it also calls webhook plugins from here."""
    webhooks, clock = WebhookClient(), SystemClock()
    try:
        async with context.client() as host:
            caller = RemoteCaller(RetryingWebhookClient(webhooks, clock=clock))
            yield Planner(host, load_plugins(), spread_compiler(), caller, clock)
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
