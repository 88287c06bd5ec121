"""How the host and its users find this process: webhook configurations, and a ConfigMap with the address of its API.

The leader writes them, and again when the certificate, the address or the federated kinds change.
"""

import base64
from collections.abc import Callable
from urllib.parse import urlsplit

from federation.api import names
from federation.apimachinery.errors import ApiError, ConfigurationError
from federation.apimachinery.resources import CONFIGMAPS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Object
from federation.client.client import Client, PatchType
from federation.hosting.manifests import CLIENT_CA

_SERVICE_SUFFIX = ".svc"


def check_url(url: str, listener: str) -> str:
    """Return the URL without a slash at the end; ConfigurationError unless the host can reach it."""
    parts = urlsplit(url)
    if url and (parts.scheme != "https" or not parts.hostname or parts.path.strip("/") or parts.query):
        raise ConfigurationError(
            f"host-url: {url!r} is no address of this process; write https://ADDRESS:PORT as the host sees it, or"
            " https://NAME.NAMESPACE.svc:PORT for a Service"
        )
    if not url and listener in ("0.0.0.0", "::"):  # noqa: S104  # compared, not bound
        raise ConfigurationError("give --host-url: the host needs one address at which it reaches this process")
    return url.rstrip("/")


def to_client_config(url: str, bundle: str) -> Callable[[str], Object]:
    """Return the function from a path to the clientConfig of a webhook, which names a Service if the URL does."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host.endswith(_SERVICE_SUFFIX) or host.count(".") != 2:
        return lambda path: {"url": url + path, "caBundle": bundle}
    name, namespace, _ = host.split(".")
    service = {"name": name, "namespace": namespace, "port": parts.port or 443}
    return lambda path: {"service": {**service, "path": path}, "caBundle": bundle}


async def install_webhooks(client: Client, mutating: Object, validating: Object) -> None:
    """Create or replace the webhook configurations."""
    for resource, configuration in ((MUTATING_WEBHOOKS, mutating), (VALIDATING_WEBHOOKS, validating)):
        await client.patch(
            resource,
            names.HOST_WEBHOOKS,
            configuration,
            patch_type=PatchType.APPLY,
            field_manager=names.FIELD_MANAGER,
            force=True,
        )


async def publish_endpoint(client: Client, url: str, bundle: str) -> None:
    """Write where the federation's own API is, and its CA, for `fedctl`."""
    data = {"url": url, "ca.crt": base64.b64decode(bundle).decode()}
    metadata = {"name": names.HOST_ENDPOINT, "namespace": names.SYSTEM_NAMESPACE}
    await client.patch(
        CONFIGMAPS,
        names.HOST_ENDPOINT,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data},
        namespace=names.SYSTEM_NAMESPACE,
        patch_type=PatchType.APPLY,
        field_manager=names.FIELD_MANAGER,
        force=True,
    )


async def client_authority(client: Client) -> str:
    """Return the PEM of the CA that signs the client certificates of the host's users, "" if it cannot be read."""
    try:
        found = await client.get(CONFIGMAPS, *CLIENT_CA)
    except ApiError:
        return ""
    return str((found.get("data") or {}).get("client-ca-file") or "")
