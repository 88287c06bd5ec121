"""The commands `fedctl topology plan` and `fedctl topology check`.

`planoutput.py` does the work. It is imported inside the commands, because the models of our kinds take long to
import.
"""

from typing import Annotated

import typer

from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

app = typer.Typer(
    help="Plan and check how a sharded stateful service is spread over zones and nodes.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("plan")
def plan_command(
    target: Annotated[
        str, typer.Argument(metavar="FILE|NAME", help="A manifest, - for standard input, or a TopologySpreadPlan.")
    ],
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """Show the constraints of each StatefulSet, and whether pods can deadlock.

    A FILE needs no federation: it has a TopologySpreadPlan with the number of nodes of each zone, and may have the
    StatefulSets. A NAME shows the plan of the control plane for its present nodes and pods. Exit code: 0 if the plan
    has no deadlock, 1 otherwise.

    \b
    fedctl topology plan plan.yaml
    fedctl topology plan redis -n prod
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.features.topologyspreadplan import planoutput

    execute(planoutput.plan(KubeconfigContext(kubeconfig, context), target, namespace, output))


@app.command("check")
def check_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the TopologySpreadPlan.")],
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """Check the live pods of a service in all members.

    Prints the pods per node and every violated requirement. Exit code: 0 without violations, 1 with violations.
    """
    from federation.features.topologyspreadplan import planoutput

    execute(planoutput.check(KubeconfigContext(kubeconfig, context), name, namespace, output))
