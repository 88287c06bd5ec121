"""Options of the log-in at an OIDC provider (`oidclogin.py`)."""

from dataclasses import dataclass
from pathlib import Path

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.oidcclaims import OIDCOptions


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


def to_login_options(trusted: OIDCOptions | None, scopes: tuple[str, ...], secret_file: str) -> OIDCLoginOptions | None:
    """Return the client for a trusted issuer, None without one; ConfigurationError names the wrong setting."""
    if trusted is None:
        return None
    if "openid" not in scopes:
        raise ConfigurationError("oidc-scopes: openid must be among them, otherwise there is no ID token")
    secret = read_secret(Path(secret_file)) if secret_file else ""
    return OIDCLoginOptions(trusted.issuer_url, trusted.client_id, secret, scopes, trusted.ca_file)
