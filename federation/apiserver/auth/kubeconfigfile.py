"""Writes kubeconfig files: one cluster, one user, one context, readable by the owner only.

Credentials are embedded, so that the file can be copied. `client/kubeconfig.py` reads kubeconfigs.
"""

import base64
from pathlib import Path

import yaml

from federation.apiserver.auth.pki import PKI, write_private
from federation.apiserver.auth.serveridentity import SELF_ISSUED, ServerIdentity


def write_kubeconfig(
    path: Path, pki: PKI, *, server: str, name: str = "federation", identity: ServerIdentity = SELF_ISSUED
) -> None:
    """Write the admin's kubeconfig for `server` (https://host:port) atomically with mode 0600.

    ConfigurationError when the directory is not writable or a given certificate cannot be read.
    """
    cluster = {"server": server}
    if (authority := identity.trust(pki)) is not None:
        cluster["certificate-authority-data"] = _to_base64(authority)
    if server_name := identity.server_name(server):
        cluster["tls-server-name"] = server_name
    user = {
        "client-certificate-data": _to_base64(pki.admin_certificate),
        "client-key-data": _to_base64(pki.admin_key),
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": f"{name}-admin", "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-admin", "namespace": "default"}}],
        "current-context": name,
        "preferences": {},
    }
    data = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False).encode()
    if path.is_file() and path.read_bytes() == data:
        path.chmod(0o600)
        return  # a restart on a full disk writes nothing
    write_private(path, data)


def _to_base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
