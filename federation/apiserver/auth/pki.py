"""The public key infrastructure of one API server: CA, certificates of server, admin and front proxy, token key.

All are PEM files in one directory, keys readable by the owner only. `ensure_pki` creates missing files and renews
certificates that are about to expire, so kubeconfigs stay valid over restarts. Keys are ECDSA P-256.
"""

import contextlib
import ipaddress
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from federation.apimachinery.errors import BadRequest, ConfigurationError

CA_CERTIFICATE, CA_KEY = "ca.crt", "ca.key"
TOKEN_KEY = "service-account.key"  # noqa: S105  # a file name
CA_VALIDITY = timedelta(days=3650)
LEAF_VALIDITY = timedelta(days=365)
RENEW_AFTER = 2 / 3
"""Share of its life after which a certificate is renewed."""
_BACKDATE = timedelta(minutes=5)
"""Certificates start in the past, so that a client whose clock is slow accepts them."""

_NAME_LENGTH_MAX = 64
"""Longest common name or organisation, by X.520."""

FRONT_PROXY_USER = "front-proxy-client"
"""The name by which aggregated API servers recognise this server."""
ADMIN_USER = "federation-admin"
ADMIN_GROUP = "system:masters"
DEFAULT_NAMES = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class TLSFiles:
    """PEM files of a TLS server; without `client_ca` no client certificate is requested."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """The identity of this server at aggregated API servers.

    It has its own CA: a certificate of the client CA must not permit anyone to name another user in headers.
    """

    ca_certificate: Path
    certificate: Path
    key: Path

    def read(self) -> tuple[bytes, bytes]:
        """Return the PEM of the certificate and of its key. It blocks."""
        return self.certificate.read_bytes(), self.key.read_bytes()


@dataclass(frozen=True, slots=True)
class PKI:
    """The files of one server's PKI."""

    ca_certificate: Path
    ca_key: Path
    serving: TLSFiles
    admin_certificate: Path
    admin_key: Path
    token_key: Path
    """Signs ServiceAccount tokens."""
    front_proxy: FrontProxy


def write_private(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write a file atomically and durably with `mode`; ConfigurationError when the directory cannot be written."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}; give a folder that is writable") from error
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            # Before the rename: after a crash the file must not be empty.
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from error


def ensure_pki(directory: Path, *, now: datetime, names: Sequence[str] = (), common_name: str = "federation") -> PKI:
    """Return the PKI in `directory`, creating and renewing files as needed.

    `names` are further host names and addresses of the serving certificate. It blocks for about 10 ms.
    ConfigurationError names the file that is unusable.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigurationError(f"cannot create {directory}: {error.strerror}") from error
    authority = Authority.ensure(directory, now=now, common_name=common_name)
    files = server_files(directory)
    serving = TLSFiles(files.certificate, files.key, authority.certificate_path)
    required = tuple(dict.fromkeys([*DEFAULT_NAMES, *(name for name in names if name)]))
    if not _is_usable(serving.certificate, serving.key, authority, now, required):
        authority.issue_server(serving.certificate, serving.key, names=required, now=now)
    admin_certificate, admin_key = directory / "admin.crt", directory / "admin.key"
    if not _is_usable(admin_certificate, admin_key, authority, now, ()):
        authority.issue_client(admin_certificate, admin_key, user=ADMIN_USER, groups=(ADMIN_GROUP,), now=now)
    token_key = directory / TOKEN_KEY
    if not token_key.exists():
        write_private(token_key, _to_pem(ec.generate_private_key(ec.SECP256R1())))
    front_proxy = _ensure_front_proxy(directory / "front-proxy", now, common_name)
    return PKI(
        authority.certificate_path, authority.key_path, serving, admin_certificate, admin_key, token_key, front_proxy
    )


def ensure_server_certificate(directory: Path, *, now: datetime, names: Sequence[str], common_name: str) -> None:
    """Create or renew the serving certificate in `directory`, and its CA beside it, if needed.

    A new certificate has the names of the one that it replaces, too: other servers may share it. ConfigurationError
    names the file that is unusable.
    """
    authority = Authority.ensure(directory, now=now, common_name=common_name)
    files = server_files(directory)
    if not _is_usable(files.certificate, files.key, authority, now, names):
        every = dict.fromkeys([*names, *_names_in(files.certificate)])
        authority.issue_server(files.certificate, files.key, names=tuple(every), now=now)


def server_files(directory: Path) -> TLSFiles:
    """Return the paths of the serving certificate of a directory and its key."""
    return TLSFiles(directory / "server.crt", directory / "server.key")


def _names_in(certificate_path: Path) -> list[str]:
    """Return the names of a certificate in a file, none if there is no usable one."""
    try:
        return names_of(load_certificate(certificate_path))
    except ConfigurationError:
        return []


def names_of(certificate: x509.Certificate) -> list[str]:
    """Return the DNS names and IP addresses of a serving certificate; none if it has no readable ones."""
    try:
        held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return []
    kinds = (x509.DNSName, x509.IPAddress)
    return [str(name) for kind in kinds for name in held.get_values_for_type(kind)]


def _ensure_front_proxy(directory: Path, now: datetime, common_name: str) -> FrontProxy:
    directory.mkdir(exist_ok=True, mode=0o700)
    authority = Authority.ensure(directory, now=now, common_name=f"{common_name}-front-proxy")
    certificate, key = directory / "client.crt", directory / "client.key"
    if not _is_usable(certificate, key, authority, now, ()):
        authority.issue_client(certificate, key, user=FRONT_PROXY_USER, groups=(), now=now)
    return FrontProxy(authority.certificate_path, certificate, key)


def has_authority(directory: Path) -> bool:
    """Return whether `directory` holds a certificate authority or a part of one."""
    return (directory / CA_CERTIFICATE).exists() or (directory / CA_KEY).exists()


class Authority:
    """A certificate authority on disk."""

    def __init__(
        self, certificate_path: Path, key_path: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
    ) -> None:
        self.certificate_path = certificate_path
        self.key_path = key_path
        self.certificate = certificate
        self._key = key

    @classmethod
    def ensure(cls, directory: Path, *, now: datetime, common_name: str) -> "Authority":
        """Load or create `ca.crt` and `ca.key`.

        A CA near its expiry is signed again with the same key and name: certificates that it issued stay valid.
        ConfigurationError when only the key is missing: a new one would invalidate every certificate and kubeconfig.
        """
        certificate_path, key_path = directory / CA_CERTIFICATE, directory / CA_KEY
        if not key_path.exists() and certificate_path.exists():
            raise ConfigurationError(
                f"{key_path} is missing beside {certificate_path.name}; restore it from a backup, or, to replace the CA"
                f" and with it every certificate and kubeconfig, move {directory} away and start with --new"
            )
        if key_path.exists():
            key = load_private_key(key_path)
            if certificate_path.exists():
                certificate = load_certificate(certificate_path)
                if not is_due(certificate, now):
                    return cls(certificate_path, key_path, certificate, key)
                subject = certificate.subject
            else:
                subject = _to_name(f"{common_name}-ca")
        else:
            key = ec.generate_private_key(ec.SECP256R1())
            write_private(key_path, _to_pem(key))
            subject = _to_name(f"{common_name}-ca@{int(now.timestamp())}")
        certificate = _self_sign(key, subject, now)
        write_private(certificate_path, certificate.public_bytes(serialization.Encoding.PEM), mode=0o644)
        return cls(certificate_path, key_path, certificate, key)

    def issue_server(self, certificate_path: Path, key_path: Path, *, names: Sequence[str], now: datetime) -> None:
        """Write a serving certificate and key for DNS names and IP addresses; the first one is the common name."""
        alternatives = x509.SubjectAlternativeName([_to_general_name(name) for name in names])
        self._issue(
            certificate_path,
            key_path,
            subject=_to_name(names[0]),
            usage=ExtendedKeyUsageOID.SERVER_AUTH,
            alternatives=alternatives,
            now=now,
        )

    def issue_client(
        self, certificate_path: Path, key_path: Path, *, user: str, groups: Sequence[str], now: datetime
    ) -> None:
        """Write a client certificate and key for a user (common name) in groups (organisations)."""
        if not user or max(map(len, (user, *groups))) > _NAME_LENGTH_MAX:
            raise ConfigurationError(
                f"a user and its groups need 1 to {_NAME_LENGTH_MAX} characters each in a certificate"
            )
        subject = _to_name(user, groups)
        self._issue(
            certificate_path,
            key_path,
            subject=subject,
            usage=ExtendedKeyUsageOID.CLIENT_AUTH,
            alternatives=None,
            now=now,
        )

    def _issue(
        self,
        certificate_path: Path,
        key_path: Path,
        *,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
        now: datetime,
    ) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._certify(
            key.public_key(), subject=subject, usage=usage, alternatives=alternatives, now=now, validity=LEAF_VALIDITY
        )
        # The key first: a crash in between leaves a pair that does not match, which the next start renews.
        write_private(key_path, _to_pem(key))
        write_private(certificate_path, certificate.public_bytes(serialization.Encoding.PEM), mode=0o644)

    def certify_client(
        self, request: bytes, *, user: str, groups: Sequence[str], now: datetime, validity: timedelta
    ) -> bytes:
        """Return the PEM of a client certificate for the key of a signing request in PEM; BadRequest.

        The subject of the request is ignored: who asks for a certificate does not choose its user.
        """
        try:
            wanted = x509.load_pem_x509_csr(request)
            key = wanted.public_key()
            is_usable = wanted.is_signature_valid and isinstance(key, ec.EllipticCurvePublicKey)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            is_usable = False
        if not is_usable:
            raise BadRequest("not a certificate signing request in PEM for an elliptic curve key")
        subject, usage = _to_name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH
        # Without this limit, two thirds of the life of a short certificate would be over when it is issued.
        backdate = min(_BACKDATE, validity)
        certificate = self._certify(
            key, subject=subject, usage=usage, alternatives=None, now=now, validity=validity, backdate=backdate
        )
        return certificate.public_bytes(serialization.Encoding.PEM)

    def _certify(
        self,
        key: Any,
        *,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
        now: datetime,
        validity: timedelta,
        backdate: timedelta = _BACKDATE,
    ) -> x509.Certificate:
        builder = (
            _start(subject, self.certificate.subject, key, now - backdate)
            .not_valid_after(min(now + validity, self.certificate.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(is_ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def load_certificate(path: Path) -> x509.Certificate:
    """Return the PEM certificate; ConfigurationError when the file is missing or damaged."""
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"cannot read certificate {path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(
            f"{path} is not a PEM certificate; restore it, or remove it to make a new one"
        ) from error


def load_private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the PEM P-256 key; ConfigurationError when the file is missing, damaged or of another kind."""
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise ConfigurationError(f"cannot read key {path}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{path} is not an unencrypted PEM private key; restore it from a backup") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigurationError(f"{path} is not an elliptic curve private key")
    return key


def is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Return whether the certificate must be renewed."""
    return now >= renewal_time(certificate)


def renewal_time(certificate: x509.Certificate) -> datetime:
    """Return when the certificate must be renewed."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return start + RENEW_AFTER * (end - start)


def _is_usable(
    certificate_path: Path, key_path: Path, authority: Authority, now: datetime, names: Sequence[str]
) -> bool:
    """Return whether the pair exists, matches, is issued by `authority`, does not expire soon and covers all names."""
    if not (certificate_path.exists() and key_path.exists()):
        return False
    try:
        certificate, key = load_certificate(certificate_path), load_private_key(key_path)
        certificate.verify_directly_issued_by(authority.certificate)
    except (ConfigurationError, InvalidSignature, ValueError, TypeError):
        return False
    if certificate.public_key() != key.public_key() or is_due(certificate, now):
        return False
    if not names:
        return True
    try:
        held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return {_to_general_name(name) for name in names} <= set(held)


def _self_sign(key: ec.EllipticCurvePrivateKey, subject: x509.Name, now: datetime) -> x509.Certificate:
    return (
        _start(subject, subject, key.public_key(), now)
        .not_valid_after(now + CA_VALIDITY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(is_ca=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _start(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, not_before: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _key_usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )


def _to_name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name[:_NAME_LENGTH_MAX]))
    return x509.Name(attributes)


def _to_general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        return x509.DNSName(name.encode("idna").decode() if not name.isascii() else name)
    except (ValueError, UnicodeError) as error:
        raise ConfigurationError(f"{name!r} is neither a host name nor an IP address") from error


def _to_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
