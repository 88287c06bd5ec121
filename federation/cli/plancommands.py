"""The commands of `fedctl` about plans: plan and apply-plan. `main.py` registers them."""

from pathlib import Path
from typing import Annotated

import typer

from federation.apimachinery.errors import FederationError
from federation.terminal import candidates, flags
from federation.terminal.execution import execute, fail, fail_output
from federation.terminal.kubeconfigcontext import KubeconfigContext


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
    from federation.cli.plan import command
    from federation.plans import requestedchanges
    from federation.terminal import manifests

    if not (files or cluster_down or taint or label_cluster or replicas or delete):
        fail("nothing to plan; give -f FILE, --replicas, --taint, --cluster-down, … (see --help)", code=2)
    try:
        changes = requestedchanges.RequestedChanges(
            manifests.read_manifests(files or ()),
            cluster_down or (),
            taint or (),
            label_cluster or (),
            replicas or (),
            delete or (),
            namespace,
        )
        form = command.OutputOptions(output, diff, explain, limit, out)
        execute(command.plan(KubeconfigContext(kubeconfig, context), changes, form))
    except FederationError as error:
        fail(str(error), code=2)
    except OSError as error:
        fail_output(error, code=2)


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
    from federation.cli import rebalancing

    host = KubeconfigContext(kubeconfig, context)
    execute(rebalancing.rebalance(host, targets, namespace, is_dry_run=dry_run, timeout_s=timeout))


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
    from federation.cli.plan import command

    execute(command.apply_plan(KubeconfigContext(kubeconfig, context), path, wait=wait, timeout_s=timeout))
