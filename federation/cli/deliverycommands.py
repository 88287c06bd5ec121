"""The commands of `fedctl` about what is in the members: render, diff, import and adopt. `main.py` registers them."""

from typing import Annotated, Literal

import typer

from federation.apimachinery.errors import FederationError
from federation.terminal import candidates, flags
from federation.terminal.execution import execute, fail
from federation.terminal.kubeconfigcontext import KubeconfigContext

Target = Annotated[
    list[str],
    typer.Argument(metavar="KIND/NAME", autocompletion=candidates.objects, help="For example deployment/nginx."),
]


def render_command(
    target: Target,
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="NAME", autocompletion=candidates.clusters, help="The member.")
    ],
    namespace: flags.Namespace = "",
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
    from federation.cli import rendered

    execute(rendered.render(KubeconfigContext(kubeconfig, context), "/".join(target), namespace, cluster, output))


def diff_command(
    target: Target,
    namespace: flags.Namespace = "",
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="NAME", autocompletion=candidates.clusters, help="Only this member.")
    ] = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Show how an object in the members differs from what is wanted.

    Only fields that the federation owns are compared: - is what the member has, + what is wanted.

    Exit code: 0 no difference, 1 differences, 2 an error or a member that cannot be compared.
    """
    from federation.cli import rendered

    try:
        execute(rendered.diff(KubeconfigContext(kubeconfig, context), "/".join(target), namespace, cluster))
    except FederationError as error:
        fail(str(error), code=2)


DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
AllowRestart = Annotated[
    bool, typer.Option("--allow-restart", help="Proceed although the pod template changes, so that pods restart.")
]
PreviousHost = Annotated[
    str,
    typer.Option(
        "--previous-host",
        metavar="FILE",
        help="Kubeconfig of the Karmada or KubeAdmiral that delivered the objects, to check that it is off; or: gone.",
    ),
]


def import_command(
    target: Annotated[str, typer.Argument(metavar="KIND[/NAME]", help="For example deployment/nginx.")],
    cluster: Annotated[
        str,
        typer.Option(
            "--from-cluster", metavar="NAME", autocompletion=candidates.clusters, help="The member that runs it."
        ),
    ],
    namespace: flags.Namespace = "",
    selector: Annotated[
        str, typer.Option("-l", "--selector", metavar="SELECTOR", help="All objects of the kind with these labels.")
    ] = "",
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="Policy that places them [a new one: import-CLUSTER].")
    ] = "",
    dry_run: DryRun = False,
    allow_restart: AllowRestart = False,
    previous_host: PreviousHost = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: flags.Timeout = 60,
) -> None:
    """Bring a workload that runs in a member under federation.

    Creates the object on the host from the member's, without what the member filled in, and a policy that places it in
    this member only; the member's object is adopted and its pods keep running. What changes is shown first.

    \b
    fedctl import --from-cluster east deployment/web -n shop
    fedctl import --from-cluster east deployment -l team=shop --dry-run
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.cli import adopting

    scope = adopting.Scope(namespace, dry_run, allow_restart, timeout, previous_host)
    execute(adopting.import_objects(KubeconfigContext(kubeconfig, context), target, cluster, selector, policy, scope))


def adopt_command(
    target: Target,
    clusters: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster",
            metavar="NAME",
            autocompletion=candidates.clusters,
            help="Only in this member; may be repeated [all that refuse it].",
        ),
    ] = None,
    namespace: flags.Namespace = "",
    dry_run: DryRun = False,
    allow_restart: AllowRestart = False,
    previous_host: PreviousHost = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: flags.Timeout = 60,
) -> None:
    """Take over objects that were in members before an object of the host.

    For an object whose status in a cluster is AlreadyExists. What changes in each member is shown first.
    """
    from federation.cli import adopting

    scope = adopting.Scope(namespace, dry_run, allow_restart, timeout, previous_host)
    execute(adopting.adopt(KubeconfigContext(kubeconfig, context), "/".join(target), clusters or (), scope))
