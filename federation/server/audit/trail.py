"""One request's way through the audit log: what is asked of the policy, what is overheard, and the events that result.

    open → received (who asks is known) → [ResponseStarted, for watches] → close

Bodies are overheard by standing between the request and its ASGI callables, so that handlers know nothing of it.
A trail lives for one request. The events' shape is `audit.k8s.io/v1`; `log.py` writes them.
"""

import uuid
from collections.abc import MutableMapping
from datetime import datetime
from typing import Any

from federation.base.clock import Clock, to_rfc3339_micro
from federation.base.errors import ApiError, InternalError, ServiceUnavailable
from federation.server import access
from federation.server.asgi import ANSWER, Receive, Request, Send
from federation.server.audit.log import TRUNCATED, AuditLog, Body, Entry
from federation.server.audit.options import AuditOptions
from federation.server.audit.policy import API_VERSION, NOTHING, Decision, Level, Policy, Stage
from federation.server.audit.redaction import is_secretive, unpack
from federation.server.identity import Attributes, User
from federation.server.paths import ResourcePath

_ID_LENGTH_MAX = 64
_AGENT_LENGTH_MAX = 1024
_COMPLETING_VERBS = frozenset({"create", "update"})
"""Their bodies say what the URL does not: name, uid, resourceVersion."""
_NOBODY = User("")


class Auditor:
    """Policy, queue and clock; opens a trail per request. `run` and `close` are the queue's."""

    def __init__(self, policy: Policy, log: AuditLog, options: AuditOptions, clock: Clock) -> None:
        self.policy = policy
        self.log = log
        self.body_bytes_max = options.body_bytes_max
        self.clock = clock
        self.run, self.close = log.run, log.close

    def open(self, request: Request, path: ResourcePath | None, verb: str) -> "Trail":
        """Begin the trail of a request whose head has arrived."""
        return Trail(self, request, path, verb)


class Trail:
    """What is known of one request so far."""

    def __init__(self, auditor: Auditor, request: Request, path: ResourcePath | None, verb: str) -> None:
        self._auditor = auditor
        self._request = request
        self._received = auditor.clock.now()
        if path is None:
            self._attributes = Attributes(request.method.lower(), path=request.path)
        else:
            self._attributes = access.to_attributes(path, verb or request.method.lower())
        self._is_watch = verb == "watch"
        self._user: User | None = None
        self._decision: Decision = NOTHING
        self._id = ""
        self._asked = _Overheard()
        self._answered = _Overheard()
        self._answer_type = self._answer_encoding = b""
        self.failure: ApiError | None = None
        """The error that is answered with."""
        self.has_panicked = False

    async def received(self) -> None:
        """Who asks is known: decide what to record, and record that the request is here.

        ServiceUnavailable when the log must not lose anything and cannot be written.
        """
        self._identify(self._request.user)
        if self._decision.level:
            try:
                await self._auditor.log.wait_room()
            except ServiceUnavailable:
                self._decision = NOTHING  # it is not served, and its event would find no room either
                raise
            self._emit(Stage.RECEIVED, self._received)

    def close(self) -> None:
        """The request is over: record how it ended."""
        if self._user is None:
            self._identify(_NOBODY)  # the credentials were refused
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
        given = request.header(b"audit-id")
        is_usable = 0 < len(given) <= _ID_LENGTH_MAX and given.isascii() and given.isprintable()
        self._id = given if is_usable else str(uuid.uuid4())
        request.send = self._overhear_answer(request.send)
        request.scope.get("extensions", {}).pop(ANSWER, None)  # a way around `send`
        wants_body = self._decision.level >= Level.Request or attributes.verb in _COMPLETING_VERBS
        if wants_body and not attributes.path:
            request.receive = self._overhear_request(request.receive)

    def _overhear_request(self, receive: Receive) -> Receive:
        bytes_max = self._auditor.body_bytes_max

        async def overhearing() -> MutableMapping[str, Any]:
            message = await receive()
            self._asked.add(message.get("body", b""), bytes_max)
            return message

        return overhearing

    def _overhear_answer(self, send: Send) -> Send:
        bytes_max = self._auditor.body_bytes_max
        wants_body = self._decision.level is Level.RequestResponse and not self._is_watch and not self._attributes.path

        async def overhearing(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = dict(message["headers"])
                self._answer_type = headers.get(b"content-type", b"")
                self._answer_encoding = headers.get(b"content-encoding", b"")
                message = {**message, "headers": [*message["headers"], (b"audit-id", self._id.encode("latin-1"))]}
                if self._is_watch and message["status"] == 200:
                    self._emit(Stage.STARTED, self._auditor.clock.now())
            elif wants_body:
                self._answered.add(message.get("body", b""), bytes_max)
            await send(message)

        return overhearing

    def _emit(self, stage: Stage, at: datetime) -> None:
        if stage in self._decision.omitted:
            return
        event = self._event(stage, at)
        entry = Entry(event)
        if stage in (Stage.COMPLETE, Stage.PANIC):
            is_hidden = is_secretive(self._attributes)
            slim = (is_hidden, self._decision.has_managed_fields)
            content_type = self._request.header(b"content-type")
            entry.request = Body(self._asked.bytes, content_type, *slim) if self._asked.bytes else None
            entry.is_shown = self._decision.level >= Level.Request
            answer = unpack(self._answered.bytes, self._answer_encoding, self._auditor.body_bytes_max)
            entry.response = Body(answer, self._answer_type.decode("latin-1"), *slim) if answer else None
            if (self._asked.is_cut and entry.is_shown) or self._answered.is_cut or answer is None:
                event["annotations"] |= TRUNCATED
        self._auditor.log.put(entry)

    def _event(self, stage: Stage, at: datetime) -> dict[str, Any]:
        request, user = self._request, self._user
        assert user is not None, "an event has a user, if only the empty one"
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
        if user is not _NOBODY and request.user is not user:
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
        event["annotations"] = dict(request.annotations)
        return event

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = {"metadata": {}}
        if self.failure is not None:
            status["status"] = "Failure"
            if not is_secretive(self._attributes):
                status["message"] = self.failure.message  # may quote what was sent
            status["reason"] = self.failure.reason
        status["code"] = self._request.status or (self.failure.code if self.failure is not None else 0)
        return status


class _Overheard:
    """A body as it passes, up to a limit."""

    __slots__ = ("_parts", "_size", "is_cut")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.is_cut = False

    def add(self, part: bytes, bytes_max: int) -> None:
        """Keep a part; a body beyond `bytes_max` is not kept at all."""
        self._size += len(part)
        if self._size > bytes_max:
            self.is_cut = True
            self._parts.clear()
        elif part:
            self._parts.append(part)

    @property
    def bytes(self) -> bytes:
        """The whole body, or nothing when it was too long."""
        return b"".join(self._parts)


def _uri(request: Request) -> str:
    path: bytes = request.scope.get("raw_path") or request.path.encode()
    query: bytes = request.scope["query_string"]
    return (path + b"?" + query if query else path).decode("latin-1")


def _sources(request: Request) -> list[str]:
    """Return the client's address, after those that proxies name."""
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
