"""The error tree of the whole product.

Three questions decide a type (may the caller retry, is it final, or are we wrong):

    FederationError
    ├── ApiError (carries a Kubernetes Status)        raised by registry and client, answered by server
    │   ├── BadRequest 400   Unauthorized 401   Forbidden 403   NotFound 404   MethodNotAllowed 405
    │   ├── NotAcceptable 406   AlreadyExists 409   Conflict 409   Expired 410   RequestEntityTooLarge 413
    │   ├── UnsupportedMediaType 415   Invalid 422   TooManyRequests 429   InternalError 500
    │   └── ServiceUnavailable 503   Timeout 504
    ├── StoreError                                    raised by store, translated by registry
    │   └── KeyExists   KeyNotFound   RevisionConflict   RevisionCompacted   StoreUnavailable (retryable)
    ├── ClusterError                                  raised by client when a member gives no Kubernetes answer
    │   └── ClusterUnreachable (retryable)   RequestTimeout (retryable)   ClusterForbidden
    ├── ConfigurationError                            bad settings, files, arguments: final, names field and remedy
    ├── PluginError                                   a scheduler plugin answered nonsense or not at all
    └── Bug                                           we are wrong: an invariant does not hold
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class FederationError(Exception):
    """The root of every error that this product raises on purpose."""

    retryable: ClassVar[bool] = False


class ApiError(FederationError):
    """A Kubernetes API answer that is not success; `code` and `reason` are those of the `Status` it stands for.

    `details` is the Status' details object: name, group, kind, uid, causes, retryAfterSeconds.
    """

    code: int = 500
    reason: str = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        code: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        if code is not None:
            self.code = code
        if reason is not None:
            self.reason = reason

    def to_status(self) -> dict[str, Any]:
        """Return the Kubernetes `Status` object (v1) of this error as a plain mapping."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details:
            status["details"] = self.details
        status["code"] = self.code
        return status


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    code, reason = 409, "AlreadyExists"


class Conflict(ApiError):
    code, reason = 409, "Conflict"


class Expired(ApiError):
    code, reason = 410, "Expired"


class RequestEntityTooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"
    retryable = True


class InternalError(ApiError):
    code, reason = 500, "InternalError"
    retryable = True


class ServiceUnavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"
    retryable = True


class Timeout(ApiError):
    code, reason = 504, "Timeout"
    retryable = True


_BY_REASON: dict[str, type[ApiError]] = {
    kind.reason: kind
    for kind in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        NotAcceptable,
        AlreadyExists,
        Conflict,
        Expired,
        RequestEntityTooLarge,
        UnsupportedMediaType,
        Invalid,
        TooManyRequests,
        InternalError,
        ServiceUnavailable,
        Timeout,
    )
}
_BY_CODE: dict[int, type[ApiError]] = {kind.code: kind for kind in reversed(_BY_REASON.values())}


def from_status(status: Mapping[str, Any], code: int) -> ApiError:
    """Return the ApiError that a `Status` object received with HTTP status `code` stands for."""
    reason = str(status.get("reason") or "")
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiError)
    message = str(status.get("message") or f"the server answered {code}")
    return kind(message, details=status.get("details"), code=code, reason=reason or kind.reason)


def cause(reason: str, message: str, field: str) -> dict[str, str]:
    """Return one entry of `details.causes`, e.g. ("FieldValueInvalid", "Invalid value: -1: …", "spec.replicas")."""
    return {"reason": reason, "message": message, "field": field}


def invalid(kind: str, group: str, name: str, causes: Sequence[Mapping[str, str]]) -> Invalid:
    """Return the 422 that Kubernetes gives for field errors: every field and what is wrong with it, in one message."""
    parts = [f"{c['field']}: {c['message']}" for c in causes]
    listed = parts[0] if len(parts) == 1 else "[" + ", ".join(parts) + "]"
    qualified = f"{kind}.{group}" if group else kind
    return Invalid(
        f'{qualified} "{name}" is invalid: {listed}',
        details={"name": name, "group": group, "kind": kind, "causes": [dict(c) for c in causes]},
    )


class StoreError(FederationError):
    """The store could not do what was asked; nothing was changed."""


class KeyExists(StoreError):
    """The key to create already exists."""


class KeyNotFound(StoreError):
    """The key to change does not exist."""


class RevisionConflict(StoreError):
    """The object changed since the caller read it (optimistic concurrency)."""


class RevisionCompacted(StoreError):
    """The wanted revision is older than what the store keeps, or newer than what it has."""


class StoreUnavailable(StoreError):
    """The database does not answer or refuses to write."""

    retryable = True


class ClusterError(FederationError):
    """A cluster gave no usable Kubernetes answer."""


class ClusterUnreachable(ClusterError):
    """No connection: refused, reset, name or TLS failure."""

    retryable = True


class RequestTimeout(ClusterError):
    """The request's deadline passed before the cluster answered."""

    retryable = True


class ClusterForbidden(ClusterError):
    """The cluster rejects our credentials."""


class ConfigurationError(FederationError):
    """A setting, file or argument is wrong; the message is one line and names the field and the remedy."""


class PluginError(FederationError):
    """A scheduler plugin failed, or answered something that the protocol forbids."""


class Bug(FederationError):
    """An invariant does not hold: we are wrong."""
