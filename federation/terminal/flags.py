"""The options of fedctl's commands, declared once; OIDC and audit options have the names of kube-apiserver's flags.

None means not given, so that FEDERATION_* variables and defaults apply; `settings.py` documents each value.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from federation.terminal import candidates
from federation.terminal.kubeconfigcontext import KubeconfigContext


def to_directory(given: str | Path) -> Path:
    """Return the path; an empty one, such as that of an unset variable, would be the working directory."""
    if not str(given):
        raise typer.BadParameter("the name is empty; give the directory for state, keys and kubeconfigs")
    return Path(given)


def _namespace(context: typer.Context, given: str) -> str:
    """Return the given namespace, or that of the context in the kubeconfig; both options are parsed before."""
    if given or context.resilient_parsing:
        return given
    return KubeconfigContext(context.params.get("kubeconfig"), context.params.get("context") or "").namespace


Dir = Annotated[
    Path,
    typer.Option("--dir", metavar="DIR", parser=to_directory, help="Directory for state, keys and kubeconfigs."),
]
Port = Annotated[
    int | None,
    typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port of the API; 0 picks a free one [7443]."),
]
Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on [127.0.0.1].")]
Role = Annotated[
    str | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="Of several processes on one database: api, controllers or all [all].",
    ),
]
OTLPEndpoint = Annotated[
    str | None,
    typer.Option(
        "--otlp-endpoint",
        metavar="URL",
        help="OpenTelemetry collector for traces, over OTLP/HTTP [OTEL_EXPORTER_OTLP_ENDPOINT].",
    ),
]
Profile = Annotated[
    bool,
    typer.Option("--profile", help="Write a CPU profile to DIR/profile.collapsed at the end and at SIGUSR1."),
]
ProfileFile = Annotated[
    Path | None,
    typer.Option("--profile-file", metavar="FILE", help="The same to another file; its summary goes to FILE.txt."),
]
AdvertiseAddress = Annotated[
    str | None,
    typer.Option(
        "--advertise-address",
        metavar="IP",
        help="Address in the endpoints of the Service default/kubernetes [that of --host or of the machine].",
    ),
]
HostKubeconfig = Annotated[
    str | None,
    typer.Option(
        "--host-kubeconfig",
        metavar="FILE",
        help="Run on the Kubernetes API server of this kubeconfig instead of the embedded one.",
    ),
]
InCluster = Annotated[
    bool | None,
    typer.Option("--in-cluster", help="Run on the API server of the cluster in which this process is a pod."),
]
HostURL = Annotated[
    str | None,
    typer.Option(
        "--host-url",
        metavar="URL",
        help="Where that API server and users reach this process: https://ADDRESS:PORT, or"
        " https://NAME.NAMESPACE.svc:PORT for a Service [that of --host and --port].",
    ),
]
UIPort = Annotated[
    int | None,
    typer.Option(
        "--ui-port",
        metavar="PORT",
        min=0,
        max=65535,
        help="Serve the web UI for users of that API server on this port, at the address --host; 0 takes a free one.",
    ),
]
AdvertiseURL = Annotated[
    str | None,
    typer.Option(
        "--advertise-url",
        metavar="URL",
        help="https://HOST[:PORT] in DIR/kubeconfig, such as that of a load balancer [the address of --host].",
    ),
]
TLSSan = Annotated[
    list[str] | None,
    typer.Option(
        "--tls-san", metavar="NAME", help="Further DNS name or IP address in the serving certificate; may be repeated."
    ),
]
TLSCertFile = Annotated[
    str | None,
    typer.Option(
        "--tls-cert-file",
        metavar="FILE",
        help="PEM file of a serving certificate and its chain; read again when it changes [issued by DIR/pki/ca.crt].",
    ),
]
TLSKeyFile = Annotated[
    str | None, typer.Option("--tls-key-file", metavar="FILE", help="PEM file of the key of --tls-cert-file.")
]
TLSCAFile = Annotated[
    str | None,
    typer.Option(
        "--tls-ca-file",
        metavar="FILE",
        help="PEM file of the CA of --tls-cert-file, for DIR/kubeconfig [a CA that clients trust].",
    ),
]
StoreBytesMax = Annotated[
    int | None,
    typer.Option(
        "--store-bytes-max",
        metavar="BYTES",
        min=0,
        help="Refuse creates and updates while the database is larger; 0 for no limit [0].",
    ),
]
New = Annotated[
    bool | None,
    typer.Option("--new", help="Start empty although DIR has keys without a database, or the reverse."),
]
LogFormat = Annotated[Literal["text", "json"], typer.Option("--log-format", metavar="FORMAT", help="text or json.")]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"],
    typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error."),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        is_eager=True,
        help="The federation's kubeconfig [$KUBECONFIG, ~/.kube/config].",
    ),
]
Context = Annotated[
    str,
    typer.Option(
        "--context",
        metavar="NAME",
        autocompletion=candidates.contexts,
        is_eager=True,
        help="Context in the kubeconfig [its current context].",
    ),
]
_NAMESPACE_HELP = "Namespace of objects named without one [that of the context]."
Namespace = Annotated[
    str,
    typer.Option(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        autocompletion=candidates.namespaces,
        callback=_namespace,
        help=_NAMESPACE_HELP,
    ),
]
GlobalNamespace = Annotated[
    str,
    typer.Option("-n", "--namespace", metavar="NAMESPACE", autocompletion=candidates.namespaces, help=_NAMESPACE_HELP),
]
"""The namespace before the command; the command's own option completes it."""
AllNamespaces = Annotated[bool, typer.Option("-A", "--all-namespaces", help="Objects of all namespaces.")]
Selector = Annotated[
    str, typer.Option("-l", "--selector", metavar="SELECTOR", help="Only those with these labels, such as region=eu.")
]
Watch = Annotated[bool, typer.Option("-w", "--watch", help="After the list, print what changes, until Ctrl-C.")]
Timeout = Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=1, help="How long to wait.")]
OutputFormat = Annotated[
    Literal["table", "json", "yaml"], typer.Option("-o", "--output", metavar="FORMAT", help="table, json or yaml.")
]
ListFormat = Annotated[
    Literal["table", "wide", "json", "yaml", "name"],
    typer.Option("-o", "--output", metavar="FORMAT", help="table, wide, json, yaml or name."),
]

EncryptionKeyFile = Annotated[
    str | None,
    typer.Option(
        "--encryption-key-file", metavar="FILE", help="Encrypt stored Secrets with these keys; see encryption-key."
    ),
]
EncryptionKeyCommand = Annotated[
    str | None,
    typer.Option(
        "--encryption-key-command", metavar="COMMAND", help="Command that prints the keys instead, run at the start."
    ),
]
IssuerURL = Annotated[
    str | None,
    typer.Option("--oidc-issuer-url", metavar="URL", help="Accept ID tokens from this issuer, an https:// address."),
]
ClientID = Annotated[
    str | None, typer.Option("--oidc-client-id", metavar="ID", help="The audience that ID tokens must have.")
]
UsernameClaim = Annotated[
    str | None, typer.Option("--oidc-username-claim", metavar="CLAIM", help="Claim with the user's name [sub].")
]
UsernamePrefix = Annotated[
    str | None,
    typer.Option(
        "--oidc-username-prefix",
        metavar="PREFIX",
        help="Prefix of user names; - for none [ISSUER#, none for the claim email].",
    ),
]
GroupsClaim = Annotated[
    str | None, typer.Option("--oidc-groups-claim", metavar="CLAIM", help="Claim with the user's groups [none].")
]
GroupsPrefix = Annotated[
    str | None, typer.Option("--oidc-groups-prefix", metavar="PREFIX", help="Prefix of group names [none].")
]
RequiredClaim = Annotated[
    list[str] | None,
    typer.Option("--oidc-required-claim", metavar="KEY=VALUE", help="Claim that ID tokens must have; may be repeated."),
]
CAFile = Annotated[
    str | None,
    typer.Option("--oidc-ca-file", metavar="FILE", help="PEM file with the issuer's CA [the system's CAs]."),
]
SigningAlgs = Annotated[
    str | None,
    typer.Option("--oidc-signing-algs", metavar="ALGORITHMS", help="Accepted algorithms, comma-separated [RS256]."),
]
ClientSecretFile = Annotated[
    str | None,
    typer.Option(
        "--oidc-client-secret-file",
        metavar="FILE",
        help="Secret of the client, for the web UI's log-in [public client].",
    ),
]
Scopes = Annotated[
    str | None,
    typer.Option(
        "--oidc-scopes", metavar="SCOPES", help="Scopes of the web UI's log-in, comma-separated [openid,profile,email]."
    ),
]
AuditPolicyFile = Annotated[
    str | None,
    typer.Option("--audit-policy-file", metavar="FILE", help="Audit policy: an audit.k8s.io/v1 Policy."),
]
AuditLogPath = Annotated[
    str | None,
    typer.Option(
        "--audit-log-path", metavar="FILE", help="File for audit events; - for standard output [DIR/audit.log]."
    ),
]
AuditLogMaxsize = Annotated[
    int | None,
    typer.Option("--audit-log-maxsize", metavar="MIB", min=1, help="Rotate the file at this size in MiB [100]."),
]
AuditLogMaxbackup = Annotated[
    int | None, typer.Option("--audit-log-maxbackup", metavar="N", min=1, help="Rotated files to keep [10].")
]
AuditLogMode = Annotated[
    str | None,
    typer.Option(
        "--audit-log-mode",
        metavar="MODE",
        help="batch drops and counts events when the disk is slow, blocking delays requests [batch].",
    ),
]
SpreadWebhook = Annotated[
    list[str] | None,
    typer.Option(
        "--spread-webhook",
        metavar="FILE=ADDRESS:PORT[=URL]",
        help="Spread the pods of the cluster of this kubeconfig by WorkloadSpreads, as `fedctl spread-webhook` does.",
    ),
]
