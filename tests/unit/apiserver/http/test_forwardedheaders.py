"""The headers of forwarded requests and responses."""

import pytest

from federation.apimachinery.errors import Forbidden
from federation.apiserver.auth.identity import User
from federation.apiserver.http.forwardedheaders import request_headers, response_headers, user_headers

ALICE = User("alice", ("team", "system:authenticated"), "7", {"example.com/scopes%": ("a", "b")})


def test_a_user_is_named_in_headers() -> None:
    assert user_headers(ALICE) == [
        ("X-Remote-User", "alice"),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Group", "team"),
        ("X-Remote-Group", "system:authenticated"),
        ("X-Remote-Extra-example.com%2Fscopes%25", "a"),
        ("X-Remote-Extra-example.com%2Fscopes%25", "b"),
    ]


@pytest.mark.parametrize("name", ["a\r\nX-Remote-Group: system:masters", "a\x00", "a\x7f", "", " admin", "admin "])
def test_a_name_cannot_add_headers_or_arrive_as_another(name: str) -> None:
    with pytest.raises(Forbidden):
        user_headers(User(name))


@pytest.mark.parametrize(
    "name",
    [
        b"x-remote-user", b"x-remote-group", b"x-remote-extra-a", b"x_remote_user", b"x-remote_group", b"authorization",
        b"cookie", b"impersonate-user", b"impersonate-extra-a", b"x-forwarded-for", b"forwarded", b"host", b"upgrade",
        b"connection", b"te", b"proxy-authorization", b"transfer-encoding", b"sec-websocket-protocol", b"x-hop",
    ],
)  # fmt: skip
def test_headers_that_stay_here(name: bytes) -> None:
    given = [(name, b"x"), (b"connection", b"X-Hop, close"), (b"accept", b"application/json")]
    sent = request_headers(given, "10.1.1.1")
    assert sent == [("accept", "application/json"), ("X-Forwarded-For", "10.1.1.1")]


def test_a_connection_header_cannot_remove_the_length() -> None:
    sent = request_headers([(b"connection", b"content-length"), (b"content-length", b"5")], "")
    assert ("content-length", "5") in sent


def test_a_response_cannot_change_how_browsers_treat_this_server() -> None:
    given = [
        (b"Content-Type", b"text/html"),
        (b"Set-Cookie", b"a=b"),
        (b"Access-Control-Allow-Origin", b"*"),
        (b"Strict-Transport-Security", b"max-age=1"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Connection", b"x-hop"),
        (b"X-Hop", b"1"),
        (b"ETag", b'"1"'),
    ]
    assert response_headers(given) == [
        (b"content-type", b"text/html"),
        (b"etag", b'"1"'),
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", b"default-src 'none'; sandbox"),
    ]
