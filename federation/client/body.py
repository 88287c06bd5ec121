"""Reading the body of an answer with a limit on its decompressed size.

aiohttp decompresses whatever arrives, so one megabyte of gzip can become a gigabyte. Here the running count is checked
while decompressing, and at most one byte above the limit is produced. Only gzip is accepted: it is what `session.py`
requests.
"""

import zlib
from typing import TYPE_CHECKING

from federation.apimachinery.errors import ClusterError, ClusterLimitExceeded

if TYPE_CHECKING:
    import aiohttp

_GZIP = 16 + zlib.MAX_WBITS


async def read_body(response: "aiohttp.ClientResponse", server: str, bytes_max: int) -> bytes:
    """Return the decompressed body; ClusterLimitExceeded above `bytes_max`, ClusterError for other encodings."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("gzip", "identity", ""):
        raise ClusterError(f"{server} answers with Content-Encoding {encoding[:40]!r}; only gzip is accepted")
    if (response.content_length or 0) > bytes_max:
        raise _too_large(server, bytes_max)
    if encoding == "gzip":
        return await _gunzip(response, server, bytes_max)
    if response.content_length is not None:
        return await response.read()
    parts, size = [], 0
    while chunk := await response.content.readany():
        size += len(chunk)
        if size > bytes_max:
            raise _too_large(server, bytes_max)
        parts.append(chunk)
    return b"".join(parts)


async def _gunzip(response: "aiohttp.ClientResponse", server: str, bytes_max: int) -> bytes:
    decompressor = zlib.decompressobj(_GZIP)
    parts, size, read = [], 0, 0
    while chunk := await response.content.readany():
        read += len(chunk)
        try:
            # One byte more than allowed proves the excess; the rest stays compressed.
            data = decompressor.decompress(chunk, bytes_max - size + 1)
        except zlib.error as problem:
            raise ClusterError(f"{server} answers with invalid gzip data") from problem
        size += len(data)
        if max(size, read) > bytes_max:
            raise _too_large(server, bytes_max)
        parts.append(data)
    if read and not decompressor.eof:
        raise ClusterError(f"{server} answers with truncated gzip data")
    return b"".join(parts)


def _too_large(server: str, bytes_max: int) -> ClusterLimitExceeded:
    return ClusterLimitExceeded(f"{server} answers with more than {bytes_max} bytes (response_bytes_max)")
