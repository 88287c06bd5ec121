"""What an audit event may show of a body: everything but secrets. Pure.

Values in Secrets and ConfigMaps, tokens in TokenRequests and TokenReviews, and the same inside federated objects (whose
templates may be Secrets) are replaced, whatever the policy's level. Keys stay, so that one sees what was touched.
"""

import gzip
import io
import zlib
from typing import Any

import orjson

from federation.api.names import LAST_APPLIED_CONFIGURATION
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS
from federation.base.errors import ApiError
from federation.server.decoding import decode_json, decode_object, decode_yaml
from federation.server.identity import Attributes

REDACTED = "<redacted>"
_SECRETIVE = {
    ("", "secrets", ""),
    ("", "configmaps", ""),
    ("", "serviceaccounts", "token"),
    ("authentication.k8s.io", "tokenreviews", ""),
    *((kind.group, kind.plural, "") for kind in (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS)),
}
_SECRETIVE_KINDS = frozenset({"Secret", "ConfigMap", "TokenRequest", "TokenReview"})
_SECRETIVE_FIELDS = frozenset({"data", "stringData", "binaryData", "token", LAST_APPLIED_CONFIGURATION})
_PATCH_FIELDS = _SECRETIVE_FIELDS | {"value"}
"""In JSON patches and in the overrides of federated objects, `value` may hold any of them."""


def is_secretive(attributes: Attributes) -> bool:
    """Return whether bodies of this resource may hold secrets at any place."""
    return (attributes.group, attributes.resource, attributes.subresource) in _SECRETIVE or (
        not attributes.path and (attributes.group, attributes.resource, "") in _SECRETIVE
    )


def to_recorded(body: bytes, content_type: str, *, is_hidden: bool, has_managed_fields: bool) -> Any:
    """Return what an event shows of a request or response body; None for none, or one that cannot be read.

    `is_hidden` says that the resource is secretive; objects of such kinds inside others are found by themselves.
    """
    value = _decode(body, content_type)
    _redact(value, _PATCH_FIELDS if is_hidden else None)
    if not has_managed_fields:
        _drop_managed_fields(value)
    return value


def unpack(body: bytes, encoding: bytes, bytes_max: int) -> bytes | None:
    """Return a response body as it was before compression; None when that is longer than `bytes_max`."""
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
    """Replace what `fields` name, here and below; None: look for objects of secretive kinds."""
    if isinstance(value, list):
        for entry in value:
            _redact(entry, fields)
    elif isinstance(value, dict):
        if fields is None and value.get("kind") in _SECRETIVE_KINDS:
            fields = _PATCH_FIELDS
        for key, entry in value.items():
            if fields is not None and key in fields:
                value[key] = _blank(entry)
            else:
                _redact(entry, fields)


def _blank(value: Any) -> Any:
    """Return a value with its keys and nothing else."""
    if isinstance(value, dict):
        return {key: _blank(entry) for key, entry in value.items()}
    return None if value is None else REDACTED


def _drop_managed_fields(value: Any) -> None:
    for obj in (value, *(value.get("items") or ())) if isinstance(value, dict) else ():
        metadata = obj.get("metadata") if isinstance(obj, dict) else None
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
