"""Kubeconfigs mean to the federation what they mean to the official Kubernetes client.

Left out is a user with a token and a token file: that client takes the token, kubectl and the federation the file.
"""

import base64
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import KubeConfigLoader

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.pki import PKI
from federation.client.kubeconfig import load_kubeconfig

CLUSTERS = ("system CA", "CA data", "CA file", "CA file and data", "any certificate", "other name")
USERS = ("none", "no fields", "token", "token file", "certificate data", "certificate files")


def b64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def a_cluster(kind: str, folder: Path, pki: PKI) -> dict[str, Any]:
    (folder / "ca.crt").write_bytes(pki.ca_certificate.read_bytes())
    data = {"certificate-authority-data": b64(pki.ca_certificate)}
    fields: dict[str, Any] = {
        "system CA": {},
        "CA data": data,
        "CA file": {"certificate-authority": "ca.crt"},
        "CA file and data": {"certificate-authority": "none.crt", **data},
        "any certificate": {"insecure-skip-tls-verify": True},
        "other name": {"tls-server-name": "localhost", **data},
    }[kind]
    return {"server": "https://api.example.com:6443", **fields}


def a_user(kind: str, folder: Path, pki: PKI) -> dict[str, Any]:
    (folder / "token").write_text("from-file")
    (folder / "key").write_bytes(pki.admin_key.read_bytes())
    users: dict[str, dict[str, Any]] = {
        "none": {},
        "no fields": {},
        "token": {"token": "given"},
        "token file": {"tokenFile": str(folder / "token")},
        "certificate data": {
            "client-certificate-data": b64(pki.admin_certificate),
            "client-key-data": b64(pki.admin_key),
        },
        "certificate files": {"client-certificate": str(pki.admin_certificate), "client-key": "key"},
    }
    return users[kind]


def a_kubeconfig(cluster: dict[str, Any], user: dict[str, Any] | None) -> dict[str, Any]:
    context = {"cluster": "c", "namespace": "shop", **({} if user is None else {"user": "u"})}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "main", "context": context}],
        "current-context": "main",
    }


def judged(document: dict[str, Any], folder: Path) -> tuple[Configuration, KubeConfigLoader]:
    """Return what the official client reads."""
    configuration = Configuration()
    loader = KubeConfigLoader(document, config_base_path=str(folder))
    loader.load_and_set(configuration)
    return configuration, loader


def content(path: str | None) -> bytes | None:
    return Path(path).read_bytes() if path else None


@pytest.mark.parametrize(("cluster", "user"), list(product(CLUSTERS, USERS)))
def test_connection_and_credentials_are_those_of_the_official_client(
    tmp_path: Path, pki: PKI, cluster: str, user: str
) -> None:
    fields = None if user == "none" else a_user(user, tmp_path, pki)
    document = a_kubeconfig(a_cluster(cluster, tmp_path, pki), fields)
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    expected, loader = judged(document, tmp_path)
    found = load_kubeconfig(tmp_path / "kubeconfig")

    assert (found.server, found.namespace) == (expected.host, loader.current_context["context"]["namespace"])
    assert (not found.insecure, found.tls_server_name or None) == (expected.verify_ssl, expected.tls_server_name)
    assert (found.ca_data or None) == content(expected.ssl_ca_cert)
    assert (found.client_cert_data or None) == content(expected.cert_file)
    assert (found.client_key_data or None) == content(expected.key_file)
    token = Path(found.token_file).read_text() if found.token_file else found.token
    assert (f"Bearer {token}" if token else None) == expected.api_key.get(
        "BearerToken", expected.api_key.get("authorization")
    )


@pytest.mark.parametrize(
    "broken",
    [
        {"current-context": "other"},
        {"clusters": []},
        {"clusters": [{"name": "c"}]},
        {"contexts": []},
        {"contexts": [{"name": "main", "context": {"cluster": "d", "user": "u"}}]},
    ],
    ids=lambda broken: yaml.safe_dump(broken, default_flow_style=True).strip(),
)
def test_what_the_official_client_refuses_is_refused(tmp_path: Path, broken: dict[str, Any]) -> None:
    document = {**a_kubeconfig({"server": "https://api.example.com:6443"}, {"token": "t"}), **broken}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    with pytest.raises(ConfigException):
        judged(document, tmp_path)
    with pytest.raises(ConfigurationError):
        load_kubeconfig(tmp_path / "kubeconfig")
