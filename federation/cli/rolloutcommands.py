"""The commands `fedctl rollout …`; `waverollouts.py` and `plainrollouts.py` do the work."""

from typing import Annotated

import typer

from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

app = typer.Typer(
    help="Show and steer how new pod templates reach the clusters, in waves or at once.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Workload = Annotated[
    str,
    typer.Argument(
        metavar="KIND/NAME", autocompletion=candidates.objects, help="The workload, for example deployment/web."
    ),
]


@app.command("status")
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
    from federation.cli import waverollouts

    target = waverollouts.Target(workload, namespace)
    execute(waverollouts.status(KubeconfigContext(kubeconfig, context), target, output))


@app.command("history")
def history_command(
    workload: _Workload,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """List the pod templates that the workload had."""
    from federation.cli import waverollouts

    target = waverollouts.Target(workload, namespace)
    execute(waverollouts.history(KubeconfigContext(kubeconfig, context), target, output))


@app.command("undo")
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
    from federation.cli import waverollouts

    target = waverollouts.Target(workload, namespace)
    execute(waverollouts.undo(KubeconfigContext(kubeconfig, context), target, to_revision))


@app.command("pause")
def pause_command(
    workload: _Workload,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Start no other wave; waves that have started go on. Without waves, keep the pod template of every cluster."""
    from federation.cli import waverollouts

    target = waverollouts.Target(workload, namespace)
    execute(waverollouts.pause(KubeconfigContext(kubeconfig, context), target, is_paused=True))


@app.command("resume")
def resume_command(
    workload: _Workload,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Go on after `pause`, or after `kubectl rollout pause`."""
    from federation.cli import waverollouts

    target = waverollouts.Target(workload, namespace)
    execute(waverollouts.pause(KubeconfigContext(kubeconfig, context), target, is_paused=False))


@app.command("approve")
def approve_command(
    workload: _Workload,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Let the next wave start: one with a pause, or the one after a wave that failed."""
    from federation.cli import waverollouts

    target = waverollouts.Target(workload, namespace)
    execute(waverollouts.approve(KubeconfigContext(kubeconfig, context), target))


@app.command("abort")
def abort_command(
    workload: _Workload,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Change no other cluster. With onFailure: RollBack, changed clusters return to their earlier template."""
    from federation.cli import waverollouts

    target = waverollouts.Target(workload, namespace)
    execute(waverollouts.abort(KubeconfigContext(kubeconfig, context), target))
