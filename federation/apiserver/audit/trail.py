"""The audit trail of one request: evaluates the policy, captures bodies, and emits the request's events.

    open → received (user known) → [ResponseStarted, for watches] → close

Bodies are captured by wrapping the request's ASGI callables, so handlers do not know about auditing. Events are
`audit.k8s.io/v1`; `log.py` writes them.
"""

from collections.abc import MutableMapping
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import Clock, to_rfc3339_micro
from federation.apimachinery.errors import ApiError, InternalError, ServiceUnavailable
from federation.apimachinery.paths import ResourcePath
from federation.apiserver.audit.auditoptions import AuditOptions
from federation.apiserver.audit.auditpolicy import API_VERSION, NOTHING, Decision, Level, Policy, Stage
from federation.apiserver.audit.log import TRUNCATED, AuditLog, Body, Entry
from federation.apiserver.audit.redaction import holds_secrets, unpack
from federation.apiserver.auth.authorization import to_attributes
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.http.asgi import WHOLE_RESPONSE, Receive, Request, Send

_AGENT_LENGTH_MAX = 1024
_COMPLETING_VERBS = frozenset({"create", "update"})
"""Verbs whose bodies complete `objectRef` with name, uid and resourceVersion."""
_UNKNOWN_USER = User("")


class Auditor:
    """Opens the trail of each request. `run` and `close` are those of the log."""

    def __init__(self, policy: Policy, log: AuditLog, options: AuditOptions, clock: Clock) -> None:
        self.policy = policy
        self.log = log
        self.body_bytes_max = options.body_bytes_max
        self.redacted_resources = frozenset(options.redacted_resources)
        self.clock = clock
        self.run, self.close = log.run, log.close

    def open(self, request: Request, path: ResourcePath | None, verb: str) -> "Trail":
        """Return the trail of a request whose head has arrived."""
        return Trail(self, request, path, verb)


class Trail:
    """The audit state of one request."""

    def __init__(self, auditor: Auditor, request: Request, path: ResourcePath | None, verb: str) -> None:
        self._auditor = auditor
        self._request = request
        self._received = auditor.clock.now()
        if path is None:
            self._attributes = Attributes(request.method.lower(), path=request.path)
        else:
            self._attributes = to_attributes(path, verb or request.method.lower())
        self._is_watch = verb == "watch"
        self._user: User | None = None
        self._decision: Decision = NOTHING
        self._id = ""
        self._request_body = _CapturedBody()
        self._response_body = _CapturedBody()
        self._response_type = self._response_encoding = b""
        self.failure: ApiError | None = None
        """The error of the response."""
        self.has_panicked = False

    async def received(self) -> None:
        """Evaluate the policy now that the user is known, and emit RequestReceived.

        ServiceUnavailable when the log is blocking and cannot be written.
        """
        self._identify(self._request.user)
        if self._decision.level:
            try:
                await self._auditor.log.wait_for_space()
            except ServiceUnavailable:
                self._decision = NOTHING  # the request is not served, and the queue has no space for its event
                raise
            self._emit(Stage.RECEIVED, self._received)

    def close(self) -> None:
        """Emit the last event of the request."""
        if self._user is None:
            self._identify(_UNKNOWN_USER)  # authentication failed
        if self._decision.level:
            stage = Stage.PANIC if self.has_panicked else Stage.COMPLETE
            if self.has_panicked and self.failure is None:
                self.failure = InternalError("the server broke off")
            self._emit(stage, self._auditor.clock.now())

    def _identify(self, user: User) -> None:
        self._user = user
        self._decision = self._auditor.policy.decide(user, self._attributes)
        if not self._decision.level:
            return
        request, attributes = self._request, self._attributes
        self._id = request.audit_id
        request.send = self._capture_response(request.send)
        request.scope.get("extensions", {}).pop(WHOLE_RESPONSE, None)  # it would bypass `send`
        wants_body = self._decision.level >= Level.Request or attributes.verb in _COMPLETING_VERBS
        if wants_body and not attributes.path:
            request.receive = self._capture_request(request.receive)

    def _capture_request(self, receive: Receive) -> Receive:
        bytes_max = self._auditor.body_bytes_max

        async def capturing() -> MutableMapping[str, Any]:
            message = await receive()
            self._request_body.add(message.get("body", b""), bytes_max)
            return message

        return capturing

    def _capture_response(self, send: Send) -> Send:
        bytes_max = self._auditor.body_bytes_max
        wants_body = self._decision.level is Level.RequestResponse and not self._is_watch and not self._attributes.path

        async def capturing(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = dict(message["headers"])
                self._response_type = headers.get(b"content-type", b"")
                self._response_encoding = headers.get(b"content-encoding", b"")
                if self._is_watch and message["status"] == 200:
                    self._emit(Stage.STARTED, self._auditor.clock.now())
            elif wants_body:
                self._response_body.add(message.get("body", b""), bytes_max)
            await send(message)

        return capturing

    def _emit(self, stage: Stage, at: datetime) -> None:
        if stage in self._decision.omitted:
            return
        event = self._event(stage, at)
        entry = Entry(event)
        if stage in (Stage.COMPLETE, Stage.PANIC):
            is_redacted = holds_secrets(self._attributes, self._auditor.redacted_resources)
            how = (is_redacted, self._decision.includes_managed_fields)
            content_type = self._request.header(b"content-type")
            entry.request = Body(self._request_body.bytes, content_type, *how) if self._request_body.bytes else None
            entry.includes_request = self._decision.level >= Level.Request
            response = unpack(self._response_body.bytes, self._response_encoding, self._auditor.body_bytes_max)
            entry.response = Body(response, self._response_type.decode("latin-1"), *how) if response else None
            if (
                (self._request_body.is_truncated and entry.includes_request)
                or self._response_body.is_truncated
                or response is None
            ):
                event["annotations"] |= TRUNCATED
        self._auditor.log.put(entry)

    def _event(self, stage: Stage, at: datetime) -> dict[str, Any]:
        request, user = self._request, self._user
        assert user is not None, "an event has a user"
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": API_VERSION,
            "level": self._decision.level.name,
            "auditID": self._id,
            "stage": str(stage),
            "requestURI": _uri(request),
            "verb": self._attributes.verb,
            "user": user.to_info(),
        }
        if user is not _UNKNOWN_USER and request.user is not user:
            event["impersonatedUser"] = request.user.to_info()
        event["sourceIPs"] = _sources(request)
        if agent := request.header(b"user-agent"):
            event["userAgent"] = agent if len(agent) <= _AGENT_LENGTH_MAX else agent[:_AGENT_LENGTH_MAX] + "..."
        if not self._attributes.path:
            event["objectRef"] = _reference(self._attributes)
        if stage is not Stage.RECEIVED:
            event["responseStatus"] = self._status()
        event["requestReceivedTimestamp"] = to_rfc3339_micro(self._received)
        event["stageTimestamp"] = to_rfc3339_micro(at)
        event["annotations"] = dict(request.audit_annotations)
        return event

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = {"metadata": {}}
        if self.failure is not None:
            status["status"] = "Failure"
            if not holds_secrets(self._attributes, self._auditor.redacted_resources):
                status["message"] = self.failure.message  # it may quote the body
            status["reason"] = self.failure.reason
        status["code"] = self._request.status or (self.failure.code if self.failure is not None else 0)
        return status


class _CapturedBody:
    """A copy of a body, up to a limit."""

    __slots__ = ("_parts", "_size", "is_truncated")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.is_truncated = False

    def add(self, part: bytes, bytes_max: int) -> None:
        """Add a part; a body longer than `bytes_max` is discarded."""
        self._size += len(part)
        if self._size > bytes_max:
            self.is_truncated = True
            self._parts.clear()
        elif part:
            self._parts.append(part)

    @property
    def bytes(self) -> bytes:
        """The whole body, empty when it was too long."""
        return b"".join(self._parts)


def _uri(request: Request) -> str:
    path: bytes = request.scope.get("raw_path") or request.path.encode()
    query: bytes = request.scope["query_string"]
    return (path + b"?" + query if query else path).decode("latin-1")


def _sources(request: Request) -> list[str]:
    """Return the addresses of X-Forwarded-For, then the client's address."""
    named = [part.strip() for part in request.header(b"x-forwarded-for").split(",")[:16]]
    client = request.scope.get("client")
    return [address for address in (*named, client[0] if client else "") if address]


def _reference(attributes: Attributes) -> dict[str, str]:
    reference = {
        "resource": attributes.resource,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "apiGroup": attributes.group,
        "apiVersion": attributes.version,
        "subresource": attributes.subresource,
    }
    return {name: value for name, value in reference.items() if value}
