"""The options of `fedctl serve` for its API: OIDC and the audit log, under the names of kube-apiserver's flags.

None means not given, so that FEDERATION_* variables and defaults apply; `settings.py` says what each one means.
"""

from typing import Annotated

import typer

IssuerURL = Annotated[
    str | None, typer.Option("--oidc-issuer-url", metavar="URL", help="Accept ID tokens of this issuer: https://…")
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
        help="Put before names; - for none [ISSUER#, none for the claim email].",
    ),
]
GroupsClaim = Annotated[
    str | None, typer.Option("--oidc-groups-claim", metavar="CLAIM", help="Claim with the user's groups [none].")
]
GroupsPrefix = Annotated[
    str | None, typer.Option("--oidc-groups-prefix", metavar="PREFIX", help="Put before groups [nothing].")
]
RequiredClaim = Annotated[
    list[str] | None,
    typer.Option(
        "--oidc-required-claim", metavar="KEY=VALUE", help="key=value that ID tokens must hold; may be repeated."
    ),
]
CAFile = Annotated[
    str | None,
    typer.Option(
        "--oidc-ca-file", metavar="FILE", help="PEM file to verify the issuer with [the system's authorities]."
    ),
]
SigningAlgs = Annotated[
    str | None,
    typer.Option("--oidc-signing-algs", metavar="ALGORITHMS", help="Accepted algorithms, comma-separated [RS256]."),
]
AuditPolicyFile = Annotated[
    str | None,
    typer.Option("--audit-policy-file", metavar="FILE", help="What to record of requests: an audit.k8s.io/v1 Policy."),
]
AuditLogPath = Annotated[
    str | None,
    typer.Option(
        "--audit-log-path", metavar="FILE", help="File for audit events; - for standard output [DIR/audit.log]."
    ),
]
AuditLogMaxsize = Annotated[
    int | None,
    typer.Option("--audit-log-maxsize", metavar="MIB", min=1, help="MiB after which the file is rotated [100]."),
]
AuditLogMaxbackup = Annotated[
    int | None, typer.Option("--audit-log-maxbackup", metavar="N", min=1, help="Rotated files to keep [10].")
]
AuditLogMode = Annotated[
    str | None,
    typer.Option(
        "--audit-log-mode",
        metavar="MODE",
        help="batch drops and counts what cannot be written, blocking waits [batch].",
    ),
]
