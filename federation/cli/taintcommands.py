"""The commands of `fedctl` about taints of members: `taint`, `cordon`, `uncordon`, `drain`."""

from typing import Annotated

import typer

from federation.apimachinery.durations import parse_duration
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

Cluster = Annotated[
    str, typer.Argument(metavar="CLUSTER", autocompletion=candidates.clusters, help="Name of the member.")
]


def taint_command(
    name: Cluster,
    taints: Annotated[list[str], typer.Argument(metavar="TAINT...", help="Taints to add or, with -, to remove.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the value of a taint that exists.")] = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Add or remove taints of a member.

    The syntax is that of `kubectl taint`. NoSchedule keeps new replicas out; NoExecute also moves the present ones,
    those of policies that tolerate the taint when their toleration ends.

    \b
    fedctl taint frankfurt dedicated=gpu:NoSchedule
    fedctl taint frankfurt dedicated:NoSchedule-
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.cli import tainting

    execute(tainting.taint(KubeconfigContext(kubeconfig, context), name, taints, overwrite=overwrite))


def cordon_command(name: Cluster, kubeconfig: flags.Kubeconfig = None, context: flags.Context = "") -> None:
    """Keep new replicas out of a member.

    What is there stays. `fedctl uncordon` ends it.
    """
    from federation.cli import tainting

    execute(tainting.cordon(KubeconfigContext(kubeconfig, context), name))


def uncordon_command(name: Cluster, kubeconfig: flags.Kubeconfig = None, context: flags.Context = "") -> None:
    """Let a member take replicas again.

    Ends `fedctl cordon` and `fedctl drain`.
    """
    from federation.cli import tainting

    execute(tainting.uncordon(KubeconfigContext(kubeconfig, context), name))


def _seconds(given: str | float) -> float:
    """Return a duration in seconds; a number without a unit is seconds. The default passes through here, too."""
    text = str(given)
    try:
        seconds = float(text) if text.replace(".", "", 1).isdigit() else parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if seconds < 0:
        raise typer.BadParameter(f"{text!r} is negative")
    return seconds


def drain_command(
    name: Cluster,
    timeout: Annotated[
        float,
        typer.Option("--timeout", parser=_seconds, metavar="DURATION", help="How long to wait, such as 90s."),
    ] = 600.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would leave and what would stay.")] = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Move the workloads of a member to other members.

    New replicas run elsewhere before the present ones end. Workloads with state, volumes, CustomResourceDefinitions and
    namespaces stay. Ends when nothing more can leave, and lists what stays and why; exits with 1 if that is for lack of
    room, a budget or time. `fedctl uncordon` undoes it.
    """
    from federation.cli import draining

    target = KubeconfigContext(kubeconfig, context)
    execute(draining.preview(target, name) if dry_run else draining.drain(target, name, timeout_s=timeout))
