"""The commands `fedctl holds` and `fedctl approve`: moves that the guard holds (docs/reference/guard.md)."""

from datetime import datetime
from typing import Annotated

import typer

from federation.api.resources import PLACEMENT_HOLDS
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock, from_rfc3339
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.planning.guard.deletions import is_deletion
from federation.planning.guard.ledger import parse_cause
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.plaintext import to_age
from federation.terminal.printing import print_rows


def holds_command(
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """List moves that the guard holds.

    A policy, a profile, a type or a cluster would move more objects at a time than the guard allows. Nothing moves
    until somebody approves it, or until the change is taken back.
    """
    execute(show(KubeconfigContext(kubeconfig, context), output))


def approve_command(
    name: Annotated[str, typer.Argument(metavar="HOLD", help="Name of the hold, see `fedctl holds`.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded with your name.")],
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Let the moves of a hold go on.

    Covers the objects that are held now, and no other cluster than those that they would leave now.
    """
    if not reason.strip():
        raise typer.BadParameter("--reason: say why the moves may go on")
    execute(approve(KubeconfigContext(kubeconfig, context), name, reason.strip()))


async def show(context: KubeconfigContext, output: str) -> None:
    """Print all holds, the approved ones too."""
    async with context.client() as host:
        items = (await host.list(PLACEMENT_HOLDS)).items
    now = SystemClock().now()
    rows = (_row(item, now) for item in sorted(items, key=lambda item: str(item["metadata"]["name"])))
    print_rows(items, output, "nothing is held", rows, "NAME, CAUSE, OBJECTS, AGE", "STATE")


async def approve(context: KubeconfigContext, name: str, reason: str) -> None:
    """Let the moves of one hold go on; ConfigurationError when it is approved already."""
    async with context.client() as host:
        hold = await host.get(PLACEMENT_HOLDS, name)
        approval = hold["spec"].get("approval")
        if approval:
            raise ConfigurationError(f'"{name}" was approved by {approval.get("by")}: {approval.get("reason")}')
        # For the state that was read: further objects that are held meanwhile make the write fail.
        version = hold["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "spec": {"approval": {"reason": reason}}}
        approved = await host.patch(PLACEMENT_HOLDS, name, patch)
    spec = approved["spec"]
    happens = "are deleted" if is_deletion(parse_cause(spec["cause"])) else "move"
    print(f"approved: {to_count(spec['count'], 'object')} of {spec['cause']} {happens} now")


def _row(hold: Object, now: datetime) -> list[str]:
    spec, metadata = hold["spec"], hold["metadata"]
    age = to_age(now, from_rfc3339(metadata["creationTimestamp"]))
    return [metadata["name"], str(spec.get("cause")), str(spec.get("count")), age, _state(hold)]


def _state(hold: Object) -> str:
    approval = hold["spec"].get("approval")
    if approval:
        return f"approved by {approval.get('by')}: {approval.get('reason')}"
    shown = ", ".join(hold["spec"].get("objects") or ())
    more = int(hold["spec"].get("count") or 0) - len(hold["spec"].get("objects") or ())
    return f"waits for approval: {shown}" + (f" and {more} more" if more > 0 else "")
