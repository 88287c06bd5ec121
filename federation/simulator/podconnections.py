"""`kubectl logs`, `exec` and `port-forward` on simulated pods, without containers behind them.

A log has a few lines from the start of the container, and one more per second while it is followed. `echoshell.py` has
the programs that `exec` runs, over WebSocket with the subprotocols `v4.channel.k8s.io` and `v5.channel.k8s.io`,
`portechoes.py` those behind forwarded ports.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs

import orjson

from federation.apimachinery.clock import Clock, from_rfc3339, to_rfc3339
from federation.apimachinery.errors import BadRequest, NotFound
from federation.apimachinery.paths import ResourcePath
from federation.apiserver.http.asgi import Request, is_asked
from federation.apiserver.http.websockets import WEBSOCKET, ClientSocket
from federation.apiserver.registry.registry import Registry
from federation.simulator.echoshell import EchoShell, Output
from federation.simulator.portechoes import ChannelEchoes, PortEchoes

_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_FIRST_LINES: Final = ("starting", "configuration loaded", "listening", "ready")
_LINE_EVERY_S: Final = 1.0
_LINES_MAX: Final = 100
"""Lines of a log that are kept; older ones were rotated away."""
_STDIN, _ERROR, _CLOSE = 0, 3, 255
_TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"
_CHANNELS: Final = "v4.channel.k8s.io"
_PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")


class _PodConnector:
    """The part that both subresources share: the pod and the container that a request names."""

    is_namespaced = True
    forwards = False

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._stopping = asyncio.Event()

    def is_watch(self, _request: Request, _path: ResourcePath) -> bool:
        """Return False: these are no watches."""
        return False

    def narrower_right(self, _request: Request, _path: ResourcePath, _verb: str) -> None:
        """Return None: the right on the pod is needed."""

    def stop(self) -> None:
        """End every request."""
        self._stopping.set()

    async def _find(self, request: Request, path: ResourcePath) -> tuple[dict[str, Any], str, datetime]:
        """Return the pod, the container's name and its start; BadRequest in kubelet's words if there is none."""
        info = self._registry.kinds.lookup("", "v1", "pods")
        pod: dict[str, Any] = orjson.loads(await self._registry.get(info, path.namespace, path.name))
        containers = [each["name"] for each in pod["spec"]["containers"]]
        wanted = request.query.get("container", "")
        if not wanted and len(containers) > 1:
            found = " ".join(containers)
            raise BadRequest(f"a container name must be specified for pod {path.name}, choose one of: [{found}]")
        name = wanted or containers[0]
        if name not in containers:
            raise BadRequest(f"container {name} is not valid for pod {path.name}")
        reason = "ContainerCreating"
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            state = status.get("state") or {}
            started = (state.get("running") or state.get("terminated") or {}).get("startedAt")
            if status.get("name") == name and started:
                return pod, name, from_rfc3339(started)
            reason = (state.get("waiting") or {}).get("reason") or reason
        raise BadRequest(f'container "{name}" in pod "{path.name}" is waiting to start: {reason}')


class PodLogs(_PodConnector):
    """`pods/log`, with `follow`, `tailLines`, `timestamps` and `container`."""

    def is_stream(self, request: Request, _path: ResourcePath) -> bool:
        """Return whether the log is followed."""
        return is_asked(request.query, "follow")

    async def serve(self, request: Request, path: ResourcePath, *, timeout_s: float | None) -> None:
        """Send the log; followed, until the client leaves or the pod is gone."""
        del timeout_s
        pod, container, started = await self._find(request, path)
        shown = _lines_until(pod, container, started, self._clock.now())
        tail = request.query.get("tailLines", "")
        first = max(0, len(shown) - int(tail)) if tail.isascii() and tail.isdigit() else 0
        request.status = 200
        await request.send({"type": "http.response.start", "status": 200, "headers": [_TEXT]})
        has_timestamps = is_asked(request.query, "timestamps")
        body = b"".join(_format(*line, has_timestamps=has_timestamps) for line in shown[first:])
        follows = self.is_stream(request, path)
        await request.send({"type": "http.response.body", "body": body, "more_body": follows})
        if follows:
            await self._follow(request, path, (container, started), has_timestamps=has_timestamps)

    async def _follow(
        self, request: Request, path: ResourcePath, container: tuple[str, datetime], *, has_timestamps: bool
    ) -> None:
        gone = asyncio.ensure_future(_until_gone(request))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            while not gone.done() and not stopping.done():
                since = self._clock.now()
                tick = asyncio.ensure_future(self._clock.sleep(_LINE_EVERY_S))
                await asyncio.wait((tick, gone, stopping), return_when=asyncio.FIRST_COMPLETED)
                tick.cancel()
                try:
                    pod, *_ = await self._find(request, path)
                except (NotFound, BadRequest):
                    break
                new = [line for line in _lines_until(pod, *container, self._clock.now()) if line[0] > since]
                body = b"".join(_format(*line, has_timestamps=has_timestamps) for line in new)
                await request.send({"type": "http.response.body", "body": body, "more_body": True})
            if not gone.done():
                await request.send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            stopping.cancel()
            await asyncio.gather(gone, stopping, return_exceptions=True)


class PodExec(_PodConnector):
    """`pods/exec` over WebSocket."""

    def is_stream(self, request: Request, _path: ResourcePath) -> bool:
        """Return whether this is a WebSocket connection; other requests are refused."""
        return WEBSOCKET in request.scope.get("extensions", ())

    async def serve(self, request: Request, path: ResourcePath, *, timeout_s: float | None) -> None:
        """Run the command of the query until it ends or the client leaves."""
        del timeout_s
        pod, _, _ = await self._find(request, path)
        client: ClientSocket | None = request.scope.get("extensions", {}).get(WEBSOCKET)
        protocol = next((name for name in _PROTOCOLS if client is not None and name in client.subprotocols), "")
        if client is None or not protocol:
            raise BadRequest("unable to upgrade: you must specify at least 1 of stdin, stdout, stderr over WebSocket")
        query = parse_qs(request.scope["query_string"].decode("ascii", "replace"))
        argv = query.get("command") or [""]
        is_tty = is_asked(request.query, "tty")
        shell = EchoShell(argv, hostname=pod["metadata"]["name"], is_tty=is_tty)
        request.status = 101
        await client.accept(protocol)
        await _send(client, shell.start(), is_tty=is_tty)
        if shell.code is None and not is_asked(request.query, "stdin"):
            await _send(client, shell.end(), is_tty=is_tty)
        while shell.code is None:
            message = await client.receive()
            if message is None:
                return
            await _send(
                client, _react(shell, message if isinstance(message, bytes) else message.encode()), is_tty=is_tty
            )
        await client.send(bytes([_ERROR]) + orjson.dumps(_exit_status(shell.code)))
        await client.close(1000)


class PodPorts(_PodConnector):
    """`pods/portforward` over WebSocket: SPDY/3.1 in kubectl's tunnel, or a channel for each port."""

    def is_stream(self, request: Request, _path: ResourcePath) -> bool:
        """Return whether this is a WebSocket connection; other requests are refused."""
        return WEBSOCKET in request.scope.get("extensions", ())

    async def serve(self, request: Request, path: ResourcePath, *, timeout_s: float | None) -> None:
        """Answer the forwarded connections until the client leaves."""
        del timeout_s
        pod, _, _ = await self._find(request, path)
        client: ClientSocket | None = request.scope.get("extensions", {}).get(WEBSOCKET)
        if client is not None and (_CHANNELS in client.subprotocols or not client.subprotocols):
            await _forward_channels(client, request, pod["metadata"]["name"])
            return
        if client is None or _TUNNEL not in client.subprotocols:
            known = f"{_TUNNEL} or {_CHANNELS}"
            raise BadRequest(f"unable to upgrade: ports are forwarded over WebSocket with the subprotocol {known}")
        echoes = PortEchoes(pod["metadata"]["name"])
        request.status = 101
        await client.accept(_TUNNEL)
        while (message := await client.receive()) is not None:
            if answer := echoes.feed(message if isinstance(message, bytes) else message.encode()):
                await client.send(answer)


async def _forward_channels(client: ClientSocket, request: Request, pod: str) -> None:
    """Answer the ports of the query, each on its channels; BadRequest without a port."""
    texts = [
        text
        for each in parse_qs(request.scope["query_string"].decode("ascii", "replace")).get("ports", ())
        for text in each.split(",")
    ]
    if not texts or not all(text.isascii() and text.isdigit() and 0 < int(text) < 2**16 for text in texts):
        raise BadRequest('you must specify at least 1 port as a number, in the query parameter "ports"')
    echoes = ChannelEchoes(pod, [int(text) for text in texts])
    request.status = 101
    await client.accept(_CHANNELS if client.subprotocols else "")
    for first in echoes.start():
        await client.send(first)
    while (message := await client.receive()) is not None:
        answer, is_last = echoes.feed(message if isinstance(message, bytes) else message.encode())
        if answer:
            await client.send(answer)
        if is_last:
            await client.close(1000)
            return


def _react(shell: EchoShell, message: bytes) -> Output:
    """Return what the program writes for a message: a channel's number and its data."""
    if message[:1] == bytes([_STDIN]) and len(message) > 1:
        return shell.feed(message[1:])
    return shell.end() if message == bytes([_CLOSE, _STDIN]) else []


async def _send(client: ClientSocket, output: Output, *, is_tty: bool) -> None:
    for channel, data in output:
        await client.send(bytes([1 if is_tty else channel]) + data)


def _exit_status(code: int) -> dict[str, Any]:
    """Return the Status that ends an exec."""
    if not code:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _lines_until(pod: dict[str, Any], container: str, started: datetime, now: datetime) -> list[tuple[datetime, str]]:
    """Return the log of a container: its start, then a heartbeat per second; the last `_LINES_MAX` lines."""
    name, node = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
    count = max(0, int((now - started).total_seconds() / _LINE_EVERY_S)) + 1
    numbers = range(max(0, count - _LINES_MAX), count)
    at = [(started + timedelta(seconds=number * _LINE_EVERY_S), number) for number in numbers]
    return [
        (when, f"{container} of {name} on {node}: {_FIRST_LINES[n] if n < len(_FIRST_LINES) else f'alive {n} s'}")
        for when, n in at
    ]


def _format(when: datetime, text: str, *, has_timestamps: bool) -> bytes:
    return f"{to_rfc3339(when)} {text}\n".encode() if has_timestamps else f"{text}\n".encode()


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
