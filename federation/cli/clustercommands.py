"""The commands of `fedctl` about members: join, unjoin, clusters and leftovers. `main.py` registers them."""

from pathlib import Path
from typing import Annotated

import typer

from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext


def join_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new member.")],
    member_kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            metavar="FILE",
            help="Kubeconfig of an administrator of the member; the federation's is --host-kubeconfig.",
        ),
    ] = None,
    member_context: Annotated[
        str, typer.Option("--context", metavar="NAME", help="Context in the member's kubeconfig.")
    ] = "",
    labels: Annotated[
        str, typer.Option("--labels", metavar="LABELS", help="key=value,… for the selectors of policies.")
    ] = "",
    taints: Annotated[str, typer.Option("--taints", metavar="TAINTS", help="key=value:Effect,…")] = "",
    use_service_account: Annotated[
        bool,
        typer.Option(
            "--use-service-account/--use-given-credentials",
            help="Store the token of a new service account, or the kubeconfig's own credentials.",
        ),
    ] = True,
    update_credentials: Annotated[
        bool,
        typer.Option("--update-credentials", help="Replace the credentials and the CA of a cluster that has joined."),
    ] = False,
    kubeconfig: Annotated[
        Path | None,
        typer.Option("--host-kubeconfig", metavar="FILE", help="The federation's kubeconfig [$KUBECONFIG]."),
    ] = None,
    context: Annotated[
        str, typer.Option("--host-context", metavar="NAME", help="Context in the federation's kubeconfig.")
    ] = "",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the member is Ready.")] = True,
    timeout: flags.Timeout = 60,
) -> None:
    """Add a cluster to the federation.

    Uses the member's kubeconfig once, to create a service account that has the rights of the federated types, and
    stores only the account's token. The control plane renews it.

    \b
    fedctl join NAME --kubeconfig FILE --labels region=eu
    fedctl join --update-credentials NAME --kubeconfig FILE    replaces it all
    fedctl join --update-credentials NAME                      new token only
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.cli import clusters

    host = KubeconfigContext(kubeconfig, context)
    if update_credentials:
        if labels or taints or not use_service_account:
            raise typer.BadParameter("--update-credentials excludes --labels, --taints and --use-given-credentials")
        execute(clusters.update_credentials(host, name, member_kubeconfig, member_context, timeout_s=timeout))
        return
    if member_kubeconfig is None:
        raise typer.BadParameter("give the member's kubeconfig with --kubeconfig FILE")
    request = clusters.to_join_request(
        name, member_kubeconfig, member_context, labels, taints, use_service_account=use_service_account
    )
    execute(clusters.join(host, request, wait=wait, timeout_s=timeout))


def unjoin_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", autocompletion=candidates.clusters, help="Name of the member.")
    ],
    remove: Annotated[
        bool, typer.Option("--remove/--keep", help="Delete its objects, or leave them running in it [--keep].")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Remove it although it does not answer; needs --reason.")
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why; kept in an event and in the leftovers.")
    ] = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: flags.Timeout = 60,
) -> None:
    """Remove a cluster from the federation.

    Its workloads keep running in it, beside what replaces them in other clusters. With --remove they are deleted.

    A cluster that is lost can only leave by force: nothing is cleaned up in it. `fedctl leftovers` lists what it holds;
    if it joins again, that is managed again or removed.
    """
    from federation.cli import clusters

    if force is not bool(reason.strip()):
        raise typer.BadParameter("--force and --reason TEXT belong together")
    if force and remove:
        raise typer.BadParameter("--force removes nothing in the cluster; leave out --remove")
    target = KubeconfigContext(kubeconfig, context)
    execute(clusters.unjoin(target, name, is_removing=remove, reason=reason.strip(), timeout_s=timeout))


def leftovers_command(
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster", metavar="NAME", autocompletion=candidates.clusters, help="Only those of this cluster."
        ),
    ] = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """List what is left in members.

    Objects that were deleted while their cluster did not answer, objects in clusters that left by force, and managed
    objects that the federation does not know. To forget one: kubectl delete leftover NAME.
    """
    from federation.cli import leftovers

    execute(leftovers.show(KubeconfigContext(kubeconfig, context), cluster, output))


def capacity_command(
    without: Annotated[
        str,
        typer.Option(
            "--without",
            metavar="CLUSTER",
            autocompletion=candidates.clusters,
            help="Only this cluster: the workloads in it, and which replicas find no room without it.",
        ),
    ] = "",
    cpu: Annotated[str, typer.Option("--cpu", metavar="AMOUNT", help="CPU of a pod, for the column FITS.")] = "500m",
    memory: Annotated[str, typer.Option("--memory", metavar="AMOUNT", help="Memory of that pod.")] = "512Mi",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """Show the free room of the members, and which of them can be lost.

    FITS is the number of pods of --cpu and --memory that a member takes. NO ROOM counts the divided replicas of the
    member that fit into no other one, STAY those that may not leave by their policy. It is an estimate by requests;
    `fedctl plan --taint CLUSTER=lost:NoExecute` schedules each workload.

    Exit code: 1 if replicas of the member --without find no room, 0 otherwise.

    \b
    fedctl capacity --cpu 2 --memory 4Gi
    fedctl capacity --without frankfurt
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.cli import fleetcapacity

    pod = fleetcapacity.PodSize(cpu, memory)
    execute(fleetcapacity.show(KubeconfigContext(kubeconfig, context), pod, without, output))


def clusters_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]",
            autocompletion=candidates.clusters,
            show_default=False,
            help="Only this member, in detail.",
        ),
    ] = "",
    selector: flags.Selector = "",
    watch: flags.Watch = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.ListFormat = "table",
) -> None:
    """List the members, their health, taints and free resources.

    SINCE says for how long a cluster has been ready or not. With -o wide also the version of Kubernetes, the region,
    and HEARTBEAT: how long ago an answer of the cluster was recorded.

    \b
    fedctl clusters -l region=eu
    fedctl clusters frankfurt
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.cli import clusterviews

    if name and (selector or watch):
        raise typer.BadParameter("NAME excludes --selector and --watch")
    target = KubeconfigContext(kubeconfig, context)
    execute(clusterviews.show(target, name, selector, output, is_watched=watch))
