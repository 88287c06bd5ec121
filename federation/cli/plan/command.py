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
from typing import Annotated, Any

import typer
from rich.console import Console

from federation.admission.deviceselectors import selects
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ConfigurationError, FederationError, Forbidden, from_status
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.listening import Patience
from federation.apimachinery.webhookclient import WebhookClient
from federation.cli.plan.output import print_plan
from federation.client.client import Client
from federation.client.retryingwebhookclient import RetryingWebhookClient
from federation.features.catalogue import decision_chain, feature_forecasts
from federation.plans.diffs import without_secrets
from federation.plans.documents import Document
from federation.plans.edits import Verb, get_or_none
from federation.plans.inventory import PlanForbidden, read_inventory
from federation.plans.planfile import (
    PlanFile,
    basis_from_json,
    changed_since,
    read_plan_file,
    to_plan_file,
    write_plan_file,
)
from federation.plans.planner import (
    Planner,
    apply_if_valid,
    check_and_apply,
    reject_hypothetical,
    unmet_expectations,
)
from federation.plans.plugincalls import RemoteCaller
from federation.plans.requestedchanges import RequestedChanges, resolve_changes
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.hostlimits import Limits, from_document
from federation.scheduling.whatif.planresult import Plan, from_json, to_json
from federation.terminal import candidates, flags, manifests
from federation.terminal.execution import execute, fail, fail_output
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console

NOTHING_CHANGES, SOMETHING_CHANGES = 0, 1
_POLL_S = 0.3
_PLAN_PATH = "/federation/v1/plan"
_PLAN_S = 120.0
"""Time for the host to compute a plan."""
_ORIGIN_MAX = 200
"""Characters of the name of a file that the host is sent."""
_NAMED_MAX = 3
"""Objects that the final line of `apply-plan` names."""


def plan_command(
    files: Annotated[
        list[str] | None,
        typer.Option(
            "-f", "--filename", metavar="FILE", help="Manifests: a file, a directory, or - for standard input."
        ),
    ] = None,
    cluster_down: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster-down",
            metavar="CLUSTER",
            autocompletion=candidates.clusters,
            help="Assume that the cluster does not respond.",
        ),
    ] = None,
    taint: Annotated[
        list[str] | None,
        typer.Option("--taint", metavar="TAINT", help="CLUSTER=key=value:Effect; CLUSTER=key- removes one."),
    ] = None,
    label_cluster: Annotated[
        list[str] | None,
        typer.Option("--label-cluster", metavar="LABEL", help="CLUSTER=key=value; CLUSTER=key- removes one."),
    ] = None,
    replicas: Annotated[
        list[str] | None,
        typer.Option("--replicas", metavar="COUNT", help="KIND/NAME[.NAMESPACE]=N: scale the object to N."),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option("--delete", metavar="OBJECT", help="KIND/NAME[.NAMESPACE]: delete the object."),
    ] = None,
    namespace: flags.Namespace = "",
    diff: Annotated[bool, typer.Option("--diff", help="Show how the manifests change per cluster.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show scores and division, as `fedctl why` does.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Objects to print; 0 is all.")] = 50,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Save the plan in this file, for apply-plan.")
    ] = None,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """Show what a change would do, without changing anything.

    For every affected object: replicas and manifest changes per cluster, and unplaced replicas; then the resources
    that clusters would have free. Changes can be combined, and options repeated.

    Exit code: 0 nothing changes, 1 something changes, 2 an error.

    \b
    fedctl plan -f policy.yaml --diff
    fedctl plan --replicas deployment/web=12 --explain
    fedctl plan --cluster-down east
    fedctl plan --taint east=maintenance=yes:NoExecute --out drain.plan
    """  # noqa: D301  # the backspace keeps lines apart in the help
    if not (files or cluster_down or taint or label_cluster or replicas or delete):
        fail("nothing to plan; give -f FILE, --replicas, --taint, --cluster-down, … (see --help)", code=2)
    try:
        changes = RequestedChanges(
            manifests.read_manifests(files or ()),
            cluster_down or (),
            taint or (),
            label_cluster or (),
            replicas or (),
            delete or (),
            namespace,
        )
        form = OutputOptions(output, diff, explain, limit, out)
        execute(plan(KubeconfigContext(kubeconfig, context), changes, form))
    except FederationError as error:
        fail(str(error), code=2)
    except OSError as error:
        fail_output(error, code=2)


def apply_plan_command(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="File written by `fedctl plan … --out FILE`.")],
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the members match the plan.")] = True,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: flags.Timeout = 60,
) -> None:
    """Apply a saved plan if it is still valid.

    Otherwise print one line per difference and apply nothing. Exit code: 0 applied and as planned, 1 not.
    """
    execute(apply_plan(KubeconfigContext(kubeconfig, context), path, wait=wait, timeout_s=timeout))


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
            yield Planner(
                host,
                load_plugins(selects=selects),
                decision_chain(),
                caller,
                clock,
                limits=await _limits(host),
                forecasts=feature_forecasts(),
            )
    finally:
        await webhooks.close()


async def _limits(host: Client) -> Limits:
    """Return the host's limits of moves; those by default of a host that does not say them."""
    code, answer = await host.raw("GET", _PLAN_PATH)
    return from_document(parse_object(answer)) if code == 200 else Limits()


async def plan(context: KubeconfigContext, requested: RequestedChanges, output: OutputOptions) -> int:
    """Compute, print and save a plan; return the exit code.

    A user who may not list what plans depend on lets the host compute it, for the objects of his namespaces.
    """
    async with make_planner(context) as planner:
        started_s = time.perf_counter()
        try:
            world = await read_inventory(planner.host, planner.chain)
        except PlanForbidden as error:
            result = await plan_on_host(planner.host, requested, output, error)
            took = (
                f"{to_count(result.examined, 'object')} examined by the host in {time.perf_counter() - started_s:.2f} s"
            )
            return _print(result, output, took, ())
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
    return _print(result, output, took, resolved.hypothetical)


async def plan_on_host(
    host: Client, requested: RequestedChanges, output: OutputOptions, forbidden: PlanForbidden
) -> Plan:
    """Return the plan that the host computes of manifests, replicas and deletions in namespaces.

    `forbidden` is raised for what only users can plan who may list all clusters, and by hosts that compute none.
    """
    if requested.down or requested.taints or requested.labels or output.out is not None:
        options = "--cluster-down, --taint, --label-cluster and --out"
        raise ConfigurationError(f"{forbidden}; without {options} the host plans objects of your namespaces")
    document = await request_plan(host, requested, explain=output.is_explained)
    if document is None:
        raise forbidden
    return from_json(document)


async def request_plan(host: Client, requested: RequestedChanges, **options: bool) -> dict[str, Any] | None:
    """Return the plan that the host computes, as JSON; None if it computes none."""
    body: dict[str, Any] = {
        "documents": [{"origin": each.origin[:_ORIGIN_MAX], "manifest": each.manifest} for each in requested.documents],
        "replicas": requested.replicas,
        "deletions": requested.deletions,
        "namespace": requested.namespace,
        **options,
    }
    if requested.edits:
        body["patches"] = [
            {
                "group": each.resource.group,
                "kind": each.resource.kind,
                "namespace": each.namespace,
                "name": each.name,
                "patch": each.body,
            }
            for each in requested.edits
        ]
    code, answer = await host.raw("POST", _PLAN_PATH, body=body, timeout_s=_PLAN_S)
    document = parse_object(answer)
    if code == 404:
        return None
    if code != 200 or document is None:
        raise from_status(document or {}, code)
    return document


def _print(result: Plan, output: OutputOptions, took: str, hypothetical: Sequence[str]) -> int:
    if output.form == "table":
        _print_table(make_console(), result, output, took, hypothetical)
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
        try:
            lines = await check_and_apply(planner, saved)
        except PlanForbidden as error:
            lines = await _check_on_host(planner.host, saved, error)
        if lines:
            print("\n".join(lines))
            return 1
        for edit in saved.edits:
            print(f"{edit} {_DONE[edit.verb]}")
        return await wait_as_planned(planner, saved, Patience(planner.clock, timeout_s)) if wait else 0


async def _check_on_host(host: Client, saved: PlanFile, forbidden: PlanForbidden) -> list[str]:
    """Let the host compute the plan again, and apply it if it is still valid; return the differences."""
    reject_hypothetical(saved)
    documents = [Document(edit.origin, edit.body) for edit in saved.edits if edit.verb is Verb.APPLY]
    deletions = [
        f"{edit.resource.group_resource}/{edit.name}{f'.{edit.namespace}' if edit.namespace else ''}"
        for edit in saved.edits
        if edit.verb is Verb.DELETE
    ]
    if len(documents) + len(deletions) < len(saved.edits):
        raise forbidden
    befores = [await get_or_none(host, edit.resource, edit.namespace, edit.name) for edit in saved.edits]
    answer = await request_plan(
        host, RequestedChanges(documents, deletions=deletions), explain=False, manifests=False, basis=True
    )
    if answer is None:
        raise forbidden
    now = basis_from_json(answer["basis"], saved.edits)
    if changed := changed_since(now, saved.edits, befores):
        return [*changed, "nothing was applied; make the plan again"]
    return await apply_if_valid(host, saved, now, befores)


_DONE = {Verb.APPLY: "applied", Verb.MERGE: "changed", Verb.DELETE: "deleted"}


async def wait_as_planned(planner: Planner, saved: PlanFile, patience: Patience) -> int:
    """Wait until the members match the plan, and print whether they do; return 1 if not."""
    said: list[str] = []
    try:
        while unmet := await unmet_expectations(planner.host, saved.expected):
            is_late = patience.is_over()
            reasons = [each.reason for each in unmet if each.reason]
            if reasons != said and not is_late:
                said = reasons
                print("\n".join(f"waiting: {reason}" for reason in reasons))
            if is_late or all(each.is_held for each in unmet):
                print("\n".join(each.text for each in unmet))
                if is_late:
                    print(f"members do not match the plan after {patience.timeout_s:g} s")
                return 1
            await asyncio.sleep(_POLL_S)
    except Forbidden:
        print("applied; whether the members are as planned, `fedctl why` shows")
        return 0
    more = len(saved.expected) - _NAMED_MAX
    named = "; ".join(map(str, saved.expected[:_NAMED_MAX])) + (f" and {more} more" if more > 0 else "")
    print(f"as planned: {named}" if named else "as planned: no member had to change")
    return 0
