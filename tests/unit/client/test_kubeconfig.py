"""Real-world kubeconfigs, and one clear line for every unusable one."""

import base64
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from federation.apimachinery.errors import ConfigurationError
from federation.client.kubeconfig import fetch_credentials, in_cluster, load_kubeconfig


def a_kubeconfig(cluster: dict[str, Any], user: dict[str, Any] | None = None, **context: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443", **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u", **context}},
            {"name": "anonymous", "context": {"cluster": "c"}},
        ],
        "current-context": "main",
    }


def written(folder: Path, document: Any) -> Path:
    path = folder / "kubeconfig"
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def b64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def test_inline_data_is_read(tmp_path, pki) -> None:
    user = {"client-certificate-data": b64(pki.admin_certificate), "client-key-data": b64(pki.admin_key)}
    cluster = {"certificate-authority-data": b64(pki.ca_certificate), "tls-server-name": "localhost"}
    connection = load_kubeconfig(written(tmp_path, a_kubeconfig(cluster, user, namespace="shop")))
    assert connection.server == "https://api:6443"
    assert connection.ca_data == pki.ca_certificate.read_bytes()
    assert connection.client_cert_data == pki.admin_certificate.read_bytes()
    assert connection.client_key_data == pki.admin_key.read_bytes()
    assert (connection.namespace, connection.tls_server_name) == ("shop", "localhost")


def test_relative_files_are_read_beside_the_kubeconfig(tmp_path, pki) -> None:
    for name, path in (("ca", pki.ca_certificate), ("crt", pki.admin_certificate), ("key", pki.admin_key)):
        (tmp_path / name).write_bytes(path.read_bytes())
    user = {"client-certificate": "crt", "client-key": str(tmp_path / "key")}
    connection = load_kubeconfig(written(tmp_path, a_kubeconfig({"certificate-authority": "ca"}, user)))
    assert connection.ca_data == pki.ca_certificate.read_bytes()
    assert connection.client_key_data == pki.admin_key.read_bytes()


def test_tokens_passwords_and_impersonation_are_read(tmp_path) -> None:
    user = {"token": "t", "username": "me", "password": "p", "as": "other", "as-groups": ["g1", "g2"]}
    document = a_kubeconfig({"insecure-skip-tls-verify": True, "proxy-url": "http://proxy:3128"}, user)
    connection = load_kubeconfig(written(tmp_path, document))
    assert (connection.token, connection.username, connection.password) == ("t", "me", "p")
    assert (connection.impersonate_user, connection.impersonate_groups) == ("other", ("g1", "g2"))
    assert (connection.insecure, connection.proxy_url) == (True, "http://proxy:3128")


def test_a_token_file_wins_over_a_token(tmp_path, token_file) -> None:
    user = {"token": "inline", "tokenFile": str(token_file)}
    connection = load_kubeconfig(written(tmp_path, a_kubeconfig({"insecure-skip-tls-verify": True}, user)))
    assert (connection.token, connection.token_file) == ("first", str(token_file))


def test_a_context_can_be_selected(tmp_path) -> None:
    path = written(tmp_path, a_kubeconfig({"insecure-skip-tls-verify": True}, {"token": "t"}))
    assert load_kubeconfig(path, "anonymous").token == ""


def without(document: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != key}


GOOD = a_kubeconfig({})
PROBLEMS: dict[str, tuple[Any, str, str]] = {
    "no YAML": ("a: [", "", "is not YAML in line 1"),
    "no mapping": ("just text", "", "is not a kubeconfig"),
    "another kind": ({"kind": "Pod"}, "", "is not a kubeconfig"),
    "no context": (without(GOOD, "current-context"), "", "current-context: is not set; choose a context: anonymous"),
    "unknown context": (GOOD, "prod", 'contexts: has no "prod"; there are: anonymous, main'),
    "no clusters": (without(GOOD, "clusters"), "", 'clusters: has no "c"; there are: none'),
    "no user": (without(GOOD, "users"), "", 'users: has no "u"; there are: none'),
    "no server": (a_kubeconfig({"server": ""}), "", "clusters[c].cluster.server: is not set"),
    "no address": (a_kubeconfig({"server": "api:6443"}), "", "write https://HOST:PORT"),
    "bad port": (a_kubeconfig({"server": "https://api:port"}), "", "write https://HOST:PORT"),
    "no base64": (a_kubeconfig({"certificate-authority-data": "%"}), "", "certificate-authority-data: is not base64"),
    "no PEM": (a_kubeconfig({"certificate-authority-data": "YWJj"}), "", "not a PEM certificate"),
    "no file": (a_kubeconfig({"certificate-authority": "no.crt"}), "", "no.crt does not exist"),
    "no key": (a_kubeconfig({}, {"client-certificate-data": "YWJj"}), "", "users[u].user.client-key: is not set"),
    "no token file": (a_kubeconfig({}, {"tokenFile": "none"}), "", "users[u].user.tokenFile"),
    "no command": (a_kubeconfig({}, {"exec": {"args": ["x"]}}), "", "users[u].user.exec.command: is not set"),
    "odd section": ({**GOOD, "users": [{"name": "u", "user": "text"}]}, "", "users[u].user: is no mapping"),
}


@pytest.mark.parametrize(("document", "context", "expected"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_every_problem_is_one_line_with_file_and_field(tmp_path, document, context, expected) -> None:
    path = written(tmp_path, document)
    with pytest.raises(ConfigurationError) as caught:
        load_kubeconfig(path, context)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert expected in message
    assert "\n" not in message


def test_a_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(ConfigurationError, match="none does not exist; give the path of the kubeconfig"):
        load_kubeconfig(tmp_path / "none")
    with pytest.raises(ConfigurationError, match="is a folder"):
        load_kubeconfig(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_is_named(tmp_path) -> None:
    path = written(tmp_path, GOOD)
    path.chmod(0)
    with pytest.raises(ConfigurationError, match="is not readable"):
        load_kubeconfig(path)


def a_plugin(folder: Path, script: str) -> dict[str, Any]:
    path = folder / "plugin"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin"}}


CREDENTIAL = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": %s}'


async def test_an_exec_plugin_returns_a_token(tmp_path) -> None:
    status = '{"token": "from-plugin", "expirationTimestamp": "2030-01-01T00:00:00Z"}'
    user = a_plugin(tmp_path, f"echo '{CREDENTIAL % status}'")
    connection = load_kubeconfig(written(tmp_path, a_kubeconfig({"insecure-skip-tls-verify": True}, user)))
    assert connection.plugin is not None
    found = await fetch_credentials(connection)
    assert (found.connection.token, found.connection.plugin) == ("from-plugin", None)
    assert found.expires is not None
    assert found.expires.year == 2030


@pytest.mark.parametrize(
    ("script", "expected"),
    [("echo broken >&2; exit 3", "broken"), (f"echo '{CREDENTIAL % '{}'}'", "neither a token nor a certificate")],
    ids=["fails", "gives nothing"],
)
async def test_a_failing_exec_plugin_is_reported(tmp_path, script, expected) -> None:
    user = a_plugin(tmp_path, script)
    connection = load_kubeconfig(written(tmp_path, a_kubeconfig({"insecure-skip-tls-verify": True}, user)))
    with pytest.raises(ConfigurationError, match=expected):
        await fetch_credentials(connection)


async def test_without_a_plugin_the_connection_stays_as_it_is(tmp_path) -> None:
    connection = load_kubeconfig(written(tmp_path, a_kubeconfig({"insecure-skip-tls-verify": True}, {"token": "t"})))
    assert (await fetch_credentials(connection)).connection is connection


async def test_an_exec_plugin_can_return_a_certificate(tmp_path, pki) -> None:
    status = json.dumps(
        {
            "clientCertificateData": pki.admin_certificate.read_text(),
            "clientKeyData": pki.admin_key.read_text(),
        }
    )
    (tmp_path / "answer").write_text(CREDENTIAL % status)
    user = a_plugin(tmp_path, f"cat {tmp_path / 'answer'}")
    connection = load_kubeconfig(written(tmp_path, a_kubeconfig({"insecure-skip-tls-verify": True}, user)))
    found = (await fetch_credentials(connection)).connection
    assert found.client_cert_data == pki.admin_certificate.read_bytes()
    assert found.to_tls() is not None


def an_id_token(expires: int) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).decode().rstrip("=")
    return f"e30.{claims}.sig"


async def test_a_token_of_an_identity_provider_is_used_until_it_expires(tmp_path) -> None:
    token = an_id_token(4102444800)
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}
    connection = load_kubeconfig(written(tmp_path, a_kubeconfig({"insecure-skip-tls-verify": True}, user)))
    assert (await fetch_credentials(connection)).connection.token == token


@pytest.mark.parametrize(
    "provider",
    [{"name": "oidc", "config": {"id-token": "nonsense"}}, {"name": "unknown", "config": {}}],
    ids=["nonsense", "unknown"],
)
async def test_a_failing_identity_provider_is_reported(tmp_path, provider) -> None:
    user = {"auth-provider": provider}
    connection = load_kubeconfig(written(tmp_path, a_kubeconfig({"insecure-skip-tls-verify": True}, user)))
    with pytest.raises(ConfigurationError, match="auth-provider"):
        await fetch_credentials(connection)


def test_a_pod_finds_its_own_cluster(tmp_path, pki) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigurationError, match="token does not exist"):
        in_cluster(environ, tmp_path)
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_bytes(pki.ca_certificate.read_bytes())
    (tmp_path / "namespace").write_text("kube-admiral-system\n")
    connection = in_cluster(environ, tmp_path)
    assert connection.server == "https://10.96.0.1:443"
    assert connection.token_file == str(tmp_path / "token")
    assert connection.namespace == "kube-admiral-system"
    assert in_cluster({**environ, "KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path).server == "https://[fd00::1]:443"


def test_outside_a_cluster_the_error_names_the_remedy(tmp_path) -> None:
    with pytest.raises(ConfigurationError, match="give a kubeconfig"):
        in_cluster({}, tmp_path)
