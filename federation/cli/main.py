"""The entry point of `fedctl` (also installed as `kubectl-fed`): commands, and errors as one line.

Every error of `FederationError`'s tree becomes `fedctl: …` on standard error and exit code 1 (2 for wrong usage, which
typer prints itself). Each command's work is in a module of its own; those that run a control plane
are imported when they are called, because that takes a second which the others need not wait for.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop

from federation import __version__
from federation.base import logs, memory
from federation.base.errors import ApiError, ConfigurationError, FederationError
from federation.cli import apioptions, clusters, demo, why
from federation.cli.session import Session
from federation.settings import from_environment

app = typer.Typer(
    help=(
        "One Kubernetes API in front of many clusters.\n\n"
        "First minutes: `fedctl demo`. A federation of your own: `fedctl serve --dir DIR`, then `fedctl join`."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Dir = Annotated[Path, typer.Option("--dir", metavar="DIR", help="Directory that holds state, keys and kubeconfigs.")]
Port = Annotated[
    int | None,
    typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port of the API; 0 picks a free one [7443]."),
]
Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on [127.0.0.1].")]
LogFormat = Annotated[str, typer.Option("--log-format", metavar="FORMAT", help="text or json.")]
LogLevel = Annotated[str, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")]
Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", metavar="FILE", help="The federation's kubeconfig [$KUBECONFIG, ~/.kube/config]."),
]
Context = Annotated[str, typer.Option("--context", metavar="NAME", help="Context in the kubeconfig [its current one].")]
WaitS = Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=1, help="How long to wait.")]


def _execute(work: Coroutine[Any, Any, int | None]) -> None:
    """Run the command; expected errors become one line and exit code 1."""
    memory.tune_collector()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code = runner.run(work)
    if code:
        raise typer.Exit(code)


def _configure_logs(log_format: str, log_level: str) -> None:
    if log_format not in ("text", "json"):
        raise typer.BadParameter("must be text or json", param_hint="--log-format")
    if log_level not in ("debug", "info", "warning", "error"):
        raise typer.BadParameter("must be debug, info, warning or error", param_hint="--log-level")
    logs.configure("json" if log_format == "json" else "text", log_level)


@app.command("demo")
def demo_command(
    directory: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Directory for the demo's state.")] = Path(
        ".demo"
    ),
    once: Annotated[bool, typer.Option("--once", help="Exit after convergence (non-zero when there is none).")] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port of the API; 0 picks a free one.")
    ] = 0,
    timeout: WaitS = 60,
) -> None:
    """Show a federation at work.

    Starts a control plane with three simulated members, applies the quickstart and shows replicas arriving in every
    member and the merged status coming back.
    """
    _execute(demo.demo(directory, port=port, once=once, timeout_s=timeout))


@app.command()
def up(
    directory: Dir,
    members: Annotated[
        int, typer.Option("--members", metavar="N", min=0, max=100, help="Simulated members to start.")
    ] = 3,
    port: Port = None,
    host: Host = None,
    pod_start: Annotated[
        float,
        typer.Option("--pod-start", metavar="SECONDS", min=0, help="How long a pod takes from binding to Running."),
    ] = 0.3,
    log_format: LogFormat = "text",
    log_level: LogLevel = "warning",
) -> None:
    """Run a control plane with simulated members.

    Runs in the foreground until Ctrl-C. State is kept under DIR: a second start continues where the first stopped.
    """
    from federation.cli import run  # noqa: PLC0415  # see the module's docstring

    _configure_logs(log_format, log_level)
    settings = from_environment({"directory": directory, "port": port, "host": host})
    fleet = run.FleetOptions(members, pod_start_s=pod_start, log_format=log_format, log_level=log_level)
    _execute(run.up(settings, fleet))


@app.command()
def serve(
    directory: Dir,
    port: Port = None,
    host: Host = None,
    oidc_issuer_url: apioptions.IssuerURL = None,
    oidc_client_id: apioptions.ClientID = None,
    oidc_username_claim: apioptions.UsernameClaim = None,
    oidc_username_prefix: apioptions.UsernamePrefix = None,
    oidc_groups_claim: apioptions.GroupsClaim = None,
    oidc_groups_prefix: apioptions.GroupsPrefix = None,
    oidc_required_claim: apioptions.RequiredClaim = None,
    oidc_ca_file: apioptions.CAFile = None,
    oidc_signing_algs: apioptions.SigningAlgs = None,
    audit_policy_file: apioptions.AuditPolicyFile = None,
    audit_log_path: apioptions.AuditLogPath = None,
    audit_log_maxsize: apioptions.AuditLogMaxsize = None,
    audit_log_maxbackup: apioptions.AuditLogMaxbackup = None,
    audit_log_mode: apioptions.AuditLogMode = None,
    log_format: LogFormat = "text",
    log_level: LogLevel = "info",
) -> None:
    """Run a control plane for your own clusters.

    Runs in the foreground until Ctrl-C. Clusters are added with `fedctl join`.
    """
    given = dict(locals())
    from federation.cli import run  # noqa: PLC0415  # see the module's docstring

    _configure_logs(log_format, log_level)
    _execute(run.serve(from_environment(given)))


@app.command()
def join(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new member.")],
    member_kubeconfig: Annotated[
        Path,
        typer.Option(
            "--kubeconfig", metavar="FILE", help="The member's kubeconfig; the federation's is --host-kubeconfig."
        ),
    ],
    member_context: Annotated[
        str, typer.Option("--context", metavar="NAME", help="Context in the member's kubeconfig.")
    ] = "",
    labels: Annotated[
        str, typer.Option("--labels", metavar="LABELS", help="key=value,… for policies to select by.")
    ] = "",
    taints: Annotated[str, typer.Option("--taints", metavar="TAINTS", help="key=value:Effect,…")] = "",
    use_service_account: Annotated[
        bool, typer.Option("--use-service-account", help="Swap the kubeconfig's credentials for a service account's.")
    ] = False,
    host_kubeconfig: Annotated[
        Path | None,
        typer.Option("--host-kubeconfig", metavar="FILE", help="The federation's kubeconfig [$KUBECONFIG]."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the member is Ready.")] = True,
    timeout: WaitS = 60,
) -> None:
    """Add a cluster to the federation.

    Works with any Kubernetes API server whose kubeconfig holds a client certificate or a token.
    """
    request = clusters.to_join_request(
        name, member_kubeconfig, member_context, labels, taints, use_service_account=use_service_account
    )
    with_session = Session(host_kubeconfig, "")
    _execute(clusters.join(with_session, request, wait=wait, timeout_s=timeout))


@app.command()
def unjoin(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the member.")],
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    timeout: WaitS = 60,
) -> None:
    """Remove a cluster from the federation.

    Its workloads stay where they are, unless the FederatedCluster is annotated for cascading deletion.
    """
    _execute(clusters.unjoin(Session(kubeconfig, context), name, timeout_s=timeout))


@app.command("clusters")
def clusters_command(
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    output: Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="table or json.")] = "table",
) -> None:
    """List the members and what they have free."""
    _check_output(output, "table", "json")
    _execute(clusters.show(Session(kubeconfig, context), output))


@app.command("why")
def why_command(
    target: Annotated[list[str], typer.Argument(metavar="KIND/NAME", help="For example deployment/nginx.")],
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", metavar="NAMESPACE", help="Namespace of the object.")
    ] = "default",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    at: Annotated[
        str, typer.Option("--at", metavar="TIME", help="The decision in force then: 2026-01-01T12:00:00Z, 10m, 3d.")
    ] = "",
    diff: Annotated[bool, typer.Option("--diff", help="Compare it with the one before.")] = False,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="table, json or yaml.")] = "table",
) -> None:
    """Explain where an object runs, and why.

    For every cluster: how many replicas and by which scores, or which plugin rejected it and the reason; then the
    division step by step.

    \b
    fedctl why deployment/web                 the newest decision
    fedctl why deployment/web --at 2h         the one that was in force then
    fedctl why deployment/web --diff          what it changed
    """  # noqa: D301  # the backspace keeps lines apart in the help
    _check_output(output, "table", "json", "yaml")
    asked = "/".join(target)  # `deployment nginx`, as kubectl takes it, too
    _execute(why.why(Session(kubeconfig, context), why.Question(asked, namespace, at, diff, output)))


@app.command("plan")
def plan_command(
    files: Annotated[
        list[str] | None,
        typer.Option(
            "-f", "--filename", metavar="FILE", help="Manifests: a file, a directory, or - for standard input."
        ),
    ] = None,
    cluster_down: Annotated[
        list[str] | None, typer.Option("--cluster-down", metavar="CLUSTER", help="What if it does not answer?")
    ] = None,
    taint: Annotated[
        list[str] | None,
        typer.Option("--taint", metavar="TAINT", help="CLUSTER=key=value:Effect; CLUSTER=key- removes one."),
    ] = None,
    label_cluster: Annotated[
        list[str] | None,
        typer.Option("--label-cluster", metavar="LABEL", help="CLUSTER=key=value; CLUSTER=key- removes one."),
    ] = None,
    replicas: Annotated[
        list[str] | None,
        typer.Option("--replicas", metavar="COUNT", help="KIND/NAME[.NAMESPACE]=N: what if it is scaled?"),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option("--delete", metavar="OBJECT", help="KIND/NAME[.NAMESPACE]: what if it is deleted?"),
    ] = None,
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", metavar="NAMESPACE", help="Of what is named without one.")
    ] = "default",
    diff: Annotated[bool, typer.Option("--diff", help="Show the manifests' differences per cluster.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show why, as `fedctl why` does.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Objects to print; 0 is all.")] = 50,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="File to keep the plan in, for apply-plan.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    output: Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="table, json or yaml.")] = "table",
) -> None:
    """Show what a change would do, and change nothing.

    For every object that it concerns: which clusters get how many replicas and what else changes there; replicas
    without a place; what clusters have free afterwards. What is wished for can be given several times.

    Exit code: 0 nothing changes, 1 something does, 2 an error.

    \b
    fedctl plan -f policy.yaml --diff
    fedctl plan --replicas deployment/web=12 --explain
    fedctl plan --cluster-down east
    fedctl plan --taint east=maintenance=yes:NoExecute --out drain.plan
    """  # noqa: D301  # as above
    _check_output(output, "table", "json", "yaml")
    from federation.cli.plan import command, manifests, wishes  # noqa: PLC0415  # see the module's docstring

    try:
        wished = wishes.Wishes(
            manifests.read_manifests(files or ()),
            cluster_down or (),
            taint or (),
            label_cluster or (),
            replicas or (),
            delete or (),
            namespace,
        )
        if wished == wishes.Wishes(namespace=namespace, documents=[]):
            raise ConfigurationError("plan what? give -f FILE, --replicas, --taint, --cluster-down, … (see --help)")
        shown = command.Output(output, diff, explain, limit, out)
        _execute(command.plan(Session(kubeconfig, context), wished, shown))
    except FederationError as error:
        _fail(str(error), code=2)
    except OSError as error:
        _fail_output(error, code=2)


@app.command("apply-plan")
def apply_plan_command(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Made by `fedctl plan … --out FILE`.")],
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until all is as planned.")] = True,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    timeout: WaitS = 60,
) -> None:
    """Apply a plan, if all that it saw still holds.

    Otherwise one line per difference, and nothing is applied. Exit code: 0 applied and as planned, 1 not.
    """
    from federation.cli.plan import command  # noqa: PLC0415  # see the module's docstring

    _execute(command.apply_plan(Session(kubeconfig, context), path, wait=wait, timeout_s=timeout))


@app.command("kubeconfig")
def kubeconfig_command(directory: Dir) -> None:
    """Print the kubeconfig's path.

    For: export KUBECONFIG=$(fedctl kubeconfig --dir DIR)
    """
    clusters.print_kubeconfig(directory)


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


def _check_output(output: str, *allowed: str) -> None:
    if output not in allowed:
        raise typer.BadParameter(f"must be {', '.join(allowed[:-1])} or {allowed[-1]}", param_hint="--output")


def main() -> None:
    """Run fedctl and exit."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # `entry.py` had its own for the time of imports
        app()
    except ApiError as error:
        _fail(f"{error.message} ({error.reason})")
    except FederationError as error:
        _fail(str(error))
    except OSError as error:
        _fail_output(error)
    except BaseExceptionGroup as group:
        _fail_group(group)
    except KeyboardInterrupt:
        sys.exit(130)


def _fail_output(error: OSError, code: int = 1) -> None:
    """Report output that cannot be written, and let go of what the interpreter would try to write at its end."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123  # a descriptor, not a file
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    _fail(f"{error.filename or 'output'}: {error.strerror or error}", code)


def _fail(message: str, code: int = 1) -> None:
    line = " ".join(message.split())
    print(f"fedctl: {line}", file=sys.stderr)
    sys.exit(code)


def _fail_group(group: BaseExceptionGroup[BaseException]) -> None:
    """Report the expected error inside a task group's failure; anything else keeps its traceback."""
    expected, rest = group.split(FederationError)
    if rest is not None or expected is None:
        raise group
    error: BaseException = expected
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    _fail(str(error))


if __name__ == "__main__":
    main()
