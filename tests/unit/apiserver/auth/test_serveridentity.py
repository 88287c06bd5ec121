"""The names, the URL and the certificate by which clients know a server."""

import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.certificaterenewal import CertificateRenewal
from federation.apiserver.auth.kubeconfigfile import write_kubeconfig
from federation.apiserver.auth.pki import Authority, TLSFiles, ensure_pki, load_certificate, names_of
from federation.apiserver.auth.serveridentity import ServerIdentity, to_server_identity

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def a_certificate(folder: Path, *names: str, now: datetime = NOW) -> TLSFiles:
    """Issue a certificate of a CA of its own; `ca.crt` is beside it."""
    folder.mkdir(exist_ok=True)
    authority = Authority.ensure(folder, now=now, common_name="company")
    files = TLSFiles(folder / "tls.crt", folder / "tls.key")
    authority.issue_server(files.certificate, files.key, names=names, now=now)
    return files


def identity(certificate: str = "", key: str = "", ca: str = "", url: str = "", names: Any = ()) -> ServerIdentity:
    return to_server_identity(names, url, certificate, key, ca)


def a_given(folder: Path, *names: str, has_ca: bool = True, url: str = "") -> ServerIdentity:
    files = a_certificate(folder, *names)
    return identity(str(files.certificate), str(files.key), str(folder / "ca.crt") if has_ca else "", url)


def cluster_of(folder: Path, server: str, known: ServerIdentity) -> Any:
    pki = ensure_pki(folder / "pki", now=NOW)
    write_kubeconfig(folder / "kubeconfig", pki, server=server, identity=known)
    return yaml.safe_load((folder / "kubeconfig").read_text())["clusters"][0]["cluster"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"names": ["a b"]}, "tls-san: 'a b' is neither a DNS name nor an IP address"),
        ({"names": ["-x.example.com"]}, "tls-san: '-x.example.com'"),
        ({"key": "/tls.key"}, "tls-cert-file and tls-key-file belong together"),
        ({"certificate": "/tls.crt"}, "tls-cert-file and tls-key-file belong together"),
        ({"ca": "/ca.crt"}, "tls-ca-file is set without tls-cert-file"),
        ({"certificate": "/c", "key": "/k", "names": ["a.example.com"]}, "tls-san is set with tls-cert-file"),
        ({"certificate": "/nowhere/c", "key": "/k"}, "cannot read certificate /nowhere/c: No such file"),
        ({"url": "http://fed.example.com"}, "advertise-url: 'http://fed.example.com' is not of the form https://HOST"),
        ({"url": "https://fed.example.com/api"}, "advertise-url: .* is not of the form"),
        ({"url": "https://admin@fed.example.com"}, "advertise-url: .* is not of the form"),
        ({"url": "https://fed.example.com:99999"}, "advertise-url: .* is not a URL"),
        ({"url": "https://"}, "advertise-url: .* is not of the form"),
        ({"url": "https://exa_mple!"}, "advertise-url: 'exa_mple!' is neither a DNS name nor an IP address"),
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        identity(**wrong)


def test_the_servers_own_certificate_has_the_further_names_and_the_host_of_the_url(tmp_path: Path) -> None:
    known = identity(names=["*.fed.example.com", "203.0.113.7", "2001:db8::7"], url="https://api.example.com:8443/")
    assert known.url == "https://api.example.com:8443"
    pki = ensure_pki(tmp_path, now=NOW, names=known.all_names)
    held = names_of(load_certificate(pki.serving.certificate))
    assert {"*.fed.example.com", "203.0.113.7", "2001:db8::7", "api.example.com", "localhost"} <= set(held)
    assert known.present(pki) == pki.serving


def test_the_kubeconfig_has_the_ca_of_a_given_certificate(tmp_path: Path) -> None:
    known = a_given(tmp_path / "given", "fed.example.com", "10.0.0.7")
    cluster = cluster_of(tmp_path, "https://fed.example.com", known)
    own = cluster_of(tmp_path, "https://fed.example.com", identity())
    assert cluster["certificate-authority-data"] != own["certificate-authority-data"]
    assert "tls-server-name" not in cluster
    assert "tls-server-name" not in cluster_of(tmp_path, "https://10.0.0.7:7443", known)
    assert "tls-server-name" not in own


def test_the_kubeconfig_names_the_certificate_when_the_address_is_not_in_it(tmp_path: Path) -> None:
    known = a_given(tmp_path / "given", "fed.example.com")
    assert cluster_of(tmp_path, "https://127.0.0.1:7443", known)["tls-server-name"] == "fed.example.com"
    wildcard = a_given(tmp_path / "wildcard", "*.example.com")
    assert cluster_of(tmp_path, "https://127.0.0.1:7443", wildcard)["tls-server-name"] == "federation.example.com"
    assert "tls-server-name" not in cluster_of(tmp_path, "https://FED.example.com", wildcard)
    assert "tls-server-name" in cluster_of(tmp_path, "https://a.fed.example.com", wildcard)


def test_without_a_ca_file_the_kubeconfig_trusts_the_cas_of_the_client(tmp_path: Path) -> None:
    known = a_given(tmp_path / "given", "fed.example.com", has_ca=False)
    assert "certificate-authority-data" not in cluster_of(tmp_path, "https://fed.example.com", known)
    pki = ensure_pki(tmp_path / "pki", now=NOW)
    assert known.trust_in_objects(pki) == pki.ca_certificate


def test_client_certificates_of_the_servers_own_ca_stay_valid_with_a_given_certificate(tmp_path: Path) -> None:
    pki = ensure_pki(tmp_path / "pki", now=NOW)
    assert a_given(tmp_path / "given", "fed.example.com").present(pki).client_ca == pki.ca_certificate


async def test_a_certificate_that_others_renew_is_watched_and_not_written(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    known = a_given(tmp_path / "given", "fed.example.com")
    assert known.certificate is not None
    pki = ensure_pki(tmp_path / "pki", now=NOW)
    rewritten: list[str] = []
    renewal = CertificateRenewal(
        pki, lambda now: ensure_pki(tmp_path / "pki", now=now), lambda: rewritten.append("kubeconfig"), clock, known
    )
    before = known.certificate.read_bytes()
    await renewal.renew()
    assert not rewritten
    await clock.advance(366 * 24 * 3600)
    assert "expired at" in await renewal.check()
    assert known.certificate.read_bytes() == before

    a_certificate(tmp_path / "given", "fed.example.com", now=clock.now())
    rewritten.clear()
    await renewal.renew()
    assert rewritten
    assert await renewal.check() == ""


def test_a_given_pair_can_be_loaded(tmp_path: Path) -> None:
    files = a_given(tmp_path / "given", "fed.example.com").present(ensure_pki(tmp_path / "pki", now=NOW))
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.key)
