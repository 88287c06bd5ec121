"""Forms of browsers: their fields, and proof that a page of ours sent them.

A request that changes something must come from our own pages. The browser says where a form was sent from, and a form
of a session has the session's key besides.
"""

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

from fastapi import Request

from federation.apimachinery.clock import parse_rfc3339
from federation.web.requests import read_body
from federation.web.ui.credentials import Session

FIELDS_MAX = 60
"""A page of a list with all its rows chosen, and the fields of its form."""
SMALL_BYTES_MAX = 64 * 1024
"""Size of a form without manifests, encoded."""
_ASKED_AGE_MAX = timedelta(hours=1)


def is_own_page(request: Request) -> bool:
    """Return whether a form was sent by a page of ours, as browsers report it."""
    origin = request.headers.get("origin")
    if origin is not None:
        return urlsplit(origin).netloc == request.headers.get("host")
    return request.headers.get("sec-fetch-site") == "same-origin"


def asked_time(now: datetime, asked_at: str) -> datetime:
    """Return when the user asked for a plan: its writes have the same times when it is applied.

    That is now, unless the form has a recent time.
    """
    asked = parse_rfc3339(asked_at) if asked_at else None
    return asked if asked is not None and timedelta() <= now - asked <= _ASKED_AGE_MAX else now


def is_genuine(request: Request, session: Session, form: Mapping[str, str]) -> bool:
    """Return whether a page of this session sent the form."""
    key = form.get("form_key", "").encode()
    return is_own_page(request) and secrets.compare_digest(key, session.form_key.encode())


async def read_form(request: Request, bytes_max: int = SMALL_BYTES_MAX) -> dict[str, str]:
    """Return the fields of a form, {} for anything else; RequestEntityTooLarge above the limit, Disconnected."""
    too_large = f"the form is larger than {bytes_max >> 10} KiB; send less at once"
    body = await read_body(request, bytes_max, too_large)
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=FIELDS_MAX))
    except ValueError:
        return {}
