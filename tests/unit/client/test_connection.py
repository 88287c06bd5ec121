"""Connections from Secrets, and TLS from connections."""

import base64
import ssl
from typing import Any

import pytest

from federation.base.errors import ConfigurationError
from federation.client.connection import Connection, connection_from_secret


def a_cluster(**spec: Any) -> dict[str, Any]:
    return {
        "kind": "FederatedCluster",
        "metadata": {"name": "m1"},
        "spec": {"apiEndpoint": "https://m1:6443", "secretRef": {"name": "m1"}, **spec},
    }


def a_secret(**data: str) -> dict[str, Any]:
    encoded = {key.replace("_", "-"): base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"kind": "Secret", "metadata": {"name": "m1", "namespace": "kube-admiral-system"}, "data": encoded}


BOOTSTRAP = {"certificate_authority_data": "ca", "client_certificate_data": "cert", "client_key_data": "key"}


def test_the_users_credentials_are_used_until_the_service_account_took_over() -> None:
    secret = a_secret(**BOOTSTRAP, service_account_token_data="issued\n")
    joining = connection_from_secret(a_cluster(useServiceAccount=True), secret)
    assert (joining.client_cert_data, joining.token) == (b"cert", "")
    joined = {**a_cluster(useServiceAccount=True), "status": {"joinPerformed": True}}
    connection = connection_from_secret(joined, secret)
    assert (connection.client_cert_data, connection.token) == (b"", "issued")
    assert connection_from_secret(joined, secret, bootstrap=True) == joining


def test_an_insecure_cluster_needs_no_ca_and_ignores_one() -> None:
    connection = connection_from_secret(a_cluster(insecure=True), a_secret(**BOOTSTRAP))
    assert connection.insecure
    assert connection.ca_data == b""


def test_an_endpoint_without_a_scheme_is_https() -> None:
    connection = connection_from_secret(a_cluster(apiEndpoint="10.0.0.1:6443"), a_secret(**BOOTSTRAP))
    assert connection.server == "https://10.0.0.1:6443"


@pytest.mark.parametrize(
    ("cluster", "secret", "told"),
    [
        (a_cluster(apiEndpoint=""), a_secret(**BOOTSTRAP), "FederatedCluster m1: spec.apiEndpoint: Required value"),
        (a_cluster(), a_secret(bootstrap_token_data="t"), "data.certificate-authority-data: Required value"),
        (a_cluster(insecure=True), a_secret(), "data.client-certificate-data: Required value"),
        (a_cluster(insecure=True), a_secret(client_certificate_data="c"), "data.client-key-data: Required value"),
        (a_cluster(insecure=True), a_secret(client_key_data="k"), "data.client-certificate-data: Required value"),
        (
            {**a_cluster(insecure=True, useServiceAccount=True), "status": {"joinPerformed": True}},
            a_secret(bootstrap_token_data="t"),
            "data.service-account-token-data: Required value",
        ),
        (
            a_cluster(),
            {**a_secret(), "data": {"certificate-authority-data": "%%%"}},
            "Secret kube-admiral-system/m1: data.certificate-authority-data: not base64",
        ),
    ],
    ids=["endpoint", "ca", "credentials", "key", "certificate", "service account", "base64"],
)
def test_what_is_missing_is_named(cluster: Any, secret: Any, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        connection_from_secret(cluster, secret)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_secrets_are_not_printed() -> None:
    connection = Connection("https://m1", token="s3cr3t", password="s3cr3t", client_key_data=b"s3cr3t")
    assert "s3cr3t" not in repr(connection)


def test_another_address_keeps_the_name_to_verify() -> None:
    moved = Connection("https://m1.example.com:6443", token="t").at("https://127.0.0.1:9999")
    assert (moved.server, moved.tls_server_name, moved.token) == ("https://127.0.0.1:9999", "m1.example.com", "t")
    assert moved.at("https://127.0.0.1:1").tls_server_name == "m1.example.com"


def test_tls_verifies_unless_told_not_to(pki) -> None:
    ca = pki.ca_certificate.read_bytes()
    strict = Connection("https://m1", ca_data=ca).to_tls()
    assert strict.verify_mode is ssl.CERT_REQUIRED
    assert not strict.verify_flags & ssl.VERIFY_X509_STRICT
    assert Connection("https://m1", insecure=True).to_tls().verify_mode is ssl.CERT_NONE
    assert Connection("http://m1").to_tls() is None


def test_a_client_certificate_is_loaded_with_its_key(pki) -> None:
    certificate, key = pki.admin_certificate.read_bytes(), pki.admin_key.read_bytes()
    Connection("https://m1", client_cert_data=certificate, client_key_data=key).to_tls()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"ca_data": b"nonsense"}, "certificate-authority-data"),
        ({"ca_data": b"\xff\xfe"}, "certificate-authority-data"),
        ({"client_cert_data": b"nonsense", "client_key_data": b"nonsense"}, "client-certificate-data"),
    ],
    ids=["no PEM", "no text", "no key pair"],
)
def test_unusable_pem_is_named(fields: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        Connection("https://m1", **fields).to_tls()


def test_an_encrypted_key_is_refused_without_asking(pki) -> None:
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(pki.admin_key.read_bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"pass"),
    )
    connection = Connection(
        "https://m1", client_cert_data=pki.admin_certificate.read_bytes(), client_key_data=encrypted
    )
    with pytest.raises(ConfigurationError, match="unencrypted"):
        connection.to_tls()
