"""Options of the log-in at an OIDC provider (`oidclogin.py`)."""

from dataclasses import dataclass
from pathlib import Path

from federation.apimachinery.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class OIDCLoginOptions:
    """The client that the provider knows for the web UI."""

    issuer_url: str
    client_id: str
    client_secret: str = ""
    """"": a public client, which PKCE alone protects."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    ca_file: Path | None = None


def read_secret(file: Path) -> str:
    """Return a client secret; ConfigurationError names a file that cannot be read or is empty."""
    try:
        secret = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"oidc-client-secret-file {file}: {error}") from error
    if not secret:
        raise ConfigurationError(f"oidc-client-secret-file {file}: it is empty; write the client's secret into it")
    return secret
