"""The frames of a tunnel: one WebSocket message is one frame.

A frame is a type (1 byte), the number of a stream (4 bytes, big endian) and a payload. Only the host opens streams, and
an OPEN frame names no address: the agent connects every stream to the API server of its own cluster.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from federation.apimachinery.errors import ClusterError

_HEAD: Final = struct.Struct("!BI")
_CREDIT: Final = struct.Struct("!I")
DATA_BYTES_MAX: Final = 16 * 1024
"""Payload of one DATA frame: small enough that a large answer delays other streams by microseconds only."""
FRAME_BYTES_MAX: Final = _HEAD.size + DATA_BYTES_MAX


class FrameType(IntEnum):
    """The meaning of a frame for its stream."""

    OPEN = 1
    DATA = 2
    CREDIT = 3
    """The sender has processed so many bytes: the receiver may send as many more."""
    CLOSE = 4
    """No more bytes in either direction."""


class Frame(NamedTuple):
    """One frame."""

    type: FrameType
    stream: int
    payload: bytes = b""


class TunnelError(ClusterError):
    """The other side of a tunnel broke its rules: the tunnel is closed."""


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame."""
    return _HEAD.pack(frame.type, frame.stream) + frame.payload


def decode(message: bytes) -> Frame:
    """Return the frame in a message; TunnelError if there is none."""
    if len(message) < _HEAD.size or len(message) > FRAME_BYTES_MAX:
        raise TunnelError(f"a frame of {len(message)} bytes; {_HEAD.size} to {FRAME_BYTES_MAX} are allowed")
    number, stream = _HEAD.unpack_from(message)
    try:
        frame = Frame(FrameType(number), stream, message[_HEAD.size :])
    except ValueError:
        raise TunnelError(f"a frame of unknown type {number}") from None
    wanted = {FrameType.OPEN: 0, FrameType.CLOSE: 0, FrameType.CREDIT: _CREDIT.size}.get(frame.type)
    if wanted is not None and len(frame.payload) != wanted:
        raise TunnelError(f"a frame {frame.type.name} with {len(frame.payload)} bytes of payload, not {wanted}")
    return frame


def credit(stream: int, count: int) -> Frame:
    """Return the frame that permits `count` more bytes on a stream."""
    return Frame(FrameType.CREDIT, stream, _CREDIT.pack(count))


def credit_of(frame: Frame) -> int:
    """Return the number of bytes that a CREDIT frame permits."""
    return int(_CREDIT.unpack(frame.payload)[0])
