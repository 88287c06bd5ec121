"""The commands of `fedctl` about what is in the members: `render` and `diff`. `main.py` registers them."""

from typing import Annotated, Literal

import typer

from federation.apimachinery.errors import FederationError
from federation.cli import flags, rendered
from federation.cli.execution import execute, fail
from federation.cli.terminal.kubeconfigcontext import KubeconfigContext

Target = Annotated[list[str], typer.Argument(metavar="KIND/NAME", help="For example deployment/nginx.")]


def render_command(
    target: Target,
    cluster: Annotated[str, typer.Option("--cluster", metavar="NAME", help="The member.")],
    namespace: flags.Namespace = "default",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: Annotated[
        Literal["yaml", "json"], typer.Option("-o", "--output", metavar="FORMAT", help="yaml or json.")
    ] = "yaml",
) -> None:
    """Print the manifest that is applied in a cluster.

    It is what the control plane sends: the object with all overrides, without fields that belong to the member. Values
    of Secrets are hidden.
    """
    execute(rendered.render(KubeconfigContext(kubeconfig, context), "/".join(target), namespace, cluster, output))


def diff_command(
    target: Target,
    namespace: flags.Namespace = "default",
    cluster: Annotated[str, typer.Option("--cluster", metavar="NAME", help="Only this member.")] = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Show how an object in the members differs from what is wanted.

    Only fields that the federation owns are compared: - is what the member has, + what is wanted.

    Exit code: 0 no difference, 1 differences, 2 an error or a member that cannot be compared.
    """
    try:
        execute(rendered.diff(KubeconfigContext(kubeconfig, context), "/".join(target), namespace, cluster))
    except FederationError as error:
        fail(str(error), code=2)
