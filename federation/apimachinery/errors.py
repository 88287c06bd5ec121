"""The error tree of the product: every exception class below one root.

Three questions decide the parent: may the caller retry (marked *, `retryable`), is the error final until the
input changes, or is it our bug? tests/architecture compares this drawing with the source.

    FederationError
    ├── ApiError: a Kubernetes Status without success; from registry and client, answered by the API server
    │   ├── BadRequest: 400
    │   │   └── SelectorError
    │   ├── Unauthorized: 401
    │   │   └── LoginRefused: by an identity provider
    │   ├── Forbidden, NotFound, MethodNotAllowed: 403, 404, 405
    │   ├── NotAcceptable, AlreadyExists, Conflict, RequestEntityTooLarge: 406, 409, 409, 413
    │   ├── Expired: 410
    │   │   └── ContinuationExpired
    │   ├── UnsupportedMediaType, Invalid: 415, 422
    │   ├── TooManyRequests *, InternalError *, ServiceUnavailable *, Timeout *: 429, 500, 503, 504
    │   └── _BackendFailed: an aggregated API server did not answer
    ├── StoreError: from the store, translated by the registry
    │   ├── KeyExists, KeyNotFound, RevisionConflict, WriteFenced, RevisionCompacted, WatchCanceled
    │   └── ValueDamaged, StoreFull *, StoreUnavailable *
    ├── ClusterError: from clients, when a cluster gives no Kubernetes answer
    │   ├── ClusterUnreachable *
    │   │   └── CarrierClosed: the connection of an agent ended
    │   ├── RequestTimeout *, ClusterForbidden
    │   ├── TunnelError, RefusedError: an agent's tunnel was misused or refused
    │   └── ClusterLimitExceeded, ClusterIdentityMismatch
    ├── RequestWithdrawn: a request was not sent, because the reason for it had ended
    ├── ConnectFailed, WireBroken: there is no connection to a server, or it broke; the client's session translates them
    ├── InvalidInput: an object, patch or annotation cannot be used; final until it changes
    │   ├── OverrideError: in overrides
    │   │   └── PolicyNotFoundError
    │   ├── RenderError, RetentionError, FollowersError, PipelineError: in federated objects
    │   ├── MigrationError, AdoptionError: in annotations
    │   ├── OrdinalError, NotDerivableError: in divisions of StatefulSets, in kinds that policies select
    │   ├── ComponentError, ClaimError: in the components of an object with several kinds of pods, in claims for devices
    │   ├── TieError: in the paths by which objects belong to workloads
    │   ├── AllocationError: in the counts of a UnitedDeployment's subsets
    │   ├── MetricsError: in the metrics of an autoscaler's pods
    │   ├── PathError, KeyMissingError, _Malformed: in requests
    │   └── PatchError: in JSON patches
    │       └── TestFailedError: an operation that tests a value
    ├── ConfigurationError: in settings, files and arguments; final, names the field and the remedy
    │   ├── PlanForbidden: a kind that a plan needs may not be listed
    │   └── UnknownName: an object, cluster, namespace, path or commit that a command names does not exist
    ├── PluginError: a scheduler plugin failed, or broke the protocol
    │   └── PluginFailed, UnschedulableError
    ├── WebhookFailed, ParamsError, ConditionError, MutationError: in admission, conversion; the failure policy decides
    ├── CompileError, RuleError: in CEL, in status rules
    ├── EvaluationError: in CEL
    │   └── OutOfBudget
    ├── UnjoinableError, NotYetError *: a member cannot join at all, or not yet
    ├── ClaimsRefused, _FetchFailed: in OIDC authentication
    ├── Disconnected, _Refused: a connection to the API server ended
    ├── LeadershipLost: this process does not run the controllers any more
    ├── _MissingError, _RefusedError, _Ended: control flow inside one module
    └── Bug: an invariant does not hold; we are wrong
        └── JobFailed: in one job of a queue
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar


class FederationError(Exception):
    """The root of the product's errors."""

    retryable: ClassVar[bool] = False


class ApiError(FederationError):
    """A Kubernetes answer without success; `code` and `reason` are those of its `Status`.

    `details` is the details object of the Status: name, group, kind, uid, causes, retryAfterSeconds.
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


def is_kind_missing(error: Exception) -> bool:
    """Return whether a server answered that it does not know the resource; a missing object or namespace has a name."""
    return isinstance(error, NotFound) and not error.details.get("name")


def is_not_applicable(error: ApiError) -> bool:
    """Return whether server-side apply cannot write an object that other verbs can: a list has one key twice.

    Kubernetes accepts that in lists such as `ports`, and warns of it; the merge of an apply needs single keys.
    """
    return "duplicate entries for key" in str(error)


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


_MESSAGE_MAX, _REASON_MAX = 8192, 256
"""The longest message and reason that are kept of a received Status, in characters."""
_DETAIL_TEXTS = ("name", "group", "kind", "uid")
_CAUSES_MAX = 100
_RETRY_AFTER_S_MAX = 3_600


def from_status(status: Mapping[str, Any], code: int) -> ApiError:
    """Return the ApiError of a received `Status` object and HTTP status code."""
    reason = str(status.get("reason") or "")
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiError)
    # Received from another server, so of any type and length; it becomes a message in logs and conditions.
    message, details = str(status.get("message") or f"the server answered {code}"), status.get("details")
    if len(message) > _MESSAGE_MAX:
        message = message[:_MESSAGE_MAX] + "…"
    details = _usable_details(details) if isinstance(details, Mapping) else None
    return kind(message, details=details, code=code, reason=reason[:_REASON_MAX] or kind.reason)


def is_refusal(failure: Exception) -> bool:
    """Return whether a failed write certainly changed nothing, and no earlier attempt of it did.

    An answer that is late or lost says nothing about the write. A conflict can be with the same write of before.
    """
    return (
        isinstance(failure, ApiError)
        and 400 <= failure.code < 500
        and not isinstance(failure, AlreadyExists | Conflict)
    )


def not_served() -> NotFound:
    """Return Kubernetes' 404 for a path, kind or subresource that the server does not have."""
    return NotFound("the server could not find the requested resource")


def _usable_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details without fields of a wrong type, which would fail where they are read."""
    kept: dict[str, Any] = {key: details[key] for key in _DETAIL_TEXTS if isinstance(details.get(key), str)}
    causes, delay_s = details.get("causes"), details.get("retryAfterSeconds")
    if isinstance(causes, list):
        kept["causes"] = [cause for cause in causes[:_CAUSES_MAX] if isinstance(cause, Mapping)]
    if isinstance(delay_s, int) and 0 <= delay_s <= _RETRY_AFTER_S_MAX:
        kept["retryAfterSeconds"] = delay_s
    return kept


def cause(reason: str, message: str, field: str) -> dict[str, str]:
    """Return one entry of `details.causes`, e.g. ("FieldValueInvalid", "Invalid value: -1: …", "spec.replicas")."""
    return {"reason": reason, "message": message, "field": field}


def invalid(kind: str, group: str, name: str, causes: Sequence[Mapping[str, str]]) -> Invalid:
    """Return Kubernetes' 422 for field errors, with all fields and their problems in one message."""
    parts = [f"{c['field']}: {c['message']}" for c in causes]
    listed = parts[0] if len(parts) == 1 else "[" + ", ".join(parts) + "]"
    qualified = f"{kind}.{group}" if group else kind
    details = {"name": name, "group": group, "kind": kind, "causes": [dict(c) for c in causes]}
    return Invalid(
        f'{qualified} "{name}" is invalid: {listed}', details={key: value for key, value in details.items() if value}
    )


class StoreError(FederationError):
    """The store could not carry out an operation; nothing changed."""


class KeyExists(StoreError):
    """The key to create already exists."""


class KeyNotFound(StoreError):
    """The key to change does not exist."""


class RevisionConflict(StoreError):
    """The object changed since the caller read it (optimistic concurrency)."""


class WriteFenced(StoreError):
    """Another process leads: the Lease that this write depends on is not held any more."""


class RevisionCompacted(StoreError):
    """The requested revision is compacted, or newer than the newest one."""


class WatchCanceled(StoreError):
    """The store ended the watch: its reader is too slow, or the store closes or reloads. Reads and writes may work."""


class ValueDamaged(StoreError):
    """The stored value of a key does not match its checksum. The key can only be deleted, at `revision`."""

    def __init__(self, key: str, revision: int) -> None:
        super().__init__(f"the stored value of {key} at revision {revision} does not match its checksum")
        self.revision = revision


class StoreFull(StoreError):
    """The space quota is exceeded: only deletions are accepted. The message names the remedy."""

    retryable = True


class StoreUnavailable(StoreError):
    """The database does not answer or refuses to write."""

    retryable = True


class ClusterError(FederationError):
    """A cluster gave no usable Kubernetes answer."""


class Obstacle(StrEnum):
    """Why there is no connection to a cluster. All but NO_ANSWER are about our data or our machine, not the cluster."""

    NO_ANSWER = "no answer"
    UNTRUSTED = "a certificate of an unknown CA"
    EXPIRED = "a certificate that has expired"
    NOT_YET_VALID = "a certificate that is not valid yet"
    OTHER_NAME = "a certificate for another name"
    TLS_REFUSED = "another protocol, or our client certificate is refused"
    UNRESOLVED = "the resolver does not answer"
    NO_SUCH_NAME = "the resolver knows no such name"
    PROXY_AWAY = "the proxy does not answer"
    AGENTS_AWAY = "agents cannot connect to this process"
    PROXY_REFUSED = "the proxy refuses us"
    OURS = "a limit or the state of this process"


class ClusterUnreachable(ClusterError):
    """No connection: refused, reset, name or TLS failure."""

    retryable = True

    def __init__(self, message: str, obstacle: Obstacle = Obstacle.NO_ANSWER) -> None:
        super().__init__(message)
        self.obstacle = obstacle


class RequestTimeout(ClusterError):
    """The request's deadline passed before the cluster answered."""

    retryable = True


class ClusterForbidden(ClusterError):
    """The cluster rejects our credentials."""


class ClusterIdentityMismatch(ClusterError):
    """Another cluster than the one that joined answers; the message says what differs."""


class ClusterLimitExceeded(ClusterError):
    """The cluster sends more than a limit admits; the message names the limit."""


class RequestWithdrawn(FederationError):
    """The request was not sent: the reason for it ended while it waited."""


class ConfigurationError(FederationError):
    """A setting, file or argument is wrong; the message is one line and names the field and the remedy."""


class UnknownName(ConfigurationError):
    """A command names an object, cluster, namespace, path or commit that does not exist."""


class InvalidInput(FederationError, ValueError):
    """An object, patch or annotation cannot be used; final until it changes."""


class PluginError(FederationError):
    """A scheduler plugin failed, or its answer breaks the protocol."""


class WebhookFailed(FederationError):
    """A webhook of Kubernetes' API could not be called, or its response cannot be used; the message says why."""


class Bug(FederationError):
    """An invariant does not hold: we are wrong."""


def forget_frames(error: BaseException) -> None:
    """Remove the tracebacks of a handled error and its causes, so that they keep no local variables in memory."""
    left: list[BaseException | None] = [error]
    while left:
        known = left.pop()
        if known is not None and known.__traceback__ is not None:
            known.__traceback__ = None
            left += [known.__cause__, known.__context__]
