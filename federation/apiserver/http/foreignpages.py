"""Refuse requests that a page of another site makes with the credentials of the browser.

A browser sends client certificates, and cookies of sibling domains, with requests of any page, WebSockets included; it
says in `Origin` and `Sec-Fetch-Site` whose page that is, and pages cannot change these headers. Bearer tokens are never
sent by themselves, so requests with only a token pass. Pages of this machine (loopback addresses, and files, such as
desktop dashboards and pages behind `kubectl proxy`) act for the user who started them. A link from another site may
open a page of the web UI.
"""

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from federation.apimachinery.errors import Forbidden, UnsupportedMediaType
from federation.apiserver.http.asgi import Request

_ORIGIN, _SITE, _MODE, _DESTINATION = b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest"
_PAGE_SCHEMES: Final = {"http": "http", "ws": "http"}
"""By the scheme of a request, that of pages; "https" by default."""
_FOREIGN_SITES: Final = frozenset({b"cross-site", b"same-site"})
_REFUSED: Final = (
    "a page of another site sent this request with the browser's own credentials; use a bearer token, or a client"
    " that is no browser"
)
_NO_TYPE: Final = "a browser has to send a Content-Type with a body"


def check_page(request: Request, *, has_pages: bool) -> None:
    """Raise Forbidden for a request of a foreign page with ambient credentials.

    Raise UnsupportedMediaType for a browser's body without a type, which pages may send without asking. `has_pages`
    says whether links of other sites may lead here.
    """
    headers = request.headers
    if _SITE not in headers and _ORIGIN not in headers:
        return
    if b"content-type" not in headers and _has_body(request):
        raise UnsupportedMediaType(_NO_TYPE)
    is_ambient = request.peer is not None or b"cookie" in headers
    if is_ambient and _is_foreign(request) and not (has_pages and _is_link(request)):
        raise Forbidden(_REFUSED)


def _is_foreign(request: Request) -> bool:
    headers = request.headers
    origin = headers.get(_ORIGIN)
    if origin is None:
        return headers[_SITE].lower() in _FOREIGN_SITES
    try:
        parts = urlsplit(origin.decode("latin-1"))
        host = parts.hostname or ""
    except ValueError:
        return True
    # A page at the same host without TLS may be anybody's who controls the network.
    is_own_scheme = parts.scheme == _PAGE_SCHEMES.get(request.scope.get("scheme", ""), "https")
    return not (
        (is_own_scheme and parts.netloc and parts.netloc.lower().encode("latin-1") == headers.get(b"host", b"").lower())
        or parts.scheme == "file"
        or _is_loopback(host)
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_link(request: Request) -> bool:
    is_opened = request.headers.get(_MODE) == b"navigate" and request.headers.get(_DESTINATION) == b"document"
    return is_opened and request.method in ("GET", "HEAD")


def _has_body(request: Request) -> bool:
    length = request.headers.get(b"content-length", b"0")
    return b"transfer-encoding" in request.headers or length.strip(b"0 ") != b""
