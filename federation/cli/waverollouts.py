"""The commands `fedctl rollout`: progress, history and steering of rollouts (docs/reference/rollout.md).

Progress in waves comes from the FederatedRollout of the workload, that of others from their delivery
(`plainrollouts.py`). History comes from the ReplicaSets and ControllerRevisions on the host, as `kubectl rollout
history` reads them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from federation.api.resources import FEDERATED_ROLLOUTS
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import Object, Resource, group_kind_of
from federation.cli import plainrollouts, policychanges
from federation.cli.whypolicy import is_policy
from federation.client.client import PatchType
from federation.planning.federatedobject.templatehistory import history_resource, number_of, template_of
from federation.planning.steps.strategy import is_paused as is_workload_paused
from federation.planning.waves.rolloutstatus import waiting_wave
from federation.planning.waves.waverecord import Phase
from federation.planning.waves.wishes import (
    check_reason,
    override_reason,
    read_wishes,
    to_abortion,
    to_approval,
    to_pause,
    to_return,
)
from federation.plans.kinds import ServedKinds, split_target
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console, print_field, print_rows

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_CHANGE_CAUSE = "kubernetes.io/change-cause"
_REVISION_LENGTH = 10
"""Characters of a template revision to print."""
rollout_command = typer.Typer(
    help="Show and steer how new pod templates reach the clusters, in waves or at once.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Workload = Annotated[
    str,
    typer.Argument(
        metavar="KIND/NAME",
        autocompletion=candidates.objects,
        help="The workload or policy, for example deployment/web.",
    ),
]


@rollout_command.command("status")
def status_command(
    workload: _Workload,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """Show the pods of each cluster and what its update waits for; with waves, its wave too.

    Exit code: 0 if the rollout is complete, 1 otherwise.
    """
    target = Target(workload, namespace)
    execute(status(KubeconfigContext(kubeconfig, context), target, output))


@rollout_command.command("history")
def history_command(
    workload: _Workload,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """List the pod templates that the workload had."""
    target = Target(workload, namespace)
    execute(history(KubeconfigContext(kubeconfig, context), target, output))


@rollout_command.command("undo")
def undo_command(
    workload: _Workload,
    to_revision: Annotated[
        int, typer.Option("--to-revision", metavar="N", min=0, help="Revision in the history; 0 is the previous one.")
    ] = 0,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Give the workload an earlier pod template; it rolls out as any other change."""
    target = Target(workload, namespace)
    execute(undo(KubeconfigContext(kubeconfig, context), target, to_revision))


@rollout_command.command("pause")
def pause_command(
    workload: _Workload,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Start no other wave; waves that have started go on. Without waves, keep the pod template of every cluster."""
    target = Target(workload, namespace)
    execute(pause(KubeconfigContext(kubeconfig, context), target, is_paused=True))


@rollout_command.command("resume")
def resume_command(
    workload: _Workload,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Go on after `pause`, or after `kubectl rollout pause`."""
    target = Target(workload, namespace)
    execute(pause(KubeconfigContext(kubeconfig, context), target, is_paused=False))


@rollout_command.command("approve")
def approve_command(
    workload: _Workload,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why, after a wave that failed; it stays visible.")
    ] = "",
) -> None:
    """Let the next wave start: one with a pause, or the one after a wave that failed."""
    target = Target(workload, namespace)
    execute(approve(KubeconfigContext(kubeconfig, context), target, reason.strip()))


@rollout_command.command("abort")
def abort_command(
    workload: _Workload,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Change no other cluster. With onFailure: RollBack, changed clusters return to their earlier template."""
    target = Target(workload, namespace)
    execute(end(KubeconfigContext(kubeconfig, context), target, ABORT))


@rollout_command.command("rollback")
def rollback_command(
    workload: _Workload,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Return what the rollout has changed to what it was before; also after a failure."""
    target = Target(workload, namespace)
    execute(end(KubeconfigContext(kubeconfig, context), target, ROLL_BACK))


@dataclass(frozen=True, slots=True)
class Target:
    """A workload: KIND/NAME as given, and the namespace."""

    text: str
    namespace: str


async def status(context: KubeconfigContext, target: Target, output: str) -> int:
    """Print the progress per cluster; return 0 if the rollout is complete, 1 otherwise."""
    async with context.client() as host:
        resource, workload, rollout = await _read(host, target)
        if is_policy(resource):
            return policychanges.status(workload, target.text, output)
        if rollout is None:
            return await plainrollouts.status(host, resource, workload, target.text, output)
    state = rollout.get("status") or {}
    if output != "table":
        print_document(rollout, output)
    else:
        _print_status(target, rollout)
    return 0 if state.get("state") == Phase.COMPLETE else 1


async def history(context: KubeconfigContext, target: Target, output: str) -> None:
    """Print the recorded pod templates of the workload, the newest last."""
    async with context.client() as host:
        _, entries = await _history(host, target)
    rows = (_history_row(entry) for entry in entries)
    print_rows(entries, output, "its pod template has never changed", rows, "REVISION, IMAGES", "CHANGE-CAUSE")


async def undo(context: KubeconfigContext, target: Target, revision: int) -> None:
    """Give the workload an earlier pod template, that before the present one with `revision` 0.

    It rolls out as any other change, in the waves of the policy.
    """
    async with context.client() as host:
        workload, entries = await _history(host, target)
        chosen = _choose(entries, revision)
        if chosen is None:
            wanted = f"revision {revision}" if revision else "an earlier revision"
            raise ConfigurationError(f"{target.text}: {wanted} is not in the history; see fedctl rollout history")
        resource, obj = workload
        await host.patch(
            resource,
            obj["metadata"]["name"],
            [
                {"op": "test", "path": "/spec/template", "value": obj["spec"]["template"]},
                {"op": "replace", "path": "/spec/template", "value": template_of(chosen)},
            ],
            patch_type=PatchType.JSON,
            namespace=target.namespace,
        )
    print(f"{target.text}: the pod template is that of revision {number_of(chosen)} again")


async def pause(context: KubeconfigContext, target: Target, *, is_paused: bool) -> None:
    """Keep further waves from starting, or let them start again; without waves, pause or resume the workload's updates.

    `resume` also ends a pause of the workload itself, as `kubectl rollout pause` makes it.
    """
    async with context.client() as host:
        resource, workload, rollout = await _read(host, target)
        if is_policy(resource):
            await policychanges.pause(host, resource, workload, target.text, is_paused=is_paused)
            return
        if rollout is not None:
            await _write(host, rollout, to_pause(is_paused=is_paused))
        if rollout is None or (not is_paused and is_workload_paused(resource, workload)):
            await plainrollouts.pause(host, resource, workload, is_paused=is_paused)
    what = ("no other wave starts", "waves start again")
    if rollout is None:
        what = ("no cluster gets another pod template", "clusters get new pod templates again")
    print(f"{target.text}: {what[not is_paused]}")


async def approve(context: KubeconfigContext, target: Target, reason: str) -> None:
    """Let the wave start that waits for approval."""
    async with context.client() as host:
        resource, workload, found = await _read(host, target)
        if is_policy(resource):
            await policychanges.approve(host, resource, workload, target.text, reason)
            return
        rollout = _present(resource, workload, found, target)
        wave = waiting_wave(rollout.get("status") or {})
        if wave is None:
            raise ConfigurationError(f"{target.text}: no wave waits for approval")
        revision = int(rollout["status"]["revision"])
        check_reason(str(rollout["status"].get("failure") or ""), reason)
        await _write(host, rollout, to_approval(revision, wave, reason))
    print(f"{target.text}: wave {wave} of rollout {revision} is approved")


@dataclass(frozen=True, slots=True)
class _Ending:
    """A way to end a rollout or a change of a policy: the fields to write, when it makes sense, and what is printed."""

    to_fields: Callable[[int], dict[str, Any]]
    phases: tuple[Phase, ...]
    of_rollout: str
    of_change: str


ABORT = _Ending(to_abortion, (Phase.PROGRESSING,), "rollout {} is aborted", "change {} is aborted")
"""Change no other cluster or object."""
ROLL_BACK = _Ending(
    to_return,
    (Phase.PROGRESSING, Phase.STOPPED),
    "the clusters of rollout {} return to their earlier template",
    "the objects of change {} return to the policy as it was before",
)
"""Return what was changed to what it was before."""


async def end(context: KubeconfigContext, target: Target, ending: _Ending) -> None:
    """End the rollout of a workload, or the change of a policy."""
    async with context.client() as host:
        resource, workload, read = await _read(host, target)
        if is_policy(resource):
            await policychanges.end(host, resource, workload, target.text, ending.to_fields, ending.of_change)
            return
        rollout = _present(resource, workload, read, target)
        found = rollout.get("status") or {}
        if found.get("state") not in ending.phases:
            state = found.get("state") or "not known yet"
            raise ConfigurationError(f"{target.text}: no rollout is in progress; its state is {state}")
        await _write(host, rollout, ending.to_fields(int(found["revision"])))
    print(f"{target.text}: {ending.of_rollout.format(found['revision'])}")


async def _write(host: "HTTPClient", rollout: Object, spec: Mapping[str, Any]) -> None:
    metadata = rollout["metadata"]
    await host.patch(FEDERATED_ROLLOUTS, metadata["name"], {"spec": spec}, namespace=metadata["namespace"])


async def _read(host: "HTTPClient", target: Target) -> tuple[Resource, Object, Object | None]:
    """Return the kind of a workload, the workload, and its FederatedRollout, None if it has no rollout in waves."""
    kind, name = split_target(target.text, repr(target.text))
    resource = await ServedKinds(host).named(kind)
    workload = await host.get(resource, name, target.namespace if resource.namespaced else "")
    if is_policy(resource):
        return resource, workload, None
    for rollout in (await host.list(FEDERATED_ROLLOUTS, target.namespace)).items:
        ref = rollout["spec"]["targetRef"]
        if (group_kind_of(ref), ref["name"]) == (resource.group_kind, name):
            return resource, workload, rollout
    return resource, workload, None


def _present(resource: Resource, workload: Object, rollout: Object | None, target: Target) -> Object:
    """Return the FederatedRollout of a workload; ConfigurationError without one."""
    if rollout is None:
        raise ConfigurationError(
            f"{resource.kind} {target.namespace}/{workload['metadata']['name']}: it has no rollout in waves; none of"
            " its policies has spec.rollout, or it runs in no cluster yet"
        )
    return rollout


async def _history(host: "HTTPClient", target: Target) -> tuple[tuple[Resource, Object], Sequence[Object]]:
    """Return the workload with its kind, and its recorded templates in order; ConfigurationError for other kinds."""
    kind, name = split_target(target.text, repr(target.text))
    resource = await ServedKinds(host).named(kind)
    kept_in = history_resource(resource)
    if kept_in is None:
        raise ConfigurationError(f"{resource.kind} has no rollout history; Deployment, StatefulSet and DaemonSet have")
    workload = await host.get(resource, name, target.namespace)
    stored = (await host.list(kept_in, target.namespace)).items
    uid = workload["metadata"]["uid"]
    entries = [
        {"apiVersion": kept_in.api_version, "kind": kept_in.kind, **entry}
        for entry in stored
        if (controller_of(entry) or {}).get("uid") == uid
    ]
    return (resource, workload), sorted(entries, key=number_of)


def _choose(entries: Sequence[Object], revision: int) -> Object | None:
    if revision:
        return next((entry for entry in entries if number_of(entry) == revision), None)
    return entries[-2] if len(entries) > 1 else None


def _print_status(target: Target, rollout: Object) -> None:
    state, console = rollout.get("status") or {}, make_console()
    console.print(f"{target.text}: {state.get('state', 'not known yet')}, {state.get('progress', '0/0')} clusters")
    for label, field in (("policy:", "policy"), ("wave:", "wave"), ("waits:", "message"), ("failure:", "failure")):
        if state.get(field):
            print_field(console, label, str(state[field]))
    if reason := override_reason(read_wishes(rollout["spec"]), int(state.get("revision") or 0)):
        print_field(console, "overridden:", reason)
    clusters = state.get("clusters") or []
    rows = (_cluster_row(cluster) for cluster in clusters)
    headings = "CLUSTER, WAVE, REVISION, TARGET, REPLICAS, UPDATED, READY"
    print_rows(clusters, "table", "it runs in no cluster", rows, headings, "WAITS")


def _cluster_row(cluster: Mapping[str, Any]) -> list[str]:
    counts = (str(cluster.get(field) or 0) for field in ("replicas", "updatedReplicas", "readyReplicas"))
    revisions = (str(cluster.get(field) or "")[:_REVISION_LENGTH] for field in ("revision", "target"))
    return [cluster["name"], cluster.get("wave") or "-", *revisions, *counts, cluster.get("message") or ""]


def _history_row(entry: Object) -> list[str]:
    pod_spec = template_of(entry).get("spec") or {}
    images = ",".join(str(container.get("image")) for container in pod_spec.get("containers") or ())
    annotations = entry["metadata"].get("annotations") or {}
    return [str(number_of(entry)), images, annotations.get(_CHANGE_CAUSE) or "<none>"]
