"""The body of an answer, collected in pieces with limits on its decompressed size and its JSON values. No I/O.

A megabyte of gzip can become a gigabyte, so the running count is checked while decompressing, and at most one byte
above the limit is produced. Only gzip is accepted: it is what `session.py` requests. A parsed value takes a hundred
times the two bytes of its text, so values are counted before anything is parsed.
"""

import zlib

from federation.apimachinery.errors import ClusterError, ClusterLimitExceeded
from federation.apimachinery.jsonsize import may_have_more_values

BYTES_PER_VALUE = 32
"""An answer may have one key or list item for so many bytes of its limit. A page of a list above it is
requested again with fewer objects."""
_GZIP = 16 + zlib.MAX_WBITS
_SMALL_BYTES = 1024
"""Shorter pieces are kept together: a piece of two bytes would take forty."""


class Body:
    """Collects one body of a server.

    ClusterError for an encoding other than gzip, ClusterLimitExceeded for a declared `length` above `bytes_max`.
    """

    def __init__(self, server: str, encoding: str, length: int | None, bytes_max: int) -> None:
        encoding = encoding.strip().lower()
        if encoding not in ("gzip", "identity", ""):
            raise ClusterError(f"{server} answers with Content-Encoding {encoding[:40]!r}; only gzip is accepted")
        self._server = server
        self._bytes_max = bytes_max
        self._decompressor = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
        self._parts: list[bytes | bytearray] = []
        self._received = 0
        self._size = 0
        if (length or 0) > bytes_max:
            raise self._too_large()

    def feed(self, data: bytes) -> None:
        """Add the next bytes; ClusterLimitExceeded above the limit, ClusterError for invalid gzip data."""
        self._received += len(data)
        if self._decompressor is not None:
            try:
                # One byte more than allowed proves the excess; the rest stays compressed.
                data = self._decompressor.decompress(data, self._bytes_max - self._size + 1)
            except zlib.error as problem:
                raise ClusterError(f"{self._server} answers with invalid gzip data") from problem
        self._size += len(data)
        if self._size > self._bytes_max or self._received > self._bytes_max:
            # An error that is kept keeps this frame alive, and with it the bytes.
            data = b""
            self._parts.clear()
            raise self._too_large()
        if len(data) >= _SMALL_BYTES:
            self._parts.append(data)
        elif self._parts and isinstance(self._parts[-1], bytearray):
            self._parts[-1] += data
        else:
            self._parts.append(bytearray(data))

    def finish(self) -> bytes:
        """Return the whole decompressed body; ClusterError for gzip data that end early.

        ClusterLimitExceeded for more JSON values than the limit of bytes allows.
        """
        if self._received and self._decompressor is not None and not self._decompressor.eof:
            raise ClusterError(f"{self._server} answers with truncated gzip data")
        body = bytes(self._parts[0]) if len(self._parts) == 1 else b"".join(self._parts)
        values_max = self._bytes_max // BYTES_PER_VALUE
        if may_have_more_values(body, values_max):
            body = b""
            self._parts.clear()
            raise ClusterLimitExceeded(
                f"{self._server} answers with more than {values_max} values (response_bytes_max / {BYTES_PER_VALUE})"
            )
        return body

    def _too_large(self) -> ClusterLimitExceeded:
        return ClusterLimitExceeded(
            f"{self._server} answers with more than {self._bytes_max} bytes (response_bytes_max)"
        )
