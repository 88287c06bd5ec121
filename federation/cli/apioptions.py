"""The options of `fedctl serve` for its API: OIDC and the audit log, under the names of kube-apiserver's flags.

None means not given, so that FEDERATION_* variables and defaults apply; `settings.py` says what each one means.
"""

from typing import Annotated

import typer


def _option(flag: str, text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(flag, help=text, rich_help_panel="OIDC")
    return option


IssuerURL = Annotated[str | None, _option("--oidc-issuer-url", "Accept ID tokens of this issuer: https://…")]
ClientID = Annotated[str | None, _option("--oidc-client-id", "The audience that ID tokens must have.")]
UsernameClaim = Annotated[str | None, _option("--oidc-username-claim", "Claim with the user's name [sub].")]
UsernamePrefix = Annotated[
    str | None,
    _option("--oidc-username-prefix", "Put before names; - for none [ISSUER#, none for the claim email]."),
]
GroupsClaim = Annotated[str | None, _option("--oidc-groups-claim", "Claim with the user's groups [none].")]
GroupsPrefix = Annotated[str | None, _option("--oidc-groups-prefix", "Put before groups [nothing].")]
RequiredClaim = Annotated[
    list[str] | None, _option("--oidc-required-claim", "key=value that ID tokens must hold; may be repeated.")
]
CAFile = Annotated[
    str | None, _option("--oidc-ca-file", "PEM file to verify the issuer with [the system's authorities].")
]
SigningAlgs = Annotated[str | None, _option("--oidc-signing-algs", "Accepted algorithms, comma-separated [RS256].")]
