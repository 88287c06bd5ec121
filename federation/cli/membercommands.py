"""The commands of `fedctl` that read members through the host: get, describe, logs, exec, top."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

if TYPE_CHECKING:
    from federation.cli.members.lookup import Scope

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
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.1,
        help="How long a member may be silent before it counts as not answering.",
    ),
]
Container = Annotated[
    str, typer.Option("-c", "--container", metavar="NAME", help="Container [the default one, else the first].")
]
PodWords = Annotated[
    str, typer.Argument(metavar="POD|KIND/NAME", autocompletion=candidates.objects, help="A pod, or a workload's pods.")
]


def get_command(
    words: Words,
    clusters: Clusters = None,
    namespace: flags.Namespace = "",
    everywhere: flags.AllNamespaces = False,
    selector: flags.Selector = "",
    watch: flags.Watch = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: Patience = 2,
    output: flags.ListFormat = "table",
) -> None:
    """List objects of the members, with the cluster that each is in.

    Reads all members at the same time, with your rights in them. The columns are those of `kubectl get`. If members do
    not answer, prints what the others have, and exits with 3.

    \b
    fedctl get pods
    fedctl get deployment nginx -C frankfurt -o yaml
    fedctl get nodes -o wide
    fedctl get pods -A -l app=web -w
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.cli.members import getting, lookup

    kind, name = lookup.split_words(words)
    scope = _scope(namespace, clusters, selector, timeout, name, everywhere=everywhere)
    query = getting.Query(kind, name, scope, output, watch)
    execute(getting.get(KubeconfigContext(kubeconfig, context), query))


def describe_command(
    words: Words,
    clusters: Clusters = None,
    namespace: flags.Namespace = "",
    everywhere: flags.AllNamespaces = False,
    selector: flags.Selector = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: Patience = 2,
) -> None:
    """Describe objects of the members: fields, conditions and events.

    \b
    fedctl describe pod nginx-5d78-x2kls
    fedctl describe deployment/nginx -C frankfurt
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.cli.members import describing, lookup

    kind, name = lookup.split_words(words)
    scope = _scope(namespace, clusters, selector, timeout, name, everywhere=everywhere)
    execute(describing.describe_objects(KubeconfigContext(kubeconfig, context), kind, name, scope))


def logs_command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="[POD|KIND/NAME]",
            autocompletion=candidates.objects,
            show_default=False,
            help="A pod, or a workload for all of its pods.",
        ),
    ] = "",
    clusters: Clusters = None,
    container: Container = "",
    all_containers: Annotated[bool, typer.Option("--all-containers", help="Logs of all containers.")] = False,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Print new lines until Ctrl-C.")] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", metavar="N", min=0, help="Lines of each log [all; 10 with -l].")
    ] = None,
    since: Annotated[str, typer.Option("--since", metavar="DURATION", help="Only newer lines, such as 5m.")] = "",
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Print the time of each line.")] = False,
    previous: Annotated[bool, typer.Option("-p", "--previous", help="The log before the last restart.")] = False,
    prefix: Annotated[bool, typer.Option("--prefix/--no-prefix", help="Say where each of several logs is.")] = True,
    max_log_requests: Annotated[
        int, typer.Option("--max-log-requests", metavar="N", min=1, help="Logs to follow at the same time.")
    ] = 50,
    namespace: flags.Namespace = "",
    selector: flags.Selector = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: Patience = 2,
) -> None:
    """Print logs of pods in the members, each line with its cluster and pod.

    \b
    fedctl logs deployment/nginx --tail 5
    fedctl logs deployment/nginx -f --since 1m
    fedctl logs nginx-5d78-x2kls -C frankfurt
    fedctl logs -l app=web
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.apimachinery.durations import parse_duration
    from federation.cli.members import logs

    if bool(target) is bool(selector):
        raise typer.BadParameter("give either POD, KIND/NAME or --selector")
    kind, name = _pods(target)
    try:
        since_s = max(1, round(parse_duration(since))) if since else None
    except ValueError as error:
        raise typer.BadParameter(f"--since: {error}") from error
    options = logs.LogOptions(
        container=container,
        is_all_containers=all_containers,
        is_followed=follow,
        tail=10 if tail is None and selector else tail,
        since_s=since_s,
        has_timestamps=timestamps,
        is_previous=previous,
        has_prefix=prefix,
        streams_max=max_log_requests,
    )
    scope = _scope(namespace, clusters, selector, timeout, name, everywhere=False)
    execute(logs.print_logs(KubeconfigContext(kubeconfig, context), kind, name, scope, options))


def exec_command(
    target: PodWords,
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND [ARGUMENT]...", help="What to run.")],
    clusters: Clusters = None,
    container: Container = "",
    stdin: Annotated[bool, typer.Option("-i", "--stdin", help="Pass standard input on.")] = False,
    tty: Annotated[bool, typer.Option("-t", "--tty", help="Give the command a terminal.")] = False,
    everywhere: Annotated[bool, typer.Option("--all", help="Run it in every pod of every cluster.")] = False,
    namespace: flags.Namespace = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: Patience = 2,
) -> None:
    """Run a command in a container of a member.

    Of a workload, in its first running pod. Exits with the code of the command.

    \b
    fedctl exec -it nginx-5d78-x2kls -- sh
    fedctl exec deployment/nginx -C frankfurt -- hostname
    fedctl exec deployment/nginx --all -- hostname
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.cli.members import execution

    if everywhere and (stdin or tty):
        raise typer.BadParameter("--all excludes --stdin and --tty")
    kind, name = _pods(target)
    scope = _scope(namespace, clusters, "", timeout, name, everywhere=False)
    given = execution.Command(command, container, stdin, tty, everywhere)
    execute(execution.run(KubeconfigContext(kubeconfig, context), kind, name, scope, given))


def top_command(
    kind: Annotated[str, typer.Argument(metavar="pods|nodes", help="What to measure.")],
    name: Annotated[str, typer.Argument(metavar="[NAME]", show_default=False, help="Only this one.")] = "",
    clusters: Clusters = None,
    namespace: flags.Namespace = "",
    everywhere: flags.AllNamespaces = False,
    selector: flags.Selector = "",
    order: Annotated[
        Literal["cpu", "memory", ""], typer.Option("--sort-by", metavar="RESOURCE", help="cpu or memory.")
    ] = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    timeout: Patience = 2,
    output: flags.OutputFormat = "table",
) -> None:
    """Show the CPU and memory that pods or nodes of the members use.

    Needs a metrics server in each member.

    \b
    fedctl top nodes
    fedctl top pods -A --sort-by memory
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.cli.members import top

    kind, _, given = kind.partition("/")
    if kind.lower() not in top.KINDS:
        raise typer.BadParameter(f"{kind!r}: give pods or nodes")
    scope = _scope(namespace, clusters, selector, timeout, name or given, everywhere=everywhere)
    target = KubeconfigContext(kubeconfig, context)
    execute(top.top(target, top.KINDS[kind.lower()], name or given, scope, order, output))


def _pods(target: str) -> tuple[str, str]:
    """Return kind and name of `POD` or `KIND/NAME`; "" is a pod without a name, for a selector."""
    from federation.cli.members import lookup

    return lookup.split_words([target]) if "/" in target else ("pods", target)


def _scope(
    namespace: str, clusters: list[str] | None, selector: str, timeout: float, name: str, *, everywhere: bool
) -> "Scope":
    from federation.cli.members import lookup

    if name and (selector or everywhere):
        raise typer.BadParameter("NAME excludes --selector and --all-namespaces")
    return lookup.Scope("" if everywhere else namespace, clusters or (), selector, timeout)
