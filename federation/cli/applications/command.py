"""`fedctl app`: what belongs to a workload, which applications share it, and what a cluster lacks before a move."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.markup import escape

from federation.api.resources import FEDERATED_CLUSTERS
from federation.cli.applications.surroundings import Surroundings, find_missing, read_surroundings
from federation.features.catalogue import decision_chain
from federation.planning.applications.graph import Application, Part, shared_parts
from federation.planning.applications.needs import needs_of
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.followers.references import Identity
from federation.plans.edits import describe_object
from federation.plans.inventory import read_inventory
from federation.plans.kinds import ServedKinds, split_target
from federation.plans.unknownnames import unknown_cluster, unknown_object
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext
from federation.terminal.printing import make_console, make_table, print_table


def app_command(
    target: Annotated[str, typer.Argument(metavar="KIND/NAME", autocompletion=candidates.objects, help="A workload.")],
    clusters: Annotated[
        list[str] | None,
        typer.Option(
            "--in",
            metavar="CLUSTER",
            autocompletion=candidates.clusters,
            help="Check what this member lacks; may be repeated.",
        ),
    ] = None,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Show what belongs to a workload, and what a cluster lacks for it.

    Lists what the workload refers to, and what exposes, scales, protects or monitors it, with the clusters that have it
    and the workloads that share it. Exit code: 0, or 1 if the application would not work in a cluster of `--in`.

    \b
    fedctl app deployment/web -n shop
    fedctl app deployment/web -n shop --in member-2
    """  # noqa: D301  # the backspace keeps lines apart in the help
    execute(show(KubeconfigContext(kubeconfig, context), target, namespace, clusters or ()))


async def show(context: KubeconfigContext, target: str, namespace: str, clusters: Sequence[str]) -> int:
    """Print the application of a workload; return 1 if it would not work in one of the clusters."""
    kind, name = split_target(target, repr(target))
    async with context.client() as host:
        resource = await ServedKinds(host).named(kind)
        world = await read_inventory(host, decision_chain())
        known = {str(cluster["metadata"]["name"]) for cluster in world.list(FEDERATED_CLUSTERS)}
        if unknown := sorted(set(clusters) - known):
            raise unknown_cluster("--in", unknown[0], known)
        identity = Identity(resource.group, resource.kind, namespace if resource.namespaced else "", name)
        around = await read_surroundings(host, world, identity.namespace, ())
        if identity not in around.federated:
            problem = f"{describe_object(resource, identity.namespace, name)} is not federated"
            raise await unknown_object(host, problem, resource, name)
        present = effective_placement(around.federated[identity])
        gained = frozenset(clusters) - present
        around = await read_surroundings(host, world, identity.namespace, present | gained)
        application, owners = around.application(identity)
        _print(application, around, shared_parts(application, owners), present)
        if not gained:
            return 0
        type_ = around.find_type(resource.group, resource.kind)
        replicas = type_.replicas(application.workload) if type_ is not None else None
        missing = await find_missing(host, around, application, dict.fromkeys(gained, replicas or 1))
    for line in missing.lines(str(identity)):
        print(line)
    print(f"it would {'not ' if missing.is_broken else ''}work in {', '.join(sorted(gained))}")
    return 1 if missing.is_broken else 0


def _print(
    application: Application,
    around: Surroundings,
    shared: dict[Identity, list[Identity]],
    present: frozenset[str],
) -> None:
    """Print the workload, the table of its parts, and what it needs in a cluster."""
    console, identity = make_console(), application.identity
    where = ", ".join(sorted(present)) or "no cluster"
    console.print(f"{identity} in {identity.namespace}, placed in {where}", markup=False, soft_wrap=True)
    table = make_table()
    for title in ("PART", "HOW", "CLUSTERS", "SHARED WITH"):
        table.add_column(title, no_wrap=title == "PART", overflow="fold")
    for part in application.parts.values():
        others = ", ".join(map(str, shared.get(part.identity, ())))
        table.add_row(
            escape(str(part.identity)), f"{part.relation} {part.to}", ", ".join(_clusters(part, around)) or "-", others
        )
    print_table(console, table)
    type_ = around.find_type(identity.group, identity.kind)
    if needs := [need.title for need in needs_of(application, type_)]:
        console.print(f"needs in each cluster: {', '.join(needs)}", markup=False, soft_wrap=True)
    if application.bare_pods:
        pods = ", ".join(f"pod/{name}" for name in application.bare_pods)
        console.print(f"has no controller, so nothing moves it: {pods}", markup=False, soft_wrap=True)


def _clusters(part: Part, around: Surroundings) -> list[str]:
    """Return the clusters of a part: those that the federation places it in, and those that have one of their own."""
    federated = around.federated.get(part.identity)
    placed = effective_placement(federated) if federated is not None else frozenset[str]()
    own = {name for name, reading in around.members.items() if reading.has(part.identity)}
    return sorted(placed) + [f"{name} (its own)" for name in sorted(own - placed)]
