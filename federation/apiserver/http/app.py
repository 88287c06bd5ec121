"""The API server as one raw ASGI app: authentication, authorization, dispatch, and every failure as a Status.

    request → authentication → impersonation → authorization → priority and fairness → handler

Handlers are `resthandlers.py`, `reviews.py` and `tokenrequests.py` for resources, and `nonresource.py` for all other
paths. Requests for a group version of another server go to the `Aggregator` instead, those for a subresource that
connects to something else to its `Connector`. No resource request goes through a web framework. The app starts nothing
and lives as long as the server.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Protocol

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.deadline import Deadline
from federation.apimachinery.errors import Forbidden, ServiceUnavailable, Unauthorized, forget_frames
from federation.apimachinery.paths import ResourcePath, parse, parse_forwarded
from federation.apiserver.auth.authentication import Authenticator
from federation.apiserver.auth.authorization import Authorizer, authorize, decide, is_allowed, to_attributes
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.auth.escalation import EscalationAdmission
from federation.apiserver.auth.identity import ANONYMOUS, Attributes
from federation.apiserver.auth.impersonation import impersonate
from federation.apiserver.http.asgi import Disconnected, Receive, Request, Scope, Send, Trail
from federation.apiserver.http.bodies import BodyLimits
from federation.apiserver.http.connections import ConnectAdmission
from federation.apiserver.http.connectionshares import SYSTEM, to_owner
from federation.apiserver.http.connectors import Connector, Connectors, rest_of
from federation.apiserver.http.flowcontrol import Flow, FlowControl, FlowControlOptions
from federation.apiserver.http.foreignpages import check_page
from federation.apiserver.http.health import Check
from federation.apiserver.http.hiddencontent import ContentRule, HiddenContent
from federation.apiserver.http.looptime import LoopTime, LoopTimeOptions
from federation.apiserver.http.nonresource import (
    AUTHORIZE,
    CHARGE,
    HOLD,
    NAMESPACES,
    PUBLIC,
    SERVER,
    USER,
    Mount,
    NonResourcePaths,
)
from federation.apiserver.http.parameters import timeout_s
from federation.apiserver.http.podcommands import Locate, PodCommands
from federation.apiserver.http.readers import Readers
from federation.apiserver.http.requestinfo import to_verb
from federation.apiserver.http.requestmetrics import observe
from federation.apiserver.http.resthandlers import SHOWN, RESTHandlers
from federation.apiserver.http.reviews import Reviews
from federation.apiserver.http.statuserrors import method_not_allowed, to_api_error
from federation.apiserver.http.streams import End, HeldStream, Serve, Streams
from federation.apiserver.http.tokenrequests import TokenRequests
from federation.apiserver.http.watchresponses import WatchServer
from federation.apiserver.http.websockets import WEBSOCKET, ClientSocket
from federation.apiserver.registry.apiservices import APIEntry
from federation.apiserver.registry.registry import Registry

_LISTS = frozenset(("list", "watch"))
_DISCOVERY_S_MAX = 5.0
"""As kube-apiserver: time for another server to list the resources of a group version."""


class Auditor(Protocol):
    """Opens the audit trail of a request."""

    def open(self, request: Request, path: ResourcePath | None, verb: str) -> Trail:
        """Return the trail of a request whose head has arrived."""
        ...


class Aggregator(Protocol):
    """Forwards requests to the servers of APIServices (`aggregation/proxy.py`)."""

    async def serve(self, request: Request, entry: APIEntry, *, timeout_s: float | None, path: str = "") -> None:
        """Forward an authorized request, a watch without a timeout; `path` replaces its path."""
        ...

    def stop(self) -> None:
        """End all forwarded requests."""
        ...


@dataclass(frozen=True, slots=True)
class AppOptions:
    """Limits of one request and of all together."""

    body_bytes_max: int = 3 * 1024 * 1024
    """As kube-apiserver: the largest request body."""
    request_s_max: float = 60.0
    """For everything but watches; a client may shorten it with `timeout`."""
    token_check_s: float = 30.0
    """How often the bearer token of a stream is checked again; a token may be cached for ten seconds, too."""
    flow_control: FlowControlOptions = field(default_factory=FlowControlOptions)
    loop_time: LoopTimeOptions = field(default_factory=LoopTimeOptions)
    listed_by_name: frozenset[tuple[str, str]] = frozenset()
    """Group and plural of resources of which a list has the objects that the user may list by name, instead of 403."""
    contents: ContentRule | None = None
    """Which objects of any kind need the right to read another resource, because of their content.

    With a rule, Events about objects without a namespace need the right to get these objects, too.
    """
    confined_users: Mapping[str, str] = field(default_factory=dict)
    """By the beginning of user names: the first segment of the only paths that these users may request."""


class App:
    """One API server; `readiness` checks return "" or the reason why the server is not ready.

    `locate_pods` finds workloads whose pods are in other clusters, for the refusal of `kubectl logs` and its like.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        authenticator: Authenticator,
        authorizer: Authorizer,
        mounts: Mapping[str, Mount] | None = None,
        readiness: Mapping[str, Check] | None = None,
        options: AppOptions | None = None,
        clock: Clock | None = None,
        auditor: Auditor | None = None,
        locate_pods: Locate | None = None,
        aggregator: Aggregator | None = None,
        connectors: Connectors | None = None,
        readers: Readers | None = None,
    ) -> None:
        options, clock = options or AppOptions(), clock or SystemClock()
        registry.set_authorizer(partial(decide, authorizer))
        registry.add_admission_plugin(EscalationAdmission(registry, authorizer))
        readers = readers if readers is not None else {}
        limits = BodyLimits(options.body_bytes_max, registry.options.object_values_max)
        self._request_s_max = options.request_s_max
        self._confined_users = options.confined_users
        self._listed_by_name = options.listed_by_name
        self._auditor = auditor
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._watches = WatchServer(registry, clock)
        hidden = HiddenContent(authorizer, registry.kinds, options.contents)
        self._resources = RESTHandlers(
            registry, self._watches, clock=clock, limits=limits, readers=readers, hidden=hidden
        )
        self._pod_commands = PodCommands(registry, authorizer, locate_pods, readers)
        self._connect_admission = ConnectAdmission(registry)
        self._reviews = Reviews(authenticator, authorizer, limits=limits)
        self._token_requests = TokenRequests(registry, authenticator.tokens, clock=clock, limits=limits)
        self._aggregator = aggregator
        self._connectors = connectors if connectors is not None else {}
        self._apis = registry.apis
        self._paths = NonResourcePaths(
            registry.kinds,
            registry.apis,
            self._serve_document,
            readiness={"store": self._check_store, "rbac": self._check_roles, **(readiness or {})},
            warnings=registry.store.warnings,
            mounts=mounts or {},
            tokens=authenticator.tokens,
        )
        self._flow_control = FlowControl(options.flow_control)
        self._loop_time = LoopTime(options.loop_time, clock)
        self._streams = Streams(self._flow_control, authenticator.authenticate, options.token_check_s)
        registry.set_flow_control(self._flow_control.configure)
        self._kinds = registry.kinds
        self._store = registry.store

    def stop(self) -> None:
        """End all watches and forwarded requests, so that the server can stop at once."""
        self._watches.stop()
        if self._aggregator is not None:
            self._aggregator.stop()
        for connector in self._connectors.values():
            connector.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started_s = perf_counter()
        request = Request(scope, receive, send)
        path = parse(request.path)
        if path is None:
            path = self._parse_forwarded(request.path)
        verb = "" if path is None else to_verb(request, path)
        if self._auditor is not None:
            request.trail = self._auditor.open(request, path, verb)
        try:
            await self._serve(request, path, verb)
        # No client is left to receive a response.
        except Disconnected:
            return
        except Exception as error:  # noqa: BLE001  # HTTP's loop runner: a bug becomes a Status and a log line
            await _respond_failure(request, error)
        finally:
            if request.trail is not None:
                request.trail.close()
            observe(self._kinds, request, path, verb, perf_counter() - started_s)

    def _parse_forwarded(self, path: str) -> ResourcePath | None:
        """Return the parts of a path that goes on after its subresource, because something else answers it."""
        found = parse_forwarded(path)
        is_forwarded = found is not None and self._find_connector(found) is not None
        return found if is_forwarded or self._find_remote(path) is not None else None

    def _find_connector(self, path: ResourcePath) -> Connector | None:
        """Return what answers a subresource or a whole group version, None for nearly all paths."""
        if (path.group, path.version) in self._apis.connected:
            return self._connectors.get((path.group, path.version, "", ""))
        if not path.subresource or path.is_watch:
            return None
        found = self._connectors.get((path.group, path.version, path.plural, path.subresource))
        return found if found is not None and found.is_namespaced == bool(path.namespace) else None

    async def _serve(self, request: Request, path: ResourcePath | None, verb: str) -> None:
        headers = request.headers
        root = request.path.lstrip("/").partition("/")[0] if path is None else ""
        is_probe = root in PUBLIC and b"authorization" not in headers and request.peer is None
        has_own_login = self._paths.has_login(root)
        check_page(request, has_pages=has_own_login)
        if has_own_login:
            request.scope[SERVER] = self
            request.scope[HOLD] = self._hold
            request.scope[CHARGE] = self._charge
        if request.peer is not None:
            self._check_confined(request.peer.user, root)
        if is_probe or has_own_login:
            # Probes send no credentials. Credentials that are sent are checked on public paths too.
            if request.trail is not None:
                await request.trail.received()
            serve = partial(self._paths.serve, request, root)
            await (self._loop_time.page(serve) if has_own_login else serve())
            return
        request.user = await self._authenticator.authenticate(request.peer, headers.get(b"authorization", b""))
        request.recognize()
        if request.trail is not None:
            await request.trail.received()
        if b"impersonate-user" in headers or b"impersonate-group" in headers or b"impersonate-uid" in headers:
            request.user = await impersonate(self._authorizer, request.user, request.scope["headers"])
        self._check_confined(request.user.name, root)
        if request.user is ANONYMOUS and root not in PUBLIC and not self._paths.is_public(request.path, root):
            raise Unauthorized("Unauthorized")
        if path is None:
            await self._serve_path(request, root)
            return
        if not verb:
            raise method_not_allowed()
        connector, attributes = self._find_connector(path), to_attributes(path, verb)
        await self._authorize_resource(request, path, attributes, connector)
        await self._serve_resource(request, path, attributes, connector)

    async def _authorize_resource(
        self, request: Request, path: ResourcePath, attributes: Attributes, connector: Connector | None
    ) -> None:
        if attributes.verb in _LISTS and (attributes.group, attributes.resource) in self._listed_by_name:
            shown = partial(self._authorizer.names_of, request.user, attributes)
            if not await is_allowed(self._authorizer, request.user, attributes) and shown():
                request.scope[SHOWN] = shown
                attributes = attributes._replace(name=min(shown()))
        right = None if connector is None else connector.narrower_right(request, path, attributes.verb)
        if right is None or not await is_allowed(self._authorizer, request.user, right):
            right = attributes
        await authorize(self._authorizer, request.user, right, request.audit_annotations)

    def _check_confined(self, user: str, root: str) -> None:
        for prefix, only in self._confined_users.items():
            if user.startswith(prefix) and root != only:
                raise Forbidden(f"users {prefix}* may only request paths below /{only}/")

    async def _serve_path(self, request: Request, root: str) -> None:
        attributes = Attributes(request.method.lower(), path=request.path)
        if root in PUBLIC:
            _, request.flow_headers = self._flow_control.classify(request.user, attributes)
            await self._paths.serve(request, root)
            return
        if self._paths.authorizes(request.path, root):
            request.scope[AUTHORIZE] = partial(self._authorize_mounted, request)
            request.scope[NAMESPACES] = partial(self._authorizer.namespaces_of, request.user)
            request.scope[USER] = request.user
        else:
            await authorize(self._authorizer, request.user, attributes, request.audit_annotations)
        flow, request.flow_headers = self._flow_control.classify(request.user, attributes)
        if self._paths.is_stream(request.path, root):
            await self._serve_stream(request, flow, partial(self._paths.serve, request, root))
            return
        if (remote := self._find_remote(request.path)) is not None:
            await self._seated(request, flow, partial(self._forward, request, remote, _DISCOVERY_S_MAX))
        else:
            await self._seated(request, flow, partial(self._paths.serve, request, root))

    async def _seated(self, request: Request, flow: Flow | None, serve: Callable[[], Awaitable[None]]) -> None:
        """Await `serve()` with a seat of the flow, and in the time of the event loop that its user may use."""
        owner = to_owner(request.user)
        if owner == SYSTEM:
            await self._with_seat(flow, serve)
        else:
            # Who rests for his own use occupies no seat.
            await self._loop_time.serve(owner, partial(self._with_seat, flow, serve))

    async def _with_seat(self, flow: Flow | None, serve: Callable[[], Awaitable[None]]) -> None:
        await self._flow_control.acquire(flow)
        try:
            await serve()
        finally:
            self._flow_control.release(flow)

    def _find_remote(self, path: str) -> APIEntry | None:
        """Return the APIService of a path below /apis/GROUP/VERSION that another server answers."""
        if not self._apis.remote:
            return None
        match path.split("/", 4):
            case ["", "apis", group, version, *_]:
                return self._apis.remote.get((group, version))
            case ["", "api", version, *_]:
                return self._apis.remote.get(("", version))
            case _:
                return None

    async def _forward(self, request: Request, entry: APIEntry, timeout_s: float | None, path: str = "") -> None:
        if self._aggregator is None:
            raise ServiceUnavailable("this server forwards no requests to other servers")
        await self._aggregator.serve(request, entry, timeout_s=timeout_s, path=path)

    async def _serve_document(self, request: Request, entry: APIEntry, path: str) -> None:
        await self._forward(request, entry, _DISCOVERY_S_MAX, path)

    async def _authorize_mounted(
        self, request: Request, required: Sequence[Attributes], *, is_path_enough: bool = True
    ) -> None:
        path = Attributes("get", path=request.path)
        if not required or (is_path_enough and await is_allowed(self._authorizer, request.user, path)):
            required = (path,)
        for attributes in required:
            await authorize(self._authorizer, request.user, attributes, request.audit_annotations)

    async def _serve_resource(
        self, request: Request, path: ResourcePath, attributes: Attributes, connector: Connector | None
    ) -> None:
        verb = attributes.verb
        flow, request.flow_headers = self._flow_control.classify(request.user, attributes)
        if connector is not None:
            await self._connect(request, path, connector, flow)
            return
        # The dictionary is empty on most servers, so that this costs the others' requests nothing.
        remote = self._apis.remote.get((path.group, path.version)) if self._apis.remote else None
        if verb == "watch":
            # A watch needs no seat and no deadline: it runs until its own timeoutSeconds.
            if remote is not None:
                await self._serve_stream(request, flow, partial(self._forward, request, remote, None))
            else:
                await self._serve_stream(request, flow, partial(self._resources.serve, request, path, verb))
            return
        if remote is not None:
            await self._seated(request, flow, partial(self._forward, request, remote, self._deadline_s(request)))
        else:
            await self._seated(request, flow, partial(self._serve_own, request, path, verb))

    async def _serve_own(self, request: Request, path: ResourcePath, verb: str) -> None:
        with Deadline(self._deadline_s(request)):
            if self._reviews.handles(path):
                await self._reviews.serve(request, path, verb)
            elif self._token_requests.handles(path):
                await self._token_requests.serve(request, path, verb)
            else:
                if self._pod_commands.concerns(request, path):
                    await self._pod_commands.check(request, path, verb)
                await self._resources.serve(request, path, verb)

    async def _connect(self, request: Request, path: ResourcePath, connector: Connector, flow: Flow | None) -> None:
        socket: ClientSocket | None = request.scope.get("extensions", {}).get(WEBSOCKET)
        if socket is not None and (path.subresource == "log" or connector.is_watch(request, path)):
            socket.carry_body()
        elif socket is not None:
            # A handshake is a GET, but what it opens carries commands. Kubernetes asks for this verb too.
            await self._authorize_resource(request, path, to_attributes(path, "create"), connector)
        if connector.is_stream(request, path):
            await self._serve_stream(request, flow, partial(self._serve_connection, request, path, connector, None))
            return
        serve = partial(self._serve_connection, request, path, connector, self._deadline_s(request))
        await self._seated(request, flow, serve)

    async def _serve_connection(
        self, request: Request, path: ResourcePath, connector: Connector, timeout_s: float | None
    ) -> None:
        below = rest_of(request, path) if connector.forwards else ""
        await self._connect_admission.admit(request, path, below, is_forwarding=connector.forwards)
        await connector.serve(request, path, timeout_s=timeout_s)

    async def _serve_stream(self, request: Request, flow: Flow | None, serve: Serve) -> None:
        authorization = request.headers.get(b"authorization", b"")
        owner = to_owner(request.user)
        counted = serve if owner == SYSTEM else partial(self._loop_time.stream, owner, serve)
        await self._streams.serve(request.user, flow, request.peer, authorization, counted)

    async def _hold(self, peer: Peer | None, authorization: bytes, path: str, end: End) -> HeldStream:
        """Count a stream of a mounted app with its own log-in."""
        user = await self._authenticator.authenticate(peer, authorization)
        flow, _ = self._flow_control.classify(user, Attributes("watch", path=path))
        return self._streams.hold(user, flow, peer, authorization, end)

    async def _charge(self, peer: Peer | None, authorization: bytes) -> None:
        """Count what a page computes against its user."""
        user = await self._authenticator.authenticate(peer, authorization)
        await self._loop_time.own_page(to_owner(user))

    def _deadline_s(self, request: Request) -> float:
        text = request.query.get("timeout")
        return timeout_s(text, self._request_s_max) if text else self._request_s_max

    async def _check_store(self) -> str:
        await self._store.check_writable()
        return ""

    async def _check_roles(self) -> str:
        return "" if self._authorizer.has_synced else "roles are not loaded yet"


async def _respond_failure(request: Request, error: Exception) -> None:
    failure = to_api_error(request, error)
    # The error refers to the frames that it passed, which refer to the body and to the request, and so to the error in
    # the trail: a cycle that would keep megabytes until the collector runs.
    forget_frames(error)
    if request.trail is not None:
        request.trail.failure = failure
    # A response that has begun stays incomplete, so that the server closes the connection.
    if not request.status:
        await request.respond_error(failure)
