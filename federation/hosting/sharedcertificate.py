"""The serving certificate of the webhooks and its CA, which all processes of one cluster share.

They are in a Secret of the cluster. The first process creates it, and the first that finds the certificate due for
renewal, or without its own name, writes a new one; the resourceVersion decides between processes that do so at the same
time. Each process keeps a copy as files, from which the listener reads and a deleted Secret is restored.
"""

import asyncio
import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import AlreadyExists, ConfigurationError, Conflict, NotFound
from federation.apimachinery.resources import SECRETS, Object
from federation.apiserver.auth.pki import CA_CERTIFICATE, CA_KEY, ensure_server_certificate, server_files, write_private
from federation.client.client import Client


class SecretName(NamedTuple):
    """The Secret of a certificate."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


NAMESPACE = "kube-system"
SPREAD_SECRET = SecretName(NAMESPACE, names.SPREAD_WEBHOOKS)
_TRIES_MAX = 5
"""Writes of the Secret before a refresh fails; each failed one means that another process has written it."""
_KEYS = {"tls.crt": "server.crt", "tls.key": "server.key", "ca.crt": CA_CERTIFICATE, "ca.key": CA_KEY}
"""The files by their keys in the Secret."""


class SharedCertificate:
    """A certificate for `name`, a host name or address, as files in a folder of this process."""

    def __init__(
        self, client: Client, folder: Path, name: str, clock: Clock, *, secret: SecretName = SPREAD_SECRET
    ) -> None:
        self._client = client
        self._folder = folder
        self._name = name
        self._clock = clock
        self._secret = secret
        self.files = server_files(folder)
        self.bundle = ""
        """The CA certificate for `caBundle`, in base64; "" before the first refresh."""

    def authority_key(self) -> bytes:
        """Return the private key of the CA, which all processes share, after the first refresh."""
        return (self._folder / CA_KEY).read_bytes()

    async def refresh(self) -> None:
        """Read the Secret into the files; create it or renew the certificate if needed.

        ConfigurationError when the Secret cannot be used; Conflict, ApiError or ClusterError when it cannot be written.
        """
        for _ in range(_TRIES_MAX):
            try:
                secret = await self._client.get(SECRETS, self._secret.name, self._secret.namespace)
            except NotFound:
                secret = None
            found = (secret or {}).get("data") or {}
            data = await asyncio.to_thread(self._ensure, found)
            try:
                if secret is None:
                    await self._client.create(SECRETS, _to_secret(self._secret, data))
                elif data != found:
                    await self._client.update(SECRETS, {**secret, "data": data})
            except (AlreadyExists, Conflict):
                continue
            self.bundle = data["ca.crt"]
            return
        raise Conflict(f"the Secret {self._secret} changes too often")

    def _ensure(self, found: Mapping[str, Any]) -> dict[str, str]:
        """Write the files, with a new certificate if needed, and return them as data of the Secret."""
        paths = {key: self._folder / file for key, file in _KEYS.items()}
        try:
            for key, path in paths.items():
                if found.get(key) and _read(path) != (content := base64.b64decode(found[key], validate=True)):
                    write_private(path, content)
            now = self._clock.now()
            ensure_server_certificate(self._folder, names=[self._name], now=now, common_name=self._secret.name)
        except (ConfigurationError, binascii.Error, TypeError) as error:
            raise ConfigurationError(
                f"the Secret {self._secret} cannot be used ({error}); delete it to get a new one"
            ) from error
        return {**found, **{key: base64.b64encode(path.read_bytes()).decode() for key, path in paths.items()}}


async def delete_certificate(client: Client) -> None:
    """Delete the Secret, if there is one."""
    try:
        await client.delete(SECRETS, SPREAD_SECRET.name, SPREAD_SECRET.namespace)
    except NotFound:
        return


def _to_secret(secret: SecretName, data: Mapping[str, str]) -> Object:
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {
            "name": secret.name,
            "namespace": secret.namespace,
            "labels": {"app.kubernetes.io/managed-by": names.FIELD_MANAGER},
        },
        "type": "kubernetes.io/tls",
        "data": data,
    }


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
