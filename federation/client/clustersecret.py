"""The `Connection` to a member, from its FederatedCluster and the Secret with its credentials."""

import base64
import binascii

from federation.api import names
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object


def connection_from_secret(cluster: Object, secret: Object, *, bootstrap: bool | None = None) -> Connection:
    """Return the connection to a FederatedCluster's member (docs/reference/clusters.md).

    `bootstrap` selects the user's credentials (True) or the service account's token (False). By default, with
    `useServiceAccount`, the token is used after the join, and before it if the Secret has nothing else.
    ConfigurationError names the missing key.
    """
    spec = cluster.get("spec") or {}
    server = server_of(cluster)
    tunnel = str(cluster["metadata"]["name"]) if is_pulled(cluster) else ""
    if bootstrap is None:
        is_joined = (cluster.get("status") or {}).get("joinPerformed")
        bootstrap = not spec.get("useServiceAccount") or (not is_joined and has_given_credentials(secret))
    insecure = bool(spec.get("insecure"))
    ca = b"" if insecure else _secret_value(secret, names.SECRET_CA)
    if not insecure and not ca:
        raise _missing(secret, names.SECRET_CA, "give it, or set spec.insecure of the FederatedCluster")
    if not bootstrap:
        token = _secret_value(secret, names.SECRET_SERVICE_ACCOUNT_TOKEN)
        if not token:
            remedy = f"run: fedctl join --update-credentials {cluster['metadata']['name']} --kubeconfig FILE"
            raise _missing(secret, names.SECRET_SERVICE_ACCOUNT_TOKEN, remedy)
        return Connection(server=server, ca_data=ca, token=_to_token(token), insecure=insecure, tunnel=tunnel)
    certificate = _secret_value(secret, names.SECRET_CLIENT_CERTIFICATE)
    key = _secret_value(secret, names.SECRET_CLIENT_KEY)
    token = _secret_value(secret, names.SECRET_BOOTSTRAP_TOKEN)
    if bool(certificate) != bool(key):
        lacking = names.SECRET_CLIENT_KEY if certificate else names.SECRET_CLIENT_CERTIFICATE
        raise _missing(secret, lacking, "a client certificate needs its key")
    if not certificate and not token:
        raise _missing(
            secret, names.SECRET_CLIENT_CERTIFICATE, f"give it with its key, or give {names.SECRET_BOOTSTRAP_TOKEN}"
        )
    return Connection(
        server=server,
        ca_data=ca,
        client_cert_data=certificate,
        client_key_data=key,
        token=_to_token(token),
        insecure=insecure,
        tunnel=tunnel,
    )


def secret_name_of(cluster: str) -> str:
    """Return the name of the Secret that a join creates."""
    return f"{cluster}-credentials"


def is_pulled(cluster: Object) -> bool:
    """Return whether the member of a FederatedCluster is reached through its agent (docs/pull-mode.md)."""
    return (cluster.get("spec") or {}).get("syncMode") == names.SYNC_MODE_PULL


def server_of(cluster: Object) -> str:
    """Return the URL of a FederatedCluster's member; ConfigurationError if it has none."""
    server = str((cluster.get("spec") or {}).get("apiEndpoint") or "")
    if not server:
        raise ConfigurationError(f"{_title(cluster)}: spec.apiEndpoint: Required value")
    return server if "://" in server else f"https://{server}"


def ca_of(secret: Object) -> bytes:
    """Return the PEM of the member's CA, b"" if the Secret has none."""
    return _secret_value(secret, names.SECRET_CA)


def has_given_credentials(secret: Object) -> bool:
    """Return whether the Secret has credentials that a user gave."""
    data = secret.get("data") or {}
    return any(data.get(key) for key in names.SECRET_BOOTSTRAP_KEYS)


def _secret_value(secret: Object, key: str) -> bytes:
    encoded = (secret.get("data") or {}).get(key) or ""
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError) as problem:
        raise ConfigurationError(f"{_title(secret)}: data.{key}: not base64") from problem


def _to_token(token: bytes) -> str:
    return token.decode("ascii", errors="replace").strip()


def _missing(secret: Object, key: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(f"{_title(secret)}: data.{key}: Required value; {remedy}")


def _title(obj: Object) -> str:
    metadata = obj.get("metadata") or {}
    namespace = metadata.get("namespace")
    name = f"{namespace}/{metadata.get('name', '')}" if namespace else metadata.get("name", "")
    return f"{obj.get('kind') or 'Secret'} {name}"
