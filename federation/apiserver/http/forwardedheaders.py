"""The headers of forwarded requests and responses. Pure.

A forwarded request names its user in headers (`X-Remote-*` or `Impersonate-*`), which the other server believes because
of this server's own credentials. So nothing that a client sends may look like such a header, and no credential of a
client leaves this server. In the other direction nothing may change how browsers treat this server's own pages.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from federation.apimachinery.errors import Forbidden
from federation.apiserver.auth.identity import User

Header = tuple[bytes, bytes]
_HOP_BY_HOP: Final = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding"
    b" upgrade http2-settings".split()
)
_NOT_SENT: Final = _HOP_BY_HOP | {b"host", b"authorization", b"cookie", b"expect", b"forwarded"}
_NOT_SENT_PREFIXES: Final = (b"x-remote-", b"impersonate-", b"x-forwarded-", b"sec-websocket-")
_NOT_RETURNED: Final = _HOP_BY_HOP | {
    b"set-cookie",
    b"date",
    b"server",
    b"alt-svc",
    b"clear-site-data",
    b"strict-transport-security",
    b"content-security-policy",
    b"x-content-type-options",
}
_NOT_RETURNED_PREFIX: Final = b"access-control-"
_FOR_BROWSERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; sandbox"),
)
_TOKEN: Final = frozenset("!#$&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
"""Characters of header names, without the percent sign that escapes all others."""


def request_headers(given: Iterable[Header], client: str) -> list[tuple[str, str]]:
    """Return the headers of a forwarded request, without those that name its user.

    `client` is the address of the client, "" if it is not known.
    """
    given = list(given)
    named = _named_in_connection(given)
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in given
        if name not in _NOT_SENT and name not in named and not name.replace(b"_", b"-").startswith(_NOT_SENT_PREFIXES)
    ]
    if client:
        headers.append(("X-Forwarded-For", client))
    return headers


def user_headers(user: User, prefix: str = "X-Remote") -> list[tuple[str, str]]:
    """Return the headers that name a user; Forbidden when a value could arrive as another one.

    Receivers remove spaces around values, and an empty user name means that there is no user at all.
    """
    headers = [(f"{prefix}-User", user.name)]
    if user.uid:
        headers.append((f"{prefix}-Uid", user.uid))
    headers += [(f"{prefix}-Group", group) for group in user.groups]
    headers += [(f"{prefix}-Extra-{_escape(key)}", value) for key, values in user.extra.items() for value in values]
    for _, value in headers:
        if any(sign < " " or sign == "\x7f" for sign in value):
            raise Forbidden("the user's name, groups or extra contain control characters, which no header can carry")
        if not value or value != value.strip():
            raise Forbidden("the user's name, groups or extra are empty or begin or end with a space")
    return headers


def response_headers(given: Iterable[Header]) -> list[Header]:
    """Return the headers of a response for the client, names in lower case."""
    lowered = [(name.lower(), value) for name, value in given]
    named = _named_in_connection(lowered)
    kept = [
        (name, value)
        for name, value in lowered
        if name not in _NOT_RETURNED and name not in named and not name.startswith(_NOT_RETURNED_PREFIX)
    ]
    return [*kept, *_FOR_BROWSERS]


def is_redirect(status: int, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a response sends the client elsewhere."""
    return 300 <= status < 400 and bool(headers.get(b"location"))


def _named_in_connection(headers: Iterable[Header]) -> frozenset[bytes]:
    """Return the names of the headers that are for this connection only."""
    values = (value for name, value in headers if name == b"connection")
    # Bodies depend on these, so a client must not have them removed.
    kept = {b"content-length", b"content-type", b"content-encoding"}
    return frozenset(part.strip().lower() for value in values for part in value.split(b",")) - kept


def _escape(key: str) -> str:
    return "".join(
        chr(byte) if chr(byte) in _TOKEN else f"%{byte:02X}" for byte in key.encode("utf-8", "surrogatepass")
    )
