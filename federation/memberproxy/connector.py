"""`federatedclusters/NAME/proxy/PATH`: any request to a member, with the rights that the user has in the member.

The host authorizes the subresource, or a read in a namespace as its own one (`ownnamespaces.py`), and audits the
request as any other. The member gets it with the federation's credentials and headers that name the user to act for
(`memberusers.py`), so the member's own RBAC decides. If the federation may not act for users there, the request is
refused: it is never sent with the federation's own rights. What a member answers is passed on piece by piece, except
redirects and refusals of the federation itself.

Decision: docs/decisions/0094-a-role-in-a-namespace-reads-in-members.md
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from federation.apimachinery.deadline import Deadline
from federation.apimachinery.errors import (
    BadRequest,
    ClusterError,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unauthorized,
)
from federation.apimachinery.paths import ResourcePath, parse
from federation.apimachinery.webhookclient import StreamedResponse
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.http.asgi import Request, is_asked
from federation.apiserver.http.connectors import rest_of
from federation.apiserver.http.forwardedheaders import request_headers, user_headers
from federation.apiserver.http.forwarding import Body, Forwarder, encoded_target
from federation.apiserver.http.requestinfo import to_verb
from federation.apiserver.http.websockets import WEBSOCKET, ClientSocket, WebSocket
from federation.client.delegate import Headers
from federation.client.pool import ClusterPool
from federation.client.streams import until_idle
from federation.memberproxy.memberreads import checked, delegate_of, unauthorized
from federation.memberproxy.memberusers import to_member_user
from federation.memberproxy.ownnamespaces import namespace_right
from federation.memberproxy.placedclusters import Visibility
from federation.memberproxy.search import EVERY, Search

_NORMAL: Final = 1000
_GOING_AWAY: Final = 1001


@dataclass(frozen=True, slots=True)
class MemberProxyOptions:
    """Limits of the requests to one member."""

    requests_max: int = 100
    """Requests in flight to one member, streams left out: a member that hangs holds no more than these."""
    streams_max: int = 500
    """Watches, followed logs and WebSocket connections to one member."""
    user_streams_max: int = 100
    """Those of one user to all members."""
    head_s_max: float = 30.0
    """How long a member may take to begin the response to a stream."""
    idle_s_max: float = 4 * 3600.0
    """A stream ends when nothing was sent for this long; as kubelet's `streamingConnectionIdleTimeout`."""
    body_bytes_max: int = 3 * 1024 * 1024
    """The largest request body; as kube-apiserver."""


class MemberProxy:
    """A `Connector` to the members of a pool."""

    is_namespaced = False
    forwards = True

    def __init__(
        self,
        pool: ClusterPool,
        options: MemberProxyOptions | None = None,
        placed: Visibility | None = None,
        search: Search | None = None,
    ) -> None:
        """`search` answers requests for all clusters, whose name is `*`."""
        self._pool = pool
        self._placed = placed
        self._search = search
        self._options = options or MemberProxyOptions()
        self._forwarder = Forwarder(self._options.body_bytes_max)
        self._requests: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()
        self._user_streams: Counter[str] = Counter()
        self.stop = self._forwarder.stop

    def is_watch(self, request: Request, path: ResourcePath) -> bool:
        """Return whether the member sees a watch or a request for a log."""
        return _only_reads(request, rest_of(request, path))

    def is_stream(self, request: Request, path: ResourcePath) -> bool:
        """Return whether the request is a watch, a followed log or a WebSocket connection."""
        if WEBSOCKET in request.scope.get("extensions", ()):
            return True
        inner = parse(rest_of(request, path))
        is_log = inner is not None and inner.subresource == "log"
        return is_asked(request.query, "follow") if is_log else self.is_watch(request, path)

    def narrower_right(self, request: Request, path: ResourcePath, verb: str) -> Attributes | None:
        """Return the same right on the host, for reads of a namespace that has something in the cluster."""
        if self._search is not None and path.name == EVERY:
            return self._search.narrower_right(request, rest_of(request, path))
        inner = parse(rest_of(request, path))
        if inner is None or self._placed is None or not self._placed.is_visible(path.name, inner.namespace):
            return None
        is_handshake = verb == "create" and request.method == "GET"
        return namespace_right(inner, verb if is_handshake else to_verb(request, inner))

    async def serve(self, request: Request, path: ResourcePath, *, timeout_s: float | None) -> None:
        """Pass the request on. ServiceUnavailable without a member that answers, TooManyRequests beyond the limits."""
        if self._search is not None and path.name == EVERY:
            if WEBSOCKET in request.scope.get("extensions", ()):
                raise BadRequest("connections are to one cluster: name it")
            await self._search.answer(request, rest_of(request, path), timeout_s)
            return
        await self.pass_on(request, path.name, rest_of(request, path), timeout_s=timeout_s)

    async def pass_on(self, request: Request, cluster: str, path: str, *, timeout_s: float | None) -> None:
        """Pass an authorized request on to a path of the cluster, with its query; a stream without a timeout."""
        user = to_member_user(request.user)
        client = request.scope.get("client")
        headers = request_headers(request.scope["headers"], client[0] if client else "")
        headers += user_headers(user, "Impersonate")
        target = encoded_target(path, request.scope["query_string"])
        with self._counted(cluster, user, is_stream=timeout_s is None):
            socket: ClientSocket | None = request.scope.get("extensions", {}).get(WEBSOCKET)
            if socket is not None and not _only_reads(request, path):
                await self._join(request, socket, cluster, target, headers)
                return
            opened = partial(self._open, request, cluster, target, headers, is_stream=timeout_s is None)
            if timeout_s is None:
                await self._forwarder.forward(request, opened)
                return
            try:
                with Deadline(timeout_s):
                    await self._forwarder.forward(request, opened)
            except TimeoutError:
                raise Timeout(f'cluster "{cluster}" did not complete the answer within {timeout_s:g} s') from None

    @contextlib.contextmanager
    def _counted(self, cluster: str, user: User, *, is_stream: bool) -> Iterator[None]:
        """Count a request while the block runs; TooManyRequests beyond a limit."""
        options = self._options
        if is_stream:
            held = [(self._streams, cluster, options.streams_max, f'streams of cluster "{cluster}"')]
            held.append((self._user_streams, user.name, options.user_streams_max, f'streams of user "{user.name}"'))
        else:
            held = [(self._requests, cluster, options.requests_max, f'requests to cluster "{cluster}"')]
        for counter, key, limit, title in held:
            if counter[key] >= limit:
                raise TooManyRequests(f"{limit} {title} are open, try again later", details={"retryAfterSeconds": 1})
        for counter, key, *_ in held:
            counter[key] += 1
        try:
            yield
        finally:
            for counter, key, *_ in held:
                counter[key] -= 1
                if not counter[key]:
                    del counter[key]

    @asynccontextmanager
    async def _open(
        self, request: Request, cluster: str, target: str, headers: Headers, body: Body | None, *, is_stream: bool
    ) -> AsyncIterator[StreamedResponse]:
        """Send the request to the member and yield its response; an ApiError for what the client must not get."""
        delegate = delegate_of(self._pool, cluster)
        try:
            async with asyncio.timeout(self._options.head_s_max if is_stream else None) as head:
                async with delegate.exchange(request.method, target, headers, body) as answer:
                    head.reschedule(None)
                    response = await checked(cluster, answer, is_upgrade=_is_spdy(request))
                    if is_stream:
                        response = response._replace(body=until_idle(response.body, self._options.idle_s_max))
                    yield response
        except TimeoutError:
            raise Timeout(f'cluster "{cluster}" did not answer within {self._options.head_s_max:g} s') from None
        except ClusterError as problem:
            raise ServiceUnavailable(f'cluster "{cluster}": {problem}') from problem

    async def _join(self, request: Request, client: ClientSocket, cluster: str, target: str, headers: Headers) -> None:
        """Connect the client's WebSocket to one of the member, and pass messages on until either side ends."""
        delegate, head_s = delegate_of(self._pool, cluster), self._options.head_s_max
        try:
            async with asyncio.timeout(head_s) as head:
                async with delegate.websocket(target, headers, client.subprotocols) as member:
                    head.reschedule(None)
                    request.status = 101
                    await client.accept(member.subprotocol)
                    await self._exchange(client, member)
        except TimeoutError:
            raise Timeout(f'cluster "{cluster}" did not answer within {head_s:g} s') from None
        except Unauthorized as refusal:
            raise unauthorized(cluster) from refusal
        except ClusterError as problem:
            if not request.status:
                raise ServiceUnavailable(f'cluster "{cluster}": {problem}') from problem

    async def _exchange(self, client: WebSocket, member: WebSocket) -> None:
        """Pass messages on in both directions; end when one side ends, nothing was sent for long, or at `stop`."""
        limit_s, loop = self._options.idle_s_max, asyncio.get_running_loop()
        stopping = asyncio.ensure_future(self._forwarder.wait_stopping())
        tasks = [stopping]
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit_s) as idle:
                    postpone = lambda: idle.reschedule(loop.time() + limit_s)  # noqa: E731  # it needs `idle`
                    tasks.append(asyncio.ensure_future(_pass_on(client, member, postpone)))
                    tasks.append(asyncio.ensure_future(_pass_on(member, client, postpone)))
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            code = _GOING_AWAY if stopping.done() else _NORMAL
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await client.close(code)


def _is_spdy(request: Request) -> bool:
    return request.headers.get(b"upgrade", b"").lower().startswith(b"spdy")


def _only_reads(request: Request, path: str) -> bool:
    """Return whether a request for a path of a member is a watch or for a log, also over WebSocket."""
    inner = parse(path)
    return inner is not None and (inner.subresource == "log" or to_verb(request, inner) == "watch")


async def _pass_on(source: WebSocket, target: WebSocket, postpone: Callable[[], None]) -> None:
    while (message := await source.receive()) is not None:
        postpone()
        await target.send(message)
