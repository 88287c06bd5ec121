"""The commands of `fedctl` (also installed as `kubectl-fed`) and their exit codes.

Every `FederationError` becomes one line, `fedctl: …`, on standard error and exit code 1; typer reports wrong usage
itself, with exit code 2. The work of each command is in a module of its own, which the command imports when it runs:
all of them together take a second to import.
"""

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from federation import __version__
from federation.apimachinery.errors import ApiError, FederationError
from federation.cli import (
    agentcommands,
    convert,
    databasecommands,
    deliverycommands,
    flags,
    holdcommands,
    hostcommands,
    plancommands,
    rolloutcommands,
    servercommands,
    simcommands,
    spreadcommands,
    taintcommands,
    topologycommands,
)
from federation.cli.execution import execute as _execute
from federation.cli.execution import fail as _fail
from federation.cli.execution import fail_output as _fail_output
from federation.cli.terminal.kubeconfigcontext import KubeconfigContext

app = typer.Typer(
    help=(
        "One Kubernetes API in front of many clusters.\n\n"
        "To try it out: `fedctl demo`. For your own clusters: `fedctl serve --dir DIR`, then `fedctl join`."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command("demo")
def demo_command(
    directory: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Directory for the demo's state.")] = Path(
        ".demo"
    ),
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
        int, typer.Option("--members", metavar="N", min=0, max=100, help="Number of simulated members.")
    ] = 3,
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

    Runs in the foreground until Ctrl-C. State is kept in DIR; the next start continues from it.
    """
    from federation.apimachinery import logs
    from federation.cli import run
    from federation.settings import from_environment

    logs.configure(log_format, log_level)
    given = {"directory": directory, "port": port, "host": host, "store_bytes_max": store_bytes_max, "new": new}
    settings = from_environment(given)
    fleet = run.FleetOptions(
        members,
        pod_start_s=pod_start,
        has_workload_spreads=workload_spreads,
        log_format=log_format,
        log_level=log_level,
    )
    _execute(run.up(settings, fleet))


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
    audit_policy_file: flags.AuditPolicyFile = None,
    audit_log_path: flags.AuditLogPath = None,
    audit_log_maxsize: flags.AuditLogMaxsize = None,
    audit_log_maxbackup: flags.AuditLogMaxbackup = None,
    audit_log_mode: flags.AuditLogMode = None,
    spread_webhook: flags.SpreadWebhook = None,
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
    _execute(run.serve(from_environment(given), spread_webhook or ()))


@app.command()
def join(
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
    host_kubeconfig: Annotated[
        Path | None,
        typer.Option("--host-kubeconfig", metavar="FILE", help="The federation's kubeconfig [$KUBECONFIG]."),
    ] = None,
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

    host = KubeconfigContext(host_kubeconfig, "")
    if update_credentials:
        if labels or taints or not use_service_account:
            raise typer.BadParameter("--update-credentials excludes --labels, --taints and --use-given-credentials")
        _execute(clusters.update_credentials(host, name, member_kubeconfig, member_context, timeout_s=timeout))
        return
    if member_kubeconfig is None:
        raise typer.BadParameter("give the member's kubeconfig with --kubeconfig FILE")
    request = clusters.to_join_request(
        name, member_kubeconfig, member_context, labels, taints, use_service_account=use_service_account
    )
    _execute(clusters.join(host, request, wait=wait, timeout_s=timeout))


app.command("agent")(agentcommands.agent_command)
app.add_typer(agentcommands.token_app, name="token")


@app.command()
def unjoin(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the member.")],
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

    Its workloads keep running, unless the FederatedCluster is annotated for cascading deletion.

    A cluster that is lost can only leave by force: nothing is cleaned up in it. `fedctl leftovers` lists what it holds;
    if it joins again, that is managed again or removed.
    """
    from federation.cli import clusters

    if force is not bool(reason.strip()):
        raise typer.BadParameter("--force and --reason TEXT belong together")
    _execute(clusters.unjoin(KubeconfigContext(kubeconfig, context), name, reason=reason.strip(), timeout_s=timeout))


@app.command("leftovers")
def leftovers_command(
    cluster: Annotated[str, typer.Option("--cluster", metavar="NAME", help="Only those of this cluster.")] = "",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.TableOrJSON = "table",
) -> None:
    """List what is left in members.

    Objects that were deleted while their cluster did not answer, objects in clusters that left by force, and managed
    objects that the federation does not know. To forget one: kubectl delete leftover NAME.
    """
    from federation.cli import leftovers

    _execute(leftovers.show(KubeconfigContext(kubeconfig, context), cluster, output))


app.command("holds")(holdcommands.holds_command)
app.command("approve")(holdcommands.approve_command)
app.command("undo")(holdcommands.undo_command)


app.command("cordon")(taintcommands.cordon_command)
app.command("uncordon")(taintcommands.uncordon_command)
app.command("drain")(taintcommands.drain_command)
app.command("taint")(taintcommands.taint_command)


@app.command("clusters")
def clusters_command(
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.TableOrJSON = "table",
) -> None:
    """List the members, their health, taints and free resources.

    SINCE says for how long a cluster has been ready or not.
    """
    from federation.cli import clusters

    _execute(clusters.show(KubeconfigContext(kubeconfig, context), output))


@app.command("why")
def why_command(
    target: Annotated[list[str], typer.Argument(metavar="KIND/NAME", help="For example deployment/nginx.")],
    namespace: flags.Namespace = "default",
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    at: Annotated[
        str,
        typer.Option("--at", metavar="TIME", help="Decision in force at 2026-01-01T12:00:00Z, or 10m or 3d ago."),
    ] = "",
    diff: Annotated[bool, typer.Option("--diff", help="Compare with the previous decision.")] = False,
    output: flags.OutputFormat = "table",
) -> None:
    """Explain where an object runs, and why.

    Shows for every cluster its replicas and scores, or the plugin that rejected it and the reason; then each step of
    the division.

    \b
    fedctl why deployment/web                 the newest decision
    fedctl why deployment/web --at 2h         the decision in force two hours ago
    fedctl why deployment/web --diff          what the newest decision changed
    fedctl why propagationpolicy/web          the objects that a policy applies to
    """  # noqa: D301  # the backspace keeps lines apart in the help
    from federation.cli import why

    written = "/".join(target)  # accepts `deployment nginx` too, as kubectl does
    _execute(why.why(KubeconfigContext(kubeconfig, context), why.Query(written, namespace, at, diff, output)))


app.command("render")(deliverycommands.render_command)
app.command("diff")(deliverycommands.diff_command)
app.command("convert")(convert.convert_command)
app.command("import")(deliverycommands.import_command)
app.command("adopt")(deliverycommands.adopt_command)


app.command("plan")(plancommands.plan_command)
app.command("apply-plan")(plancommands.apply_plan_command)
app.add_typer(topologycommands.app, name="topology")
app.add_typer(rolloutcommands.app, name="rollout")
app.add_typer(simcommands.app, name="sim")


@app.command("kubeconfig")
def kubeconfig_command(
    directory: flags.Dir,
    raw: Annotated[bool, typer.Option("--raw", help="Print the file itself: it grants everything.")] = False,
) -> None:
    """Print the kubeconfig's path, or the file.

    For: export KUBECONFIG=$(fedctl kubeconfig --dir DIR)
    """
    from federation.cli import clusters

    clusters.print_kubeconfig(directory, is_raw=raw)


app.command("host-manifests")(hostcommands.host_manifests_command)
app.command("certs")(servercommands.certs_command)
app.command("ready")(servercommands.ready_command)
app.command("spread-webhook")(spreadcommands.spread_webhook_command)


@app.command("doctor")
def doctor_command(
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
    output: flags.TableOrJSON = "table",
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


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


def main() -> None:
    """Run fedctl and exit."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # replaces the handler that `entry.py` installed
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
