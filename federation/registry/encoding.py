"""How an object becomes the bytes that are stored, sent and watched, and what can be read from them without parsing.

Layout (D2): `{"apiVersion":"…","kind":"…","metadata":{"resourceVersion":"` is the head, then the store puts the
revision's digits, then the tail: `","uid":"…", rest of metadata }, rest of the object }`. The place of the revision is
fixed by construction, so no text of a user can be mistaken for it, and apiVersion, resourceVersion and uid are found
by position. Read `kinds.py` next: a KindInfo holds the head of its kind.
"""

from typing import Any, NamedTuple

import orjson

from federation.api.resources import Object
from federation.base.errors import BadRequest
from federation.store.interface import Body

_MARK = b'"metadata":{"resourceVersion":"'
_UID_MARK = b'","uid":"'
_OUTSIDE = frozenset({"apiVersion", "kind", "metadata"})


class Position(NamedTuple):
    """Where an object stands, read from its bytes without parsing."""

    resource_version: bytes
    uid: str


def head(api_version: str, kind: str) -> bytes:
    """Return the bytes before the revision of every object of a kind."""
    return b'{"apiVersion":' + orjson.dumps(api_version) + b',"kind":' + orjson.dumps(kind) + b"," + _MARK


def encode(kind_head: bytes, obj: Object) -> Body:
    """Serialise an object once; metadata.resourceVersion of `obj` is left out, metadata.uid must be set."""
    metadata: dict[str, Any] = {"uid": None}
    metadata.update(obj["metadata"])
    metadata.pop("resourceVersion", None)
    rest = {key: value for key, value in obj.items() if key not in _OUTSIDE}
    try:
        tail = b'",' + orjson.dumps(metadata)[1:]
        tail += b"," + orjson.dumps(rest)[1:] if rest else b"}"
    except (TypeError, ValueError) as error:
        raise BadRequest(f"the object cannot be written as JSON: {error}") from error
    return Body(kind_head, tail)


def join(body: Body, revision: int) -> bytes:
    """Return the bytes that the store makes of a body, for answers to dry runs."""
    return b"%b%d%b" % (body.head, revision, body.tail)


def without_revision(body: Body) -> bytes:
    """Return the object's bytes without any resourceVersion: the answer to a dry-run create."""
    return body.head[: -len(b'"resourceVersion":"')] + body.tail[len(b'",') :]


def with_head(value: bytes, kind_head: bytes) -> bytes:
    """Return the stored bytes as an object of the version whose head is given (conversion strategy None)."""
    if value.startswith(kind_head):
        return value
    return kind_head + value[value.index(_MARK) + len(_MARK) :]


def position(value: bytes) -> Position:
    """Read resourceVersion and uid of stored bytes by position."""
    start = value.index(_MARK) + len(_MARK)
    end = value.index(b'"', start)
    uid_start = end + len(_UID_MARK)
    if value[end:uid_start] != _UID_MARK:
        return Position(value[start:end], "")
    return Position(value[start:end], value[uid_start : value.index(b'"', uid_start)].decode())


def decode(value: bytes) -> Object:
    """Parse stored bytes; the result belongs to the caller."""
    parsed: Object = orjson.loads(value)
    return parsed


def metadata_of(value: bytes) -> dict[str, Any]:
    """Parse stored bytes and return their metadata."""
    metadata: dict[str, Any] = orjson.loads(value)["metadata"]
    return metadata


def with_revision(value: bytes, revision: int) -> bytes:
    """Return stored bytes with another resourceVersion: what a watcher is told when an object leaves its selection."""
    start = value.index(_MARK) + len(_MARK)
    return b"%b%d%b" % (value[:start], revision, value[value.index(b'"', start) :])


def split(value: bytes) -> Body:
    """Return stored bytes as a body again, for a write that changes nothing but the revision."""
    start = value.index(_MARK) + len(_MARK)
    return Body(value[:start], value[value.index(b'"', start) :])
