"""Reasons of failed connections."""

import errno
import socket
import ssl

import pytest

from federation.apimachinery.oserrors import describe_os_error


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 44421)"), "Connection refused"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (ssl.SSLError(1, "[SSL] record layer failure"), "[SSL] record layer failure"),
        (OSError("Multiple exceptions"), "Multiple exceptions"),
        (TimeoutError(), "TimeoutError"),
    ],
    ids=["address", "name", "tls", "text", "nothing"],
)
def test_the_reason_is_in_the_systems_words(problem: OSError, reason: str) -> None:
    assert describe_os_error(problem) == reason
