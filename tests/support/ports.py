"""Ports that a test's process listens on more than once.

The kernel may give a port that it hands out to an outgoing connection of any process while no server listens on it.
Ports below the kernel's range are never given away, so that a server can be started again on the same one.
"""

import os
import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000


def lasting_port(*others: int) -> int:
    """Return a free port that the kernel does not hand out, and that is none of the others."""
    end = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 32_768
    chosen = random.Random(os.urandom(8))
    while True:
        port = chosen.randrange(_LOWEST, end)
        if port in others:
            continue
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
