"""The commands of `fedctl` about moves that the guard holds or let pass: `holds`, `approve`, `undo`."""

from typing import Annotated

import typer

from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext


def holds_command(
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """List moves that the guard holds.

    A policy, a profile, a type or a cluster would move more objects at a time than the guard allows. Nothing moves
    until somebody approves it, or until the change is taken back.
    """
    from federation.cli import holds

    execute(holds.show(KubeconfigContext(kubeconfig, context), output))


def approve_command(
    name: Annotated[str, typer.Argument(metavar="HOLD", help="Name of the hold, see `fedctl holds`.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded with your name.")],
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Let the moves of a hold go on.

    Covers the objects that are held now, and no other cluster than those that they would leave now.
    """
    from federation.cli import holds

    if not reason.strip():
        raise typer.BadParameter("--reason: say why the moves may go on")
    execute(holds.approve(KubeconfigContext(kubeconfig, context), name, reason.strip()))


def undo_command(
    target: Annotated[
        str,
        typer.Argument(metavar="KIND/NAME", autocompletion=candidates.objects, help="An object, or what moved many."),
    ],
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: flags.Timeout = 60,
) -> None:
    """Restore the placement before the last move.

    Within an hour, of one object, or of all that a policy, a profile, a type or a cluster moved. The placement stays
    until something changes again, so take the change back as well.

    \b
    fedctl undo deployment/web
    fedctl undo propagationpolicy/web
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.cli import undo

    execute(undo.undo(KubeconfigContext(kubeconfig, context), target, namespace, timeout_s=timeout))
