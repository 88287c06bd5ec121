"""A small body of gzip that expands to any number of mebibytes, made without compressing them all.

After a full flush, a block of deflate does not depend on the blocks before it, so one block is repeated.
"""

import functools
import struct
import zlib

MIB = 1024 * 1024
_START = b'{"items":['
_BLANKS = b" " * MIB
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


@functools.cache
def a_gzip_bomb(size_mib: int) -> bytes:
    """Return the beginning of a JSON list and blanks, compressed to a thousandth of `size_mib`."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    first = compressor.compress(_START) + compressor.flush(zlib.Z_FULL_FLUSH)
    block = compressor.compress(_BLANKS) + compressor.flush(zlib.Z_FULL_FLUSH)
    checksum = zlib.crc32(_START)
    for _ in range(size_mib):
        checksum = zlib.crc32(_BLANKS, checksum)
    trailer = struct.pack("<II", checksum, len(_START) + size_mib * MIB)
    return _HEADER + first + block * size_mib + compressor.flush() + trailer
