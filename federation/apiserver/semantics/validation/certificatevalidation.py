"""Validate CertificateSigningRequests: the request itself, its usages and signer, and the conditions of its status.

Approval and issuing are updates of subresources, so `CSRUpdate` names the parts that one may change. The rules are
those of kube-apiserver's ValidateCertificateSigningRequest.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, duplicate, forbidden, invalid, not_supported, required, too_long
from federation.apimachinery.resources import Object

KUBE_API_CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
_LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
_DURATION_S_MIN: Final = 600
_DOMAIN_LENGTH_MAX: Final = 253
_SIGNER_LENGTH_MAX: Final = 253 + 1 + 253 + 1 + 63
_TRUE_ONLY: Final = frozenset({APPROVED, DENIED, FAILED})
_STATUSES: Final = ("False", "True", "Unknown")
_USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_PEM: Final = re.compile(rb"-----BEGIN (?P<type>[A-Z0-9 ]+)-----\s(?P<body>.*?)-----END (?P=type)-----", re.DOTALL)
_EXCLUSIVE: Final = "Approved and Denied conditions are mutually exclusive"
Fields = Mapping[str, Any]


class CSRUpdate(NamedTuple):
    """The parts of a status that an update may change."""

    may_approve: bool = False
    """True for the approval subresource."""
    may_issue: bool = False
    """True for the status subresource, through which a signer sets the certificate once."""


def parse_request(pem: str) -> x509.CertificateSigningRequest:
    """Return the PKCS #10 request in base64-encoded PEM text; ValueError for anything else."""
    try:
        data = base64.b64decode(pem, validate=True)
    except binascii.Error as error:
        raise ValueError(f"illegal base64 data: {error}") from error
    found = _PEM.search(data)
    if found is None or found["type"] != b"CERTIFICATE REQUEST":
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    return x509.load_pem_x509_csr(found[0] + b"\n")


def subject_organizations(request: x509.CertificateSigningRequest) -> list[str]:
    """Return the organizations of the subject, which become the groups of the certificate's user."""
    found = request.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
    return [attribute.value if isinstance(attribute.value, str) else "" for attribute in found]


def validate_request(obj: Object, old: Object | None = None) -> Causes:
    """Validate a CertificateSigningRequest with its status; problems that `old` already has are tolerated."""
    spec = obj.get("spec") or {}
    before = (old or {}).get("spec") or {}
    causes = _validate_pem(spec.get("request") or "")
    usages = spec.get("usages") or []
    if not usages:
        causes.append(required("spec.usages"))
    if old is None:
        causes += _validate_usages(usages)
    signer = spec.get("signerName") or ""
    if signer == _LEGACY_SIGNER and before.get("signerName") != _LEGACY_SIGNER:
        causes.append(invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version"))
    else:
        causes += validate_signer_name(signer, "spec.signerName")
    duration_s = spec.get("expirationSeconds")
    if duration_s is not None and duration_s < _DURATION_S_MIN:
        text = f"may not specify a duration less than {_DURATION_S_MIN} seconds (10 minutes)"
        causes.append(invalid("spec.expirationSeconds", duration_s, text))
    causes += _validate_conditions(obj, old)
    certificate, known = _certificate(obj), _certificate(old or {})
    if certificate and certificate != known and (problem := _certificate_problem(certificate)):
        causes.append(invalid("status.certificate", "<certificate data>", problem))
    return causes


def validate_request_update(new: Object, old: Object, update: CSRUpdate) -> Causes:
    """Validate an update of a request or of one of its subresources."""
    causes = validate_request(new, old)
    for kind in (APPROVED, DENIED, FAILED):
        before, after = conditions_of(old, kind), conditions_of(new, kind)
        if len(after) < len(before):
            causes.append(forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"'))
        elif update.may_approve or kind == FAILED:
            continue
        elif len(after) > len(before):
            causes.append(forbidden("status.conditions", f'updates may not add a condition of type "{kind}"'))
        elif after != before:
            causes.append(forbidden("status.conditions", f'updates may not modify a condition of type "{kind}"'))
    if _certificate(new) != _certificate(old):
        if not update.may_issue:
            causes.append(forbidden("status.certificate", "updates may not set certificate content"))
        elif _certificate(old):
            causes.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    return causes


def conditions_of(obj: Object, kind: str) -> list[Fields]:
    """Return the conditions of a type, in their order."""
    return [found for found in _conditions(obj) if found.get("type") == kind]


def validate_signer_name(name: str, field: str) -> Causes:
    """Validate a signer name: a domain of two labels or more, a slash, and a path of names separated by dots."""
    if not name:
        return [required(field)]
    domain, _, path = name.partition("/")
    if name.count("/") != 1:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(field, name, text)]
    causes = [too_long(field, _DOMAIN_LENGTH_MAX)] if len(domain) > _DOMAIN_LENGTH_MAX else []
    labels = domain.split(".")
    causes += _validate_segments(field, domain, labels, nameformats.dns1123_label)
    if len(labels) < 2:
        causes.append(invalid(field, domain, "should be a domain with at least two segments separated by dots"))
    causes += _validate_segments(field, path, path.split("."), nameformats.dns1123_subdomain)
    return causes + ([too_long(field, _SIGNER_LENGTH_MAX)] if len(name) > _SIGNER_LENGTH_MAX else [])


def _validate_segments(field: str, whole: str, labels: Iterable[str], rule: Callable[[str], list[str]]) -> Causes:
    """Return the causes of the first label that breaks the rule."""
    for label in labels:
        if problems := rule(label):
            return [invalid(field, whole, f'validating label "{label}": {problem}') for problem in problems]
    return []


def _validate_pem(pem: str) -> Causes:
    try:
        is_signed = parse_request(pem).is_signature_valid
        problem = "" if is_signed else "x509: signature verification failed"
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature) as error:
        problem = str(error)
    return [invalid("spec.request", pem, problem)] if problem else []


def _validate_usages(usages: Iterable[str]) -> Causes:
    causes: Causes = []
    seen: set[str] = set()
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            causes.append(not_supported(f"spec.usages[{index}]", usage, _USAGES))
        if usage in seen:
            causes.append(duplicate(f"spec.usages[{index}]", usage))
        seen.add(usage)
    return causes


def _validate_conditions(obj: Object, old: Object | None) -> Causes:
    causes: Causes = []
    before = [found.get("type") or "" for found in _conditions(old or {})]
    seen: set[str] = set()
    for index, condition in enumerate(_conditions(obj)):
        field, kind, status = f"status.conditions[{index}]", condition.get("type") or "", condition.get("status") or ""
        if not kind and "" not in before:
            causes.append(required(f"{field}.type"))
        allowed = ("True",) if kind in _TRUE_ONLY else _STATUSES
        if not status:
            causes.append(required(f"{field}.status"))
        elif status not in allowed:
            causes.append(not_supported(f"{field}.status", status, allowed))
        opposite = {APPROVED: DENIED, DENIED: APPROVED}.get(kind)
        if opposite in seen and not {APPROVED, DENIED} <= set(before):
            causes.append(invalid("status.conditions", kind, _EXCLUSIVE))
        if kind in seen and len(set(before)) == len(before):
            causes.append(duplicate(f"{field}.type", kind))
        seen.add(kind)
    return causes


def _certificate_problem(encoded: str) -> str:
    """Return why a status must not hold this certificate, "" if it may."""
    try:
        data = base64.b64decode(encoded, validate=True)
        blocks = list(_PEM.finditer(data))
        for block in blocks:
            if block["type"] != b"CERTIFICATE":
                return f'only CERTIFICATE PEM blocks are allowed, found "{block["type"].decode()}"'
            if b":" in block["body"]:
                return "no PEM block headers are permitted"
            x509.load_der_x509_certificate(base64.b64decode(block["body"]))
    except ValueError as error:
        return str(error)
    return "" if blocks else "must contain at least one CERTIFICATE PEM block"


def _conditions(obj: Object) -> list[Fields]:
    found: list[Fields] = (obj.get("status") or {}).get("conditions") or []
    return found


def _certificate(obj: Object) -> str:
    return (obj.get("status") or {}).get("certificate") or ""
