"""The resourceVersion and the continue token of lists that several members answer. Pure.

Each is a JSON object, compressed and in base64url, so that any process of the host can go on with a list or a watch
that another one began. Clients pass them back as they are.
"""

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from federation.apimachinery.errors import BadRequest, Expired

HOST: Final = ""
"""The key of the host's own revision beside those of the clusters."""
_BYTES_MAX: Final = 1024 * 1024
"""Of a token's content: a small text can be the compressed form of gigabytes."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where the next page of a list begins."""

    revisions: Mapping[str, str]
    """The revisions of the first page, by cluster: those that answered. All pages have the same."""
    cluster: str
    """`HOST` while the host's own objects are not all listed."""
    token: str = ""
    """The continue token of that cluster, "" for its first page."""


def encode_revisions(revisions: Mapping[str, str]) -> str:
    """Return the resourceVersion of a list with these revisions by cluster."""
    return _encode({"r": dict(revisions)})


def decode_revisions(text: str) -> dict[str, str]:
    """Return the revisions of a list's resourceVersion; Expired for any other one, so that clients list again."""
    found = _decode(text)
    if found is None or not _are_texts(found.get("r")):
        raise Expired(f"too old resource version: {text[:32]}: a watch begins with the resourceVersion of a list")
    revisions: dict[str, str] = found["r"]
    return revisions


def encode_position(position: Position) -> str:
    """Return the continue token of a position."""
    return _encode({"r": dict(position.revisions), "c": position.cluster, "t": position.token})


def decode_position(text: str) -> Position:
    """Return the position of a continue token; BadRequest when it is malformed."""
    found = _decode(text)
    if found is None or not _are_texts(found.get("r")) or not all(isinstance(found.get(key), str) for key in "ct"):
        raise BadRequest("continue key is not valid: it is not the token of an earlier page")
    return Position(found["r"], found["c"], found["t"])


def _encode(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(zlib.compress(orjson.dumps(value))).decode().rstrip("=")


def _decode(text: str) -> dict[str, Any] | None:
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(packed, _BYTES_MAX)
        found = orjson.loads(plain) if unpacker.eof else None
    except (binascii.Error, ValueError, zlib.error):
        return None
    return found if isinstance(found, dict) else None


def _are_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
