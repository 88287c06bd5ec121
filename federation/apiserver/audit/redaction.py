"""Redaction of bodies in audit events. Pure.

Values in Secrets and ConfigMaps, tokens in TokenRequests and TokenReviews, and the same inside federated objects (whose
templates may be Secrets) are replaced at every level of the policy. Keys are kept, so that an event shows which were
changed.
"""

import gzip
import io
import zlib
from collections.abc import Collection
from typing import Any

import orjson

from federation.apimachinery.errors import ApiError
from federation.apimachinery.wellknown import LAST_APPLIED_CONFIGURATION
from federation.apiserver.audit.auditoptions import Mask, unchanged
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.http.decoding import decode_json, decode_object, decode_yaml

REDACTED = "<redacted>"
_SECRET = {
    ("", "secrets", ""),
    ("", "configmaps", ""),
    ("", "serviceaccounts", "token"),
    ("authentication.k8s.io", "tokenreviews", ""),
}
_SECRET_KINDS = frozenset({"Secret", "ConfigMap", "TokenRequest", "TokenReview"})
_SECRET_FIELDS = frozenset({"data", "stringData", "binaryData", "token", LAST_APPLIED_CONFIGURATION})
_PATCH_FIELDS = _SECRET_FIELDS | {"value"}
"""In JSON patches and in the overrides of federated objects, `value` may hold any of these."""
_DATA_KINDS = frozenset({"Secret", "ConfigMap"})
_PATCHED_FIELDS = frozenset({"metadata", "spec", "status", "type", "immutable"})
_SHOWN_FIELDS = frozenset({"apiVersion", "kind", "metadata", "type", "immutable"})
"""All other fields of a Secret are redacted: a misspelled `stringdata` holds a secret too."""


def holds_secrets(attributes: Attributes, redacted: Collection[tuple[str, str]]) -> bool:
    """Return whether bodies of this resource may hold secrets; `redacted` extends the built-in resources."""
    group, resource = attributes.group, attributes.resource
    if attributes.path:
        return False
    return (group, resource) in redacted or not _SECRET.isdisjoint(
        ((group, resource, attributes.subresource), (group, resource, ""))
    )


def to_recorded(
    body: bytes, content_type: str, *, is_redacted: bool, includes_managed_fields: bool, mask: Mask = unchanged
) -> Any:
    """Return a request or response body as an event shows it; None for an empty or unreadable body.

    `is_redacted` redacts the whole body. Secrets and the like inside other objects are always redacted, and what `mask`
    removes.
    """
    value = mask(_decode(body, content_type))
    if is_redacted and isinstance(value, dict) and "kind" not in value:
        # A merge patch. Of a Secret, it may hold a misspelled field; other kinds have spec and status.
        value = {key: entry if key in _PATCHED_FIELDS else _blank(entry) for key, entry in value.items()}
    _redact(value, _PATCH_FIELDS if is_redacted else None)
    if not includes_managed_fields:
        _drop_managed_fields(value)
    return value


def unpack(body: bytes, encoding: bytes, bytes_max: int) -> bytes | None:
    """Return a response body decompressed; None when it is longer than `bytes_max`."""
    if encoding != b"gzip":
        return body
    try:
        with gzip.open(io.BytesIO(body)) as stream:
            plain = stream.read(bytes_max + 1)
    except (OSError, EOFError, zlib.error):
        return None
    return plain if len(plain) <= bytes_max else None


def _decode(body: bytes, content_type: str) -> Any:
    if not body.strip():
        return None
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        if "patch+json" in media_type:
            return decode_json(body)
        if "patch+yaml" in media_type:
            return decode_yaml(body)[0]
        return decode_object(body, content_type)[0]
    except (ApiError, orjson.JSONDecodeError, RecursionError):
        return None


def _redact(value: Any, fields: frozenset[str] | None) -> None:
    """Replace the values of `fields` at every depth; None: only inside objects of kinds that hold secrets."""
    if isinstance(value, list):
        for entry in value:
            _redact(entry, fields)
    elif isinstance(value, dict):
        if fields is None and value.get("kind") in _SECRET_KINDS:
            fields = _PATCH_FIELDS
        holds_data = value.get("kind") in _DATA_KINDS and isinstance(value.get("metadata"), dict | None)
        for key, entry in value.items():
            if (fields is not None and key in fields) or (holds_data and key not in _SHOWN_FIELDS):
                value[key] = _blank(entry)
            else:
                _redact(entry, fields)


def _blank(value: Any) -> Any:
    """Return the value with its keys kept, to show which were changed, and everything below replaced."""
    if isinstance(value, dict):
        return dict.fromkeys(value, REDACTED)
    return None if value is None else REDACTED


def _drop_managed_fields(value: Any) -> None:
    for obj in (value, *(value.get("items") or ())) if isinstance(value, dict) else ():
        metadata = obj.get("metadata") if isinstance(obj, dict) else None
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
