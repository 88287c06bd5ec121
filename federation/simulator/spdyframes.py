"""Frames of SPDY/3.1, as far as `kubectl port-forward` uses them. Pure: bytes in, frames out, and the reverse.

kubectl tunnels this protocol through a WebSocket connection. The header blocks of one direction are one zlib stream
with the protocol's dictionary of frequent names. Frames of other types are skipped.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from federation.apimachinery.errors import BadRequest

SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY = 1, 2, 3, 6, 7
_CONTROL: Final = 0x80
_VERSION: Final = 3
_FIN: Final = 1
_HEAD_BYTES: Final = 8
_FRAME_BYTES_MAX: Final = 1024 * 1024
_HEADERS_BYTES_MAX: Final = 64 * 1024
_NAMES: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow"
    " authorization cache-control connection content-base content-encoding content-language content-length"
    " content-location content-md5 content-range content-type date etag expect expires from host if-match"
    " if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma"
    " proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade"
    " user-agent vary via warning www-authenticate method get status"
)
_NAMES_WITH_BLANKS: Final = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_TEXTS: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _text(value: str) -> bytes:
    return len(value).to_bytes(4, "big") + value.encode()


DICTIONARY: Final = b"".join(map(_text, (*_NAMES.split(), *_NAMES_WITH_BLANKS))) + _TEXTS.encode()
"""The compression dictionary of section 2.6.10.1 of the protocol."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame: `type` 0 has data; the number of a PING is its `stream`."""

    type: int
    stream: int
    headers: Mapping[str, str]
    data: bytes = b""
    is_last: bool = False


class FrameReader:
    """Reads the frames of one connection."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._headers = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that the bytes complete; BadRequest when they are no frames."""
        self._buffer += data
        found = []
        while len(self._buffer) >= _HEAD_BYTES:
            length = int.from_bytes(self._buffer[5:8], "big")
            if length > _FRAME_BYTES_MAX:
                raise BadRequest(f"a SPDY frame is longer than {_FRAME_BYTES_MAX} bytes")
            if len(self._buffer) < _HEAD_BYTES + length:
                break
            head, body = bytes(self._buffer[:_HEAD_BYTES]), bytes(self._buffer[_HEAD_BYTES : _HEAD_BYTES + length])
            del self._buffer[: _HEAD_BYTES + length]
            found.append(self._to_frame(head, body))
        return found

    def _to_frame(self, head: bytes, body: bytes) -> Frame:
        is_last = bool(head[4] & _FIN)
        if not head[0] & _CONTROL:
            return Frame(0, int.from_bytes(head[:4], "big"), {}, body, is_last)
        type_ = int.from_bytes(head[2:4], "big")
        stream = int.from_bytes(body[:4], "big")
        headers = self._parse_headers(body[10:]) if type_ == SYN_STREAM else {}
        return Frame(type_, stream, headers, is_last=is_last)

    def _parse_headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._headers.decompress(block, _HEADERS_BYTES_MAX)
        except zlib.error as error:
            raise BadRequest(f"the headers of a SPDY frame cannot be decompressed: {error}") from error
        if self._headers.unconsumed_tail:
            raise BadRequest(f"the headers of a SPDY frame are longer than {_HEADERS_BYTES_MAX} bytes")
        texts, at = [], 4
        for _ in range(2 * min(int.from_bytes(plain[:4], "big"), len(plain))):
            length = int.from_bytes(plain[at : at + 4], "big")
            texts.append(plain[at + 4 : at + 4 + length].decode("utf-8", "replace"))
            at += 4 + length
        return dict(zip(texts[::2], texts[1::2], strict=True))


class FrameWriter:
    """Writes the frames of one connection."""

    def __init__(self) -> None:
        self._headers = zlib.compressobj(zdict=DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """Return the frame that accepts a stream, without headers."""
        block = self._headers.compress(bytes(4)) + self._headers.flush(zlib.Z_SYNC_FLUSH)
        return _control(SYN_REPLY, stream.to_bytes(4, "big") + block)

    def data(self, stream: int, data: bytes, *, is_last: bool = False) -> bytes:
        """Return a frame with data, the last one of the stream if `is_last`."""
        return stream.to_bytes(4, "big") + bytes([_FIN if is_last else 0]) + len(data).to_bytes(3, "big") + data

    def pong(self, number: int) -> bytes:
        """Return the answer to a PING."""
        return _control(PING, number.to_bytes(4, "big"))


def _control(type_: int, body: bytes) -> bytes:
    return bytes([_CONTROL, _VERSION]) + type_.to_bytes(2, "big") + b"\0" + len(body).to_bytes(3, "big") + body
