"""The PKI on disk: creation, restarts and renewal."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.kubeconfigfile import write_kubeconfig
from federation.apiserver.auth.pki import (
    CA_VALIDITY,
    LEAF_VALIDITY,
    Authority,
    ensure_pki,
    load_certificate,
    load_private_key,
    renewal_time,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def names_of(path: Path) -> set[str]:
    held = load_certificate(path).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in held}


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_the_first_start_creates_all_files_and_keys_are_private(tmp_path: Path) -> None:
    pki = ensure_pki(tmp_path / "pki", now=NOW, names=["api.example", "10.0.0.1"])
    for path in (pki.ca_key, pki.serving.key, pki.admin_key, pki.token_key, pki.front_proxy.key):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700
    assert {"localhost", "127.0.0.1", "api.example", "10.0.0.1"} <= names_of(pki.serving.certificate)
    admin = load_certificate(pki.admin_certificate)
    assert admin.subject.rfc4514_string() == "CN=federation-admin,O=system:masters"
    assert not list((tmp_path / "pki").glob(".*"))


def test_a_restart_changes_no_file(tmp_path: Path) -> None:
    ensure_pki(tmp_path, now=NOW, names=["a.example"])
    before = contents(tmp_path)
    ensure_pki(tmp_path, now=NOW + timedelta(days=240), names=["a.example"])
    assert contents(tmp_path) == before


def test_certificates_are_renewed_before_they_expire_and_the_ca_is_kept(tmp_path: Path) -> None:
    pki = ensure_pki(tmp_path, now=NOW)
    before = contents(tmp_path)
    later = NOW + LEAF_VALIDITY * 0.67
    ensure_pki(tmp_path, now=later)
    after = contents(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {
        "server.crt",
        "server.key",
        "admin.crt",
        "admin.key",
        "front-proxy/client.crt",
        "front-proxy/client.key",
    }
    assert load_certificate(pki.serving.certificate).not_valid_after_utc > later + timedelta(days=300)


def test_a_new_host_name_renews_the_serving_certificate_only(tmp_path: Path) -> None:
    pki = ensure_pki(tmp_path, now=NOW)
    before = contents(tmp_path)
    ensure_pki(tmp_path, now=NOW, names=["new.example"])
    after = contents(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {"server.crt", "server.key"}
    assert "new.example" in names_of(pki.serving.certificate)


def test_a_ca_near_its_expiry_is_signed_again_with_the_same_key(tmp_path: Path) -> None:
    pki = ensure_pki(tmp_path, now=NOW)
    key, subject = pki.ca_key.read_bytes(), load_certificate(pki.ca_certificate).subject
    later = NOW + CA_VALIDITY - timedelta(days=100)
    ensure_pki(tmp_path, now=later)
    renewed = load_certificate(pki.ca_certificate)
    assert pki.ca_key.read_bytes() == key
    assert renewed.subject == subject
    assert renewed.not_valid_after_utc > later + timedelta(days=3000)


def test_a_key_that_does_not_match_its_certificate_is_replaced(tmp_path: Path) -> None:
    pki = ensure_pki(tmp_path, now=NOW)
    pki.serving.key.write_bytes(pki.admin_key.read_bytes())
    ensure_pki(tmp_path, now=NOW)
    assert load_private_key(pki.serving.key).public_key() == load_certificate(pki.serving.certificate).public_key()


def test_a_certificate_of_another_ca_is_replaced(tmp_path: Path) -> None:
    ours = ensure_pki(tmp_path / "ours", now=NOW)
    other = ensure_pki(tmp_path / "other", now=NOW)
    ours.admin_certificate.write_bytes(other.admin_certificate.read_bytes())
    ours.admin_key.write_bytes(other.admin_key.read_bytes())
    ensure_pki(tmp_path / "ours", now=NOW)
    load_certificate(ours.admin_certificate).verify_directly_issued_by(load_certificate(ours.ca_certificate))


def test_a_damaged_ca_key_is_a_configuration_error(tmp_path: Path) -> None:
    pki = ensure_pki(tmp_path, now=NOW)
    pki.ca_key.write_text("nonsense")
    with pytest.raises(ConfigurationError, match=r"ca\.key is not an unencrypted PEM private key"):
        ensure_pki(tmp_path, now=NOW)


def test_a_directory_that_is_a_file_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot create"):
        ensure_pki(tmp_path / "file", now=NOW)


def test_an_overlong_user_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="neither a host name nor an IP address"):
        ensure_pki(tmp_path, now=NOW, names=["exam ple\u2028" + "x" * 300])


@pytest.mark.parametrize("validity", [timedelta(seconds=60), timedelta(days=30)])
def test_a_client_certificate_is_due_for_renewal_after_it_was_issued_and_before_it_ends(
    tmp_path: Path, validity: timedelta
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    authority = Authority.ensure(tmp_path, now=NOW, common_name="test")
    pem = request.public_bytes(serialization.Encoding.PEM)
    issued = x509.load_pem_x509_certificate(
        authority.certify_client(pem, user="u", groups=(), now=NOW, validity=validity)
    )
    assert issued.not_valid_after_utc == NOW + validity
    assert NOW + validity / 4 < renewal_time(issued) < NOW + validity * 3 / 4


def test_the_kubeconfig_is_private_and_complete(tmp_path: Path) -> None:
    pki = ensure_pki(tmp_path / "pki", now=NOW)
    path = tmp_path / "kubeconfig"
    path.write_text("old")
    write_kubeconfig(path, pki, server="https://127.0.0.1:6443", name="host")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["current-context"] == "host"
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}


def test_the_front_proxy_has_a_ca_of_its_own(tmp_path: Path) -> None:
    pki = ensure_pki(tmp_path, now=NOW)
    certificate, authority = (
        load_certificate(pki.front_proxy.certificate),
        load_certificate(pki.front_proxy.ca_certificate),
    )
    certificate.verify_directly_issued_by(authority)
    assert certificate.subject.rfc4514_string() == "CN=front-proxy-client"
    assert authority.public_key() != load_certificate(pki.ca_certificate).public_key()
    assert pki.front_proxy.read() == (pki.front_proxy.certificate.read_bytes(), pki.front_proxy.key.read_bytes())
