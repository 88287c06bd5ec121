"""The options that commands about members share, and the scope that they describe."""

from typing import Annotated

import typer

from federation.cli.members.lookup import Scope, split_words
from federation.terminal import candidates

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="KIND [NAME]", autocompletion=candidates.objects, help="pods, deployment nginx, or deployment/nginx."
    ),
]
Clusters = Annotated[
    list[str] | None,
    typer.Option(
        "-C",
        "--cluster",
        metavar="CLUSTER",
        autocompletion=candidates.clusters,
        help="Only this member; may be repeated [all members].",
    ),
]
Patience = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.1,
        help="How long a member may be silent before it counts as not answering [10; 2 for one that is not ready].",
    ),
]
Container = Annotated[
    str, typer.Option("-c", "--container", metavar="NAME", help="Container [the default one, else the first].")
]
PodWords = Annotated[
    str, typer.Argument(metavar="POD|KIND/NAME", autocompletion=candidates.objects, help="A pod, or a workload's pods.")
]


def to_pods(target: str) -> tuple[str, str]:
    """Return kind and name of `POD` or `KIND/NAME`; "" is a pod without a name, for a selector."""
    return split_words([target]) if "/" in target else ("pods", target)


def to_scope(
    namespace: str, clusters: list[str] | None, selector: str, timeout: float | None, name: object, *, everywhere: bool
) -> Scope:
    """Return the scope of the options; `name` is true if objects are named."""
    if name and (selector or everywhere):
        raise typer.BadParameter("NAME excludes --selector and --all-namespaces")
    return Scope("" if everywhere else namespace, clusters or (), selector, timeout)
