"""Connections: addresses, TLS contexts and secrecy."""

import ssl
from datetime import UTC, datetime
from typing import Any

import pytest

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.pki import PKI, ensure_pki


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> PKI:
    return ensure_pki(tmp_path_factory.mktemp("pki"), now=datetime.now(UTC))


def test_secrets_are_not_printed() -> None:
    connection = Connection("https://m1", token="s3cr3t", password="s3cr3t", client_key_data=b"s3cr3t")
    assert "s3cr3t" not in repr(connection)


def test_another_address_keeps_the_name_to_verify() -> None:
    moved = Connection("https://m1.example.com:6443", token="t").at("https://127.0.0.1:9999")
    assert (moved.server, moved.tls_server_name, moved.token) == ("https://127.0.0.1:9999", "m1.example.com", "t")
    assert moved.at("https://127.0.0.1:1").tls_server_name == "m1.example.com"


def test_tls_verifies_unless_insecure(pki) -> None:
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
    ("fields", "expected"),
    [
        ({"ca_data": b"nonsense"}, "certificate-authority-data"),
        ({"ca_data": b"\xff\xfe"}, "certificate-authority-data"),
        ({"client_cert_data": b"nonsense", "client_key_data": b"nonsense"}, "client-certificate-data"),
    ],
    ids=["no PEM", "no text", "no key pair"],
)
def test_unusable_pem_is_named(fields: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        Connection("https://m1", **fields).to_tls()


def test_an_encrypted_key_is_refused_without_a_prompt(pki) -> None:
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
