"""The reasons of failed connections in the system's words.

asyncio's errors have an address and a port where the reason should be, and those of TLS and of name resolution have
numbers of their own.
"""

import os
import socket
import ssl


def describe_os_error(problem: OSError) -> str:
    """Return the reason of a failure, for example "Connection refused", without addresses."""
    if problem.errno and not isinstance(problem, ssl.SSLError | socket.gaierror):
        return os.strerror(problem.errno)
    return problem.strerror or str(problem) or type(problem).__name__
