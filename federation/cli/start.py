"""The commands that start a control plane, and those that need none: kubeconfig, version and completion.

`demo.py` and `run.py` do the work. They import a whole control plane, so a command imports them when it runs.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from federation import __version__
from federation.apimachinery.errors import ConfigurationError
from federation.terminal import candidates, flags
from federation.terminal.execution import execute


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

    execute(demo.demo(directory, port=port, once=once, timeout_s=timeout))


def up_command(
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
    gpus: Annotated[
        int,
        typer.Option(
            "--gpus", metavar="N", min=0, max=128, help="GPUs of each node, which a driver reports in ResourceSlices."
        ),
    ] = 0,
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
        devices=gpus,
        has_progress=log_format == "text",
    )
    execute(run.up(settings, fleet, run.fork_members(settings.directory, fleet)))


def serve_command(
    directory: flags.Dir,
    port: flags.Port = None,
    host: flags.Host = None,
    advertise_address: flags.AdvertiseAddress = None,
    host_kubeconfig: flags.HostKubeconfig = None,
    in_cluster: flags.InCluster = None,
    host_url: flags.HostURL = None,
    ui_port: flags.UIPort = None,
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
    execute(run.serve(from_environment(given), spread_webhook or (), profile_file))


def kubeconfig_command(
    directory: flags.Dir,
    raw: Annotated[bool, typer.Option("--raw", help="Print the file itself: it grants everything.")] = False,
) -> None:
    """Print the kubeconfig's path, or the file.

    For: export KUBECONFIG="$(fedctl kubeconfig --dir DIR)"
    """
    path = directory.expanduser().absolute() / "kubeconfig"
    if not path.exists():
        raise ConfigurationError(f"{path} does not exist; start the federation with: fedctl up --dir {directory}")
    print(path.read_text() if raw else path, end="" if raw else "\n")  # images without a shell have no `cat`


def version_command() -> None:
    """Print the version."""
    print(__version__)


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
