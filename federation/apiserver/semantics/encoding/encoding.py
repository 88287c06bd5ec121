"""The layout of stored objects, and the reads and writes that need no JSON parser.

Layout: the head is `{"apiVersion":"…","kind":"…","metadata":{"resourceVersion":"`. The store appends the digits of the
revision. The tail is `","uid":"…", rest of metadata }, rest of the object }`. The resourceVersion has a fixed place, so
no text of a user can be mistaken for it. `kinds/kinds.py` keeps the head of each kind.
"""

from typing import Any, NamedTuple

import orjson

from federation.apimachinery.errors import BadRequest
from federation.apimachinery.resources import Object
from federation.apiserver.store.interface import Body

_MARK = b'"metadata":{"resourceVersion":"'
_UID_MARK = b'","uid":"'
_ENVELOPE = frozenset({"apiVersion", "kind", "metadata"})


class RevisionAndUID(NamedTuple):
    """The fields that stored bytes show without parsing."""

    resource_version: bytes
    uid: str


def encode_head(api_version: str, kind: str) -> bytes:
    """Return the bytes before the revision of every object of a kind."""
    return b'{"apiVersion":' + orjson.dumps(api_version) + b',"kind":' + orjson.dumps(kind) + b"," + _MARK


def encode(kind_head: bytes, obj: Object) -> Body:
    """Serialize an object without its resourceVersion; metadata.uid must be set."""
    # The uid comes first, where `read_revision_and_uid` expects it.
    metadata: dict[str, Any] = {"uid": None}
    metadata.update(obj["metadata"])
    metadata.pop("resourceVersion", None)
    rest = {key: value for key, value in obj.items() if key not in _ENVELOPE}
    try:
        tail = b'",' + orjson.dumps(metadata)[1:]
        tail += b"," + orjson.dumps(rest)[1:] if rest else b"}"
    except (TypeError, ValueError) as error:
        raise BadRequest(f"the object cannot be written as JSON: {error}") from error
    return Body(kind_head, tail)


def decode(value: bytes) -> Object:
    """Parse stored bytes; the caller owns the result."""
    parsed: Object = orjson.loads(value)
    return parsed


def decode_metadata(value: bytes) -> dict[str, Any]:
    """Parse stored bytes and return their metadata."""
    metadata: dict[str, Any] = orjson.loads(value)["metadata"]
    return metadata


def to_bytes(body: Body, revision: int) -> bytes:
    """Return the bytes that the store keeps for a body at a revision."""
    return b"%b%d%b" % (body.head, revision, body.tail)


def to_bytes_without_revision(body: Body) -> bytes:
    """Return the object without a resourceVersion, as a dry-run create answers it."""
    return body.head[: -len(b'"resourceVersion":"')] + body.tail[len(b'",') :]


def to_body(value: bytes) -> Body:
    """Split stored bytes into head and tail, for a write that changes only the revision."""
    start = value.index(_MARK) + len(_MARK)
    return Body(value[:start], value[value.index(b'"', start) :])


def read_revision_and_uid(value: bytes) -> RevisionAndUID:
    """Read resourceVersion and uid of stored bytes by their position."""
    start = value.index(_MARK) + len(_MARK)
    end = value.index(b'"', start)
    uid_start = end + len(_UID_MARK)
    if value[end:uid_start] != _UID_MARK:
        return RevisionAndUID(value[start:end], "")
    return RevisionAndUID(value[start:end], value[uid_start : value.index(b'"', uid_start)].decode())


def replace_head(value: bytes, kind_head: bytes) -> bytes:
    """Return stored bytes with another apiVersion and kind (conversion strategy None)."""
    if value.startswith(kind_head):
        return value
    return kind_head + value[value.index(_MARK) + len(_MARK) :]


def replace_revision(value: bytes, revision: int) -> bytes:
    """Return stored bytes with another resourceVersion, for the DELETED event of an object that left a selection."""
    start = value.index(_MARK) + len(_MARK)
    return b"%b%d%b" % (value[:start], revision, value[value.index(b'"', start) :])
