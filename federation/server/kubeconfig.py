"""Writing kubeconfig files: one cluster, one user, one context, readable by the owner only.

Credentials are embedded, so that the file can be copied. Reading kubeconfigs is `client/kubeconfig.py`.
"""

import base64
from pathlib import Path
from typing import Any

import yaml

from federation.server.pki import PKI, write_private


def to_kubeconfig(
    *,
    server: str,
    name: str,
    ca: bytes,
    certificate: bytes = b"",
    key: bytes = b"",
    token: str = "",
    namespace: str = "default",
) -> str:
    """Return the kubeconfig (YAML) for `server` (https://host:port) with a client certificate or a bearer token."""
    user: dict[str, Any] = {}
    if certificate:
        user["client-certificate-data"] = base64.b64encode(certificate).decode()
        user["client-key-data"] = base64.b64encode(key).decode()
    if token:
        user["token"] = token
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()},
            }
        ],
        "users": [{"name": f"{name}-admin", "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-admin", "namespace": namespace}}],
        "current-context": name,
        "preferences": {},
    }
    return yaml.safe_dump(document, sort_keys=False)


def write_kubeconfig(path: Path, pki: PKI, *, server: str, name: str = "federation") -> None:
    """Write the admin's kubeconfig atomically with mode 0600; ConfigurationError when the folder is not writable."""
    text = to_kubeconfig(
        server=server,
        name=name,
        ca=pki.ca_certificate.read_bytes(),
        certificate=pki.admin_certificate.read_bytes(),
        key=pki.admin_key.read_bytes(),
    )
    write_private(path, text.encode())
