"""What exceptions of a connection say. Real handshakes are in `test_http.py`."""

import errno
import socket
import ssl

import pytest

from federation.apimachinery.errors import ClusterUnreachable, Obstacle
from federation.client.obstacles import obstacle_of


def caused_by(problem: BaseException) -> Exception:
    outer = ValueError("outer")
    outer.__cause__ = problem
    return outer


def verification(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    return error


def alert(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (verification(9), Obstacle.NOT_YET_VALID),
        (verification(10), Obstacle.EXPIRED),
        (verification(18), Obstacle.UNTRUSTED),
        (verification(20), Obstacle.UNTRUSTED),
        (verification(62), Obstacle.OTHER_NAME),
        (verification(64), Obstacle.OTHER_NAME),
        (alert("TLSV13_ALERT_CERTIFICATE_REQUIRED"), Obstacle.TLS_REFUSED),
        (alert("WRONG_VERSION_NUMBER"), Obstacle.TLS_REFUSED),
        (ssl.SSLEOFError(8, "EOF occurred in violation of protocol"), Obstacle.NO_ANSWER),
        (ssl.SSLZeroReturnError(6, "closed"), Obstacle.NO_ANSWER),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), Obstacle.UNRESOLVED),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), Obstacle.NO_SUCH_NAME),
        (socket.gaierror(socket.EAI_NODATA, "No address associated with hostname"), Obstacle.NO_SUCH_NAME),
        (OSError(errno.EMFILE, "Too many open files"), Obstacle.OURS),
        (OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"), Obstacle.OURS),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), Obstacle.NO_ANSWER),
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), Obstacle.NO_ANSWER),
        (ClusterUnreachable("our limit", Obstacle.OURS), Obstacle.OURS),
        (ValueError("the path is not encoded"), Obstacle.NO_ANSWER),
        (None, Obstacle.NO_ANSWER),
    ],
    ids=repr,
)
def test_an_exception_says_whether_the_server_answered(problem: BaseException | None, expected: Obstacle) -> None:
    assert obstacle_of(problem) is expected
    if problem is not None:
        assert obstacle_of(caused_by(problem)) is expected
