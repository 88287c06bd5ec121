"""Templates and what they share: filters, the security headers, and the files that browsers get."""

import re
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Response
from jinja2 import ChainableUndefined, Environment, FileSystemLoader
from markupsafe import Markup, escape

from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.controlcharacters import escape_direction

_HERE = Path(__file__).parent
TEMPLATES = _HERE / "templates"
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
STATIC_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
    "vary": "accept",
}


STYLED_POLICY = {
    "content-security-policy": HEADERS["content-security-policy"].replace(
        "style-src 'self'", "style-src 'self' 'unsafe-inline'"
    )
}
"""For a page whose library makes styles: the terminal's measures characters and colours them."""


def to_age(value: Any, now: datetime) -> str:
    """Return the time since an RFC 3339 time as kubectl prints it: 5s, 3m, 4h, 2d; "" for none."""
    then = parse_rfc3339(value)
    if then is None:
        return ""
    seconds = max(0, int((now - then).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size or (unit != "m" and seconds >= size):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def to_plain_times(text: Any) -> Markup:
    """Return a sentence as HTML, with its RFC 3339 times written for people."""
    return Markup(_TIME.sub(_plain_time, str(escape(text or ""))))  # noqa: S704  # it is escaped


def _plain_time(found: re.Match[str]) -> str:
    then = parse_rfc3339(found[0])
    if then is None:
        return found[0]
    words = f"{then:%Y-%m-%d %H:%M:%S}".removesuffix(":00")
    return f'<time datetime="{found[0]}">{words} UTC</time>'


@cache
def _environment(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=ChainableUndefined,  # objects lack fields as they like
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["age"] = to_age
    environment.filters["plain"] = to_plain_times
    return environment


def render(template: str, status: int = 200, folder: Path = TEMPLATES, **variables: Any) -> Response:
    """Return a page from a template of the folder.

    Names, reasons and owners are texts of users: characters that reorder text would show an approver other words.
    """
    body = _environment(folder).get_template(template).render(**variables)
    return Response(escape_direction(body), status_code=status, media_type="text/html; charset=utf-8")


@cache
def static_file(name: str) -> tuple[bytes, str] | None:
    """Return content and type of a file for browsers, None if there is none of this name."""
    file = _HERE / "static" / name
    if Path(name).name != name or file.suffix not in STATIC_TYPES or not file.is_file():
        return None
    return file.read_bytes(), STATIC_TYPES[file.suffix]
