"""The commands of `fedctl` (also installed as `kubectl-fed`) and their exit codes.

Every `FederationError` becomes one line, `fedctl: …`, on standard error and exit code 1, wrong usage exit code 2. The
work of each command is in a module of its own, which the command imports when it runs:
all of them together take a second to import.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from federation import __version__
from federation.apimachinery.errors import ApiError, FederationError
from federation.cli import (
    agentcommands,
    clustercommands,
    databasecommands,
    deliverycommands,
    holdcommands,
    hostcommands,
    membercommands,
    parsing,
    plancommands,
    rolloutcommands,
    servercommands,
    simcommands,
    spreadcommands,
    taintcommands,
)
from federation.cli.commandgroups import Grouped
from federation.features.catalogue import FEATURES
from federation.terminal import candidates, flags
from federation.terminal.execution import execute as _execute
from federation.terminal.execution import fail as _fail
from federation.terminal.execution import fail_output as _fail_output
from federation.terminal.kubeconfigcontext import KubeconfigContext

app = typer.Typer(
    cls=Grouped,
    help=(
        "One Kubernetes API in front of many clusters.\n\n"
        "To try it out: `fedctl demo`. For your own clusters: `fedctl serve --dir DIR`, then `fedctl join`."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(is_wanted: bool) -> None:  # a callback of typer
    if is_wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def global_options(
    ctx: typer.Context,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    namespace: flags.GlobalNamespace = "",
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    # No docstring: it would replace the help of the app. The options may stand before a command, whose own ones win.
    del show_version
    given = {"kubeconfig": kubeconfig, "context": context, "namespace": namespace}
    ctx.default_map = _for_all(ctx.command, {name: value for name, value in given.items() if value})


def _for_all(command: object, defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults of every command of a group, in the form of typer's default map."""
    commands: dict[str, object] | None = getattr(command, "commands", None)
    return defaults if commands is None else {name: _for_all(each, defaults) for name, each in commands.items()}


@app.command("demo")
def demo_command(
    directory: Annotated[
        Path,
        typer.Option("--dir", metavar="DIR", parser=flags.to_directory, help="Directory for the demo's state."),
    ] = Path(".demo"),
    once: Annotated[bool, typer.Option("--once", help="Exit after convergence; non-zero on a timeout.")] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port of the API; 0 picks a free one.")
    ] = 0,
    timeout: flags.Timeout = 60,
) -> None:
    """Show a running federation.

    Starts a control plane with three simulated members, applies the quickstart, and shows the replicas in each member
    and the merged status.
    """
    from federation.cli import demo

    _execute(demo.demo(directory, port=port, once=once, timeout_s=timeout))


@app.command()
def up(
    directory: flags.Dir,
    members: Annotated[
        int,
        typer.Option("--members", metavar="N", min=0, max=1000, help="Number of simulated members."),
    ] = 3,
    light: Annotated[
        bool,
        typer.Option("--light", help="Run all members in one process, behind one port, without saving their state."),
    ] = False,
    port: flags.Port = None,
    host: flags.Host = None,
    pod_start: Annotated[
        float,
        typer.Option("--pod-start", metavar="SECONDS", min=0, help="Time from a pod's binding to Running."),
    ] = 0.3,
    workload_spreads: Annotated[
        bool, typer.Option("--workload-spreads", help="Let the members serve WorkloadSpreads and UnitedDeployments.")
    ] = False,
    store_bytes_max: flags.StoreBytesMax = None,
    new: flags.New = None,
    log_format: flags.LogFormat = "text",
    log_level: flags.LogLevel = "warning",
) -> None:
    """Run a control plane with simulated members.

    Runs in the foreground until Ctrl-C. State is kept in DIR; the next start continues from it. More than 100 members
    need --light, whose members are new at every start and need a new DIR.
    """
    from federation.apimachinery import logs
    from federation.cli import run
    from federation.settings import from_environment

    logs.configure(log_format, log_level)
    given = {"directory": directory, "port": port, "host": host, "store_bytes_max": store_bytes_max, "new": new}
    settings = from_environment(given)
    fleet = run.FleetOptions(
        members,
        is_light=light,
        pod_start_s=pod_start,
        has_workload_spreads=workload_spreads,
    )
    _execute(run.up(settings, fleet, run.fork_members(settings.directory, fleet)))


@app.command()
def serve(
    directory: flags.Dir,
    port: flags.Port = None,
    host: flags.Host = None,
    advertise_address: flags.AdvertiseAddress = None,
    host_kubeconfig: flags.HostKubeconfig = None,
    in_cluster: flags.InCluster = None,
    host_url: flags.HostURL = None,
    role: flags.Role = None,
    advertise_url: flags.AdvertiseURL = None,
    tls_san: flags.TLSSan = None,
    tls_cert_file: flags.TLSCertFile = None,
    tls_key_file: flags.TLSKeyFile = None,
    tls_ca_file: flags.TLSCAFile = None,
    store_bytes_max: flags.StoreBytesMax = None,
    new: flags.New = None,
    encryption_key_file: flags.EncryptionKeyFile = None,
    encryption_key_command: flags.EncryptionKeyCommand = None,
    oidc_issuer_url: flags.IssuerURL = None,
    oidc_client_id: flags.ClientID = None,
    oidc_username_claim: flags.UsernameClaim = None,
    oidc_username_prefix: flags.UsernamePrefix = None,
    oidc_groups_claim: flags.GroupsClaim = None,
    oidc_groups_prefix: flags.GroupsPrefix = None,
    oidc_required_claim: flags.RequiredClaim = None,
    oidc_ca_file: flags.CAFile = None,
    oidc_signing_algs: flags.SigningAlgs = None,
    oidc_client_secret_file: flags.ClientSecretFile = None,
    oidc_scopes: flags.Scopes = None,
    audit_policy_file: flags.AuditPolicyFile = None,
    audit_log_path: flags.AuditLogPath = None,
    audit_log_maxsize: flags.AuditLogMaxsize = None,
    audit_log_maxbackup: flags.AuditLogMaxbackup = None,
    audit_log_mode: flags.AuditLogMode = None,
    otlp_endpoint: flags.OTLPEndpoint = None,
    spread_webhook: flags.SpreadWebhook = None,
    profile: flags.Profile = False,
    profile_file: flags.ProfileFile = None,
    log_format: flags.LogFormat = "text",
    log_level: flags.LogLevel = "info",
) -> None:
    """Run a control plane for your own clusters.

    Runs in the foreground until Ctrl-C. `fedctl join` adds clusters.

    With --host-kubeconfig or --in-cluster it serves no Kubernetes API: users work with that API server.
    """
    given = dict(locals())  # every parameter has the name of its field in Settings
    from federation.apimachinery import logs
    from federation.cli import run
    from federation.settings import from_environment

    logs.configure(log_format, log_level)
    if profile and profile_file is None:
        profile_file = directory / "profile.collapsed"
    _execute(run.serve(from_environment(given), spread_webhook or (), profile_file))


app.command("join")(clustercommands.join_command)
app.command("unjoin")(clustercommands.unjoin_command)
app.command("clusters")(clustercommands.clusters_command)
app.command("capacity")(clustercommands.capacity_command)
app.command("leftovers")(clustercommands.leftovers_command)
app.command("get")(membercommands.get_command)
app.command("describe")(membercommands.describe_command)
app.command("logs")(membercommands.logs_command)
app.command("exec")(membercommands.exec_command)
app.command("top")(membercommands.top_command)
app.command("agent")(agentcommands.agent_command)
app.add_typer(agentcommands.token_app, name="token")
app.command("holds")(holdcommands.holds_command)
app.command("approve")(holdcommands.approve_command)
app.command("undo")(holdcommands.undo_command)


app.command("cordon")(taintcommands.cordon_command)
app.command("uncordon")(taintcommands.uncordon_command)
app.command("drain")(taintcommands.drain_command)
app.command("taint")(taintcommands.taint_command)


@app.command("why")
def why_command(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND/NAME]",
            autocompletion=candidates.objects,
            help="For example deployment/nginx; [all objects].",
        ),
    ] = None,
    namespace: flags.Namespace = "",
    everywhere: flags.AllNamespaces = False,
    failed: Annotated[
        bool, typer.Option("--failed", help="Of all objects, those with a problem; exit code 1 if there are some.")
    ] = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    at: Annotated[
        str,
        typer.Option("--at", metavar="TIME", help="Decision in force at 2026-01-01T12:00:00Z, or 10m or 3d ago."),
    ] = "",
    diff: Annotated[bool, typer.Option("--diff", help="Compare with the previous decision.")] = False,
    output: flags.ListFormat = "table",
) -> None:
    """Explain where an object runs, and why.

    Shows for every cluster its replicas and scores, or the plugin that rejected it and the reason; then each step of
    the division. Without an object, lists all of the namespace, or of all namespaces with -A, and what keeps them.

    \b
    fedctl why deployment/web                 the newest decision
    fedctl why deployment/web --at 2h         the decision in force two hours ago
    fedctl why deployment/web --diff          what the newest decision changed
    fedctl why propagationpolicy/web          the objects that a policy applies to
    fedctl why -A --failed                    everything with a problem
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.cli import why, whylist

    host = KubeconfigContext(kubeconfig, context)
    if not target:
        if at or diff:
            raise typer.BadParameter("--at and --diff need KIND/NAME")
        _execute(whylist.why_all(host, "" if everywhere else namespace, output, only_failed=failed))
        return
    if everywhere or failed or output in ("wide", "name"):
        raise typer.BadParameter("KIND/NAME excludes -A, --failed, -o wide and -o name")
    written = "/".join(target)  # accepts `deployment nginx` too, as kubectl does
    _execute(why.why(host, why.Query(written, namespace, at, diff, output)))


app.command("render")(deliverycommands.render_command)
app.command("diff")(deliverycommands.diff_command)
app.command("import")(deliverycommands.import_command)
app.command("adopt")(deliverycommands.adopt_command)


app.command("plan")(plancommands.plan_command)
app.command("rebalance")(plancommands.rebalance_command)
app.command("apply-plan")(plancommands.apply_plan_command)
app.add_typer(rolloutcommands.app, name="rollout")
app.add_typer(simcommands.app, name="sim")
for _feature in FEATURES:
    for _name, _command in _feature.commands().items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name)
        else:
            app.command(_name)(_command)


@app.command("kubeconfig")
def kubeconfig_command(
    directory: flags.Dir,
    raw: Annotated[bool, typer.Option("--raw", help="Print the file itself: it grants everything.")] = False,
) -> None:
    """Print the kubeconfig's path, or the file.

    For: export KUBECONFIG="$(fedctl kubeconfig --dir DIR)"
    """
    from federation.cli import clusters

    clusters.print_kubeconfig(directory, is_raw=raw)


app.command("host-manifests")(hostcommands.host_manifests_command)
app.command("certs")(servercommands.certs_command)
app.command("ready")(servercommands.ready_command)
app.command("ui")(servercommands.ui_command)
app.command("spread-webhook")(spreadcommands.spread_webhook_command)


@app.command("doctor")
def doctor_command(
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.OutputFormat = "table",
) -> None:
    """Check host, store, certificates, members, deliveries, clocks and versions, and say what to do.

    Exit code 1 if something does not work; warnings do not count.
    """
    from federation.cli import doctor  # see the module's docstring

    _execute(doctor.run(KubeconfigContext(kubeconfig, context), output))


@app.command("support-bundle")
def support_bundle_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive to write, for example bundle.tar.gz.")],
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="A log of the control plane to add, without secrets.")
    ] = None,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Write what helps to find a fault into one archive, without secrets.

    Holds metrics, findings, decisions, events and our kinds, without manifests of users. Values of Secrets are removed
    wherever they occur; look through the archive before you send it.
    """
    from federation.cli import supportbundle  # see the module's docstring

    _execute(supportbundle.write(KubeconfigContext(kubeconfig, context), file.expanduser(), log))


app.command("encryption-key")(databasecommands.encryption_key_command)
app.add_typer(databasecommands.app, name="db")
app.command("backup")(databasecommands.backup_command)
app.command("restore")(databasecommands.restore_command)


@app.command("completion")
def completion_command(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print a script that completes commands, options and names.

    For `kubectl fed`, kubectl uses the program kubectl_complete-fed, which is installed beside fedctl.

    \b
    source <(fedctl completion bash)
    fedctl completion zsh > "${fpath[1]}/_fedctl"
    fedctl completion fish > ~/.config/fish/completions/fedctl.fish
    """  # noqa: D301  # the backspace keeps lines apart in the help
    print(candidates.script(shell))


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


_UsageError: Any = typer.BadParameter.__mro__[1]
"""typer's base of all errors of usage, which it does not export."""


def _fail_usage(error: Any) -> NoReturn:
    """Report wrong usage as one line; print the help of a group of commands that was called without a command."""
    message = error.format_message().replace("Value error, ", "")
    if "\n" in message:
        print(message, file=sys.stderr)
        sys.exit(2)
    hint = f" (see: {error.ctx.command_path} --help)" if error.ctx is not None else ""
    _fail(f"{message.rstrip('.')}{hint}", code=2)


def main(arguments: list[str] | None = None) -> None:
    """Run fedctl with these arguments, those of the process by default, and exit."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # replaces the handler that `entry.py` installed
        candidates.prepare()
        name = "kubectl fed" if Path(sys.argv[0]).name == "kubectl-fed" else "fedctl"
        words = sys.argv[1:] if arguments is None else arguments
        # A shell that completes has its words in the environment.
        command = app if candidates.VARIABLE in os.environ else parsing.to_command(app, words)
        sys.exit(command(words, prog_name=name, complete_var=candidates.VARIABLE, standalone_mode=False))
    except _UsageError as error:
        _fail_usage(error)
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


def _fail_group(group: BaseExceptionGroup[BaseException]) -> None:
    """Report the expected error in a task group's failure; re-raise the group when it holds an unexpected one."""
    expected, rest = group.split(FederationError)
    if rest is not None or expected is None:
        raise group
    error: BaseException = expected
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    _fail(str(error))


if __name__ == "__main__":
    main()
