"""What an exception of a connection says: whether the server answered, and which of our data it contradicts.

A TLS server that presents a wrong certificate answers. A resolver says nothing about the server, whether it gives no
answer or knows no such name. `planning/clusters/probes.py` decides what that means for a cluster.
"""

import errno
import socket
import ssl

from federation.apimachinery.errors import Obstacle

_BY_VERIFY_CODE = {
    9: Obstacle.NOT_YET_VALID,
    10: Obstacle.EXPIRED,
    62: Obstacle.OTHER_NAME,  # of a host name
    64: Obstacle.OTHER_NAME,  # of an IP address
}
"""X509_V_ERR_... of OpenSSL; all others mean that no path leads to a trusted CA."""
_UNRESOLVED = frozenset({socket.EAI_AGAIN, socket.EAI_FAIL, socket.EAI_SYSTEM, socket.EAI_MEMORY})
"""No answer about the name. All other codes say that there is no such name, or no address of it."""
_OURS = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.EPERM, errno.ENETDOWN}
)
"""Limits and the state of this machine."""


def obstacle_of(problem: BaseException | None) -> Obstacle:
    """Return what prevented a connection, from an exception or what caused it."""
    while problem is not None:
        if isinstance(problem, ssl.SSLCertVerificationError):
            return _BY_VERIFY_CODE.get(problem.verify_code, Obstacle.UNTRUSTED)
        if isinstance(problem, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return Obstacle.NO_ANSWER  # the connection ended during the handshake
        if isinstance(problem, ssl.SSLError) and problem.reason:
            return Obstacle.TLS_REFUSED
        if isinstance(problem, socket.gaierror):
            return Obstacle.UNRESOLVED if problem.errno in _UNRESOLVED else Obstacle.NO_SUCH_NAME
        if isinstance(problem, OSError) and not isinstance(problem, ssl.SSLError) and problem.errno in _OURS:
            return Obstacle.OURS
        if isinstance(obstacle := getattr(problem, "obstacle", None), Obstacle):
            return obstacle
        problem = problem.__cause__
    return Obstacle.NO_ANSWER
