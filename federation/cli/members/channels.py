"""Kubernetes' channel protocol of `exec` over WebSocket: the first byte of each message is a channel. Pure.

`v5.channel.k8s.io` is v4 with a message that closes one channel, by which the program sees the end of its input.
"""

import json
from collections.abc import Mapping
from typing import Any

import orjson

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
_CLOSE = 255


def to_message(channel: int, data: bytes) -> bytes:
    """Return the message of a channel."""
    return bytes([channel]) + data


def end_of_input(protocol: str) -> bytes | None:
    """Return the message at the end of standard input; None in v4, which has none."""
    return bytes([_CLOSE, STDIN]) if protocol == PROTOCOLS[0] else None


def to_size(columns: int, lines: int) -> bytes:
    """Return the message that gives the terminal's size."""
    return to_message(RESIZE, json.dumps({"Width": columns, "Height": lines}).encode())


def to_exit(data: bytes) -> tuple[int, str]:
    """Return the exit code of the program, and why it did not run, by the Status of the error channel."""
    try:
        status: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, Mapping):
        return 1, "the member did not say how the command ended"
    if status.get("status") == "Success":
        return 0, ""
    for cause in (status.get("details") or {}).get("causes") or ():
        code = str(cause.get("message") or "")
        if cause.get("reason") == "ExitCode" and code.isdigit():
            return int(code), ""
    return 1, str(status.get("message") or "the command could not run")
