"""Failures as Kubernetes Statuses: the error that a request is answered with, and the texts that several modules share.

`asgi.py` sends an error; `app.py` is the only place that catches every exception.
"""

import structlog

from federation.apimachinery.errors import (
    ApiError,
    BadRequest,
    InternalError,
    MethodNotAllowed,
    ServiceUnavailable,
    StoreError,
    Timeout,
)
from federation.apiserver.http.asgi import Request

_log = structlog.get_logger(__name__)

HIDDEN = "Internal error occurred: see the server's log"
"""The message for an exception that no module foresaw."""


def method_not_allowed() -> MethodNotAllowed:
    """Return the 405 of a method that the path does not have."""
    return MethodNotAllowed("the server does not allow this method on the requested resource")


def known_error(error: Exception) -> ApiError | None:
    """Return the error to answer with, None for an exception that no module foresaw."""
    match error:
        case ApiError():
            return error
        case StoreError():  # only from a mounted app: the decision journal reads its database without the registry
            return ServiceUnavailable(f"the store does not answer: {error}")
        case TimeoutError():
            return Timeout("Timeout: request did not complete within requested timeout")
        case RecursionError() | UnicodeError():
            return BadRequest(f"the request cannot be read: {type(error).__name__}")
        case _:
            return None


def to_api_error(request: Request, error: Exception) -> ApiError:
    """Return the error to answer with. Log an exception that no module foresaw, and mark it in the audit trail."""
    if (known := known_error(error)) is not None:
        return known
    _log.error("request failed", method=request.method, path=request.path, exc_info=error)
    # Kubernetes' audit events have the stage Panic for a handler that fails.
    if request.trail is not None:
        request.trail.has_panicked = True
    return InternalError(HIDDEN)
